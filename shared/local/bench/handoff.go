package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// step is a part of a hand-off with what it asked of AWS.
type step struct {
	name string
	spent
}

// The steps of a hand-off.
const (
	stepReserve  = "reserve"
	stepVerify   = "upload and verify" // the event comes while the PUT is answered: the two cannot be told apart by time
	stepResolve  = "resolve"
	stepDownload = "download"
	stepEnd      = "end"
)

// How a hand-off ends.
type ending int

const (
	byTime    ending = iota // the file expires, and a sweep finds it
	onRequest               // DELETE
)

// A file that ends by time is uploaded within uploadFor and kept for keptFor: long enough to be handed over on a slow machine,
// and two times as they usually are, for its hold moves from the one to the other when it is verified.
const (
	uploadFor = 15 * time.Second
	keptFor   = 20 * time.Second
)

// shortUploads are the parameters of a stack on which files end by time.
var shortUploads = map[string]string{"ReservationTTLSeconds": strconv.Itoa(int(uploadFor.Seconds()))}

// handOff takes a file its whole way, one step after the other, and counts each: reserved, uploaded, verified on the
// event of the upload, resolved, downloaded, ended with its bytes. Idempotent sends an Idempotency-Key.
func (l *lab) handOff(ctx context.Context, body []byte, idempotent bool, end ending) ([]step, error) {
	var steps []step
	key := l.stack.Key
	var s slot
	var link string
	start := l.count()
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{stepReserve, func() (err error) {
			headers, draft := map[string]string{}, map[string]any{"filename": "report.txt", "content_type": "text/plain", "size_bytes": len(body)}
			if idempotent {
				headers["Idempotency-Key"] = fmt.Sprintf("bench-%p", &s)
			}
			if end == byTime {
				draft["ttl_seconds"] = int(keptFor.Seconds())
			}
			s, err = l.reserveWith(ctx, key, headers, draft)
			return err
		}},
		{stepVerify, func() error {
			if err := l.upload(ctx, s, body); err != nil {
				return err
			}
			return l.settle(ctx, "the verification", func(now spent) bool {
				return now.since(start).s3["CopyObject"] > 0 && now.since(start).s3["DeleteObject"]+now.since(start).s3["DeleteObjects"] > 0
			})
		}},
		{stepResolve, func() (err error) { link, err = l.resolve(ctx, key, s); return err }},
		{stepDownload, func() error { return l.download(ctx, link, body) }},
		{stepEnd, func() error {
			before := l.count()
			if err := l.end(ctx, key, s, end); err != nil {
				return err
			}
			return l.settle(ctx, "the deletion", func(now spent) bool {
				return now.since(before).s3["DeleteObject"]+now.since(before).s3["DeleteObjects"] > 0
			})
		}},
	} {
		before := l.count()
		if err := part.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		took := l.count().since(before)
		if part.name == stepEnd && end == byTime {
			took = took.withoutSweep()
		}
		steps = append(steps, step{part.name, took})
	}
	return steps, nil
}

// end deletes a file or waits until its time is over and sweeps.
func (l *lab) end(ctx context.Context, key string, s slot, how ending) error {
	if how == onRequest {
		return l.call(ctx, 204, http.MethodDelete, "/v1/files/"+s.ID, key, nil, nil, nil)
	}
	select {
	case <-time.After(time.Until(s.Expires)): // the functions have the real clock
	case <-ctx.Done():
		return ctx.Err()
	}
	res, err := l.stack.Trigger(ctx, "sweep-expired")
	if err == nil && res.FunctionError != "" {
		err = fmt.Errorf("the sweep failed: %.300s", res.Payload)
	}
	return err
}

// sum adds steps up.
func sum(steps []step) spent {
	all := spent{dynamo: map[string]int{}, s3: map[string]int{}}
	for _, s := range steps {
		for op, n := range s.dynamo {
			all.dynamo[op] += n
		}
		for op, n := range s.s3 {
			all.s3[op] += n
		}
		all.write += s.write
		all.read += s.read
		all.index += s.index
		all.indexRead += s.indexRead
		all.objectBytes += s.objectBytes
	}
	return all
}
