package main

import (
	"context"
	"fmt"
	"net/http"
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

// handOff takes a file its whole way, one step after the other, and counts each: reserved, uploaded, verified on the
// event of the upload, resolved, downloaded, deleted with its bytes. Idempotent sends an Idempotency-Key.
func (l *lab) handOff(ctx context.Context, body []byte, idempotent bool) ([]step, error) {
	var steps []step
	key := l.stack.Key
	at := func(name string, do func() error) error {
		before := l.count()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		steps = append(steps, step{name, l.count().since(before)})
		return nil
	}
	var s slot
	var link string
	start := l.count()
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{stepReserve, func() (err error) {
			var headers map[string]string
			if idempotent {
				headers = map[string]string{"Idempotency-Key": fmt.Sprintf("bench-%p", &s)}
			}
			s, err = l.reserve(ctx, key, headers, "report.txt", "text/plain", len(body))
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
			if err := l.call(ctx, 204, http.MethodDelete, "/v1/files/"+s.ID, key, nil, nil, nil); err != nil {
				return err
			}
			return l.settle(ctx, "the deletion", func(now spent) bool {
				return now.since(before).s3["DeleteObject"]+now.since(before).s3["DeleteObjects"] > 0
			})
		}},
	} {
		if err := at(part.name, part.do); err != nil {
			return nil, err
		}
	}
	return steps, nil
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
		all.objectBytes += s.objectBytes
	}
	return all
}
