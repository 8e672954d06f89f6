package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/aws/aws-lambda-go/events"
)

// uploads makes events for verify-upload, out of the function's sample.
type uploads struct {
	batch  events.SQSEvent
	upload events.S3Event
	count  int
}

func newUploads(root, bucket string) (*uploads, error) {
	u := &uploads{}
	if err := readSample(root, folderVerify, &u.batch); err != nil {
		return nil, err
	}
	if len(u.batch.Records) == 1 {
		if err := json.Unmarshal([]byte(u.batch.Records[0].Body), &u.upload); err != nil {
			return nil, fmt.Errorf("reading the message in the sample event: %w", err)
		}
	}
	if len(u.upload.Records) != 1 {
		return nil, fmt.Errorf("the sample event has %d messages and %d uploads, not one of each", len(u.batch.Records), len(u.upload.Records))
	}
	u.upload.Records[0].S3.Bucket.Name = bucket
	return u, nil
}

// next is the event of another upload.
func (u *uploads) next() []byte {
	u.count++
	u.upload.Records[0].S3.Object.Key = fmt.Sprintf("staging/f_%026d", u.count)
	body, err := json.Marshal(u.upload)
	if err != nil {
		panic(err) // it was JSON before
	}
	u.batch.Records[0].Body = string(body)
	text, err := json.Marshal(u.batch)
	if err != nil {
		panic(err)
	}
	return text
}

// checkVerified refuses an answer that reports a message as failed.
func checkVerified(body []byte) error {
	var answer struct{ BatchItemFailures []any }
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.BatchItemFailures) > 0 {
		return fmt.Errorf("verify-upload answered %.300s", body)
	}
	return nil
}

// compared is the CPU time of an event, in ms: of the function that verifies an object, and of the peer that reads it.
type compared struct{ verify, stream series }

// compareVerification has the function verify the object of the stand-ins, and the peer download and hash it, by turns:
// in each round the function gets a run of later events and the peer one.
func compareVerification(ctx context.Context, root, out string, s *standIns, n rounds, progress io.Writer) (compared, error) {
	var c compared
	env, err := environment(root, folderVerify, s)
	if err != nil {
		return c, err
	}
	sample, err := newUploads(root, env["BUCKET_NAME"])
	if err != nil {
		return c, err
	}
	env["AWS_CA_BUNDLE"], env["AWS_ENDPOINT_URL_S3"] = s.AWS, s.S3
	function, err := begin(ctx, folderVerify, []string{filepath.Join(out, folderVerify, "bootstrap")}, env)
	if err != nil {
		return c, err
	}
	defer function.stop()
	peer, err := begin(ctx, stream, []string{filepath.Join(out, stream, "bootstrap")}, map[string]string{"SSL_CERT_FILE": s.CA})
	if err != nil {
		return c, err
	}
	defer peer.stop()

	object := fmt.Appendf(nil, `{"url":%q}`, s.S3+"/object")
	read := func() []byte { return object }
	anything := func([]byte) error { return nil } // the peer answers an error by itself
	if _, err := function.cpuOfEvents(ctx, warmUp, sample.next, checkVerified, nil); err != nil {
		return c, err
	}
	if _, err := peer.cpuOfEvents(ctx, 1, read, anything, nil); err != nil { // opens the connection
		return c, err
	}
	for round := range n.warm {
		cpu, err := function.cpuOfEvents(ctx, n.events, sample.next, checkVerified, nil)
		if err != nil {
			return c, err
		}
		add(&c.verify, cpu)
		if cpu, err = peer.cpuOfEvents(ctx, 1, read, anything, nil); err != nil {
			return c, err
		}
		add(&c.stream, cpu)
		fmt.Fprintf(progress, "\rverifications %d/%d ", round+1, n.warm)
	}
	fmt.Fprintln(progress)
	return c, nil
}
