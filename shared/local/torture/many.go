package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// many measures what sweeping and reconciling take when there is much to do: the peak memory of the function's process
// for a tenth of the files and for all of them, which must be about the same.
func many(ctx context.Context, root string, n int, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "claimcheck-many-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	functions := ""
	for _, function := range []string{"reconcile", "sweep-expired"} {
		var peaks []int
		for _, files := range []int{n / 10, n} {
			data := filepath.Join(dir, fmt.Sprint(function, files))
			peak, took, err := measure(ctx, root, data, functions, function, files)
			if err != nil {
				return fmt.Errorf("%s with %d files: %w", function, files, err)
			}
			fmt.Fprintf(progress, "%-14s %7d files: peak RSS %.1f MiB, %s\n", function, files, float64(peak)/1024, took.Round(time.Second))
			peaks = append(peaks, peak)
			if functions == "" {
				functions = filepath.Join(dir, "functions")
				if err := os.Rename(filepath.Join(data, "functions"), functions); err != nil {
					return err
				}
			}
			os.RemoveAll(data)
		}
		if peaks[1] > peaks[0]*2 { // for ten times the files; a few pages don't fill what is reused yet
			return fmt.Errorf("%s needs %d KiB for %d files and %d KiB for %d: its memory grows with them", function, peaks[0], n/10, peaks[1], n)
		}
	}
	return nil
}

// measure fills a stack with files and calls the function until it has handled them all.
func measure(ctx context.Context, root, data, functions, function string, n int) (peakKiB int, took time.Duration, err error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return 0, 0, err
	}
	if functions != "" {
		if err := os.CopyFS(filepath.Join(data, "functions"), os.DirFS(functions)); err != nil {
			return 0, 0, err
		}
	}
	ends := time.Now().Add(12 * time.Hour)
	if function == "sweep-expired" {
		ends = time.Now().Add(-time.Minute)
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "f_" + randomText(26)
	}
	if err := fillBucket(filepath.Join(data, "s3"), ids); err != nil {
		return 0, 0, err
	}
	log, err := os.Create(filepath.Join(data, "stack.log"))
	if err != nil {
		return 0, 0, err
	}
	defer log.Close()
	s, err := stack.Start(ctx, stack.Options{Root: root, Data: data, Log: log})
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	if err := fillTable(ctx, s, ids, ends); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for done := false; !done; {
		before, err := os.ReadFile(log.Name())
		if err != nil {
			return 0, 0, err
		}
		watched, stop := context.WithCancel(ctx)
		peak := make(chan int, 1)
		go func() { peak <- watch(watched, filepath.Join(data, "functions", function)) }()
		res, err := s.Trigger(ctx, function)
		stop()
		peakKiB = max(peakKiB, <-peak)
		// A busy machine may let it run out of time; the next call goes on.
		if err != nil || res.FunctionError != "" && !strings.Contains(string(res.Payload), "Timedout") {
			return 0, 0, fmt.Errorf("calling it: %s %v", res.Payload, err)
		}
		after, err := os.ReadFile(log.Name())
		if err != nil {
			return 0, 0, err
		}
		done = finished.Match(after[len(before):])
	}
	if peakKiB == 0 {
		return 0, 0, errors.New("found no process of it in /proc")
	}
	return peakKiB, time.Since(began), left(ctx, s, function, n)
}

// finished is what the two functions log when nothing is left to do.
var finished = regexp.MustCompile(`"behind":false|"finished":true`)

// left checks that the sweep has ended all files, and the reconcile none.
func left(ctx context.Context, s *stack.Stack, function string, n int) error {
	p, err := look(ctx, s, "")
	if err != nil {
		return err
	}
	live := 0
	for _, f := range p.files {
		if f.live() {
			live++
		}
	}
	want := n
	if function == "sweep-expired" {
		want = 0
	}
	if live != want || len(p.files) != n || len(p.ledger()) > 0 {
		return fmt.Errorf("%d of %d files are live, want %d: %v", live, len(p.files), want, p.ledger())
	}
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

func randomText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// fillBucket writes the sealed objects of files into the folder of a local S3 that is not running yet.
func fillBucket(dir string, ids []string) error {
	for _, sub := range []string{"objects", "blobs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	for _, id := range ids {
		key := sealedKey(id)
		text, err := json.Marshal(map[string]any{"key": key, "blob": id, "size": 5, "etag": "e", "modified": time.Now().Add(-3 * time.Hour).UTC()})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "objects", sum([]byte(key))), text, 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "blobs", id), []byte("bytes"), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sealedKey(id string) string { return "files/" + id + "/e" }

// fillTable writes ready files that end at ends, with their holds and the counters of their account.
func fillTable(ctx context.Context, s *stack.Stack, ids []string, ends time.Time) error {
	client := dynamodb.New(dynamodb.Options{
		Region: stack.Region, BaseEndpoint: aws.String("http://table"), HTTPClient: direct{s.Dynamo()},
		Credentials: credentials.NewStaticCredentialsProvider("fill", "fill", ""),
	})
	table := s.Template().Tables[0].Name
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	number := func(v int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
	}
	var batch []types.WriteRequest
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		out, err := client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: batch}})
		if err == nil && len(out.UnprocessedItems) > 0 {
			err = errors.New("the table did not take all items of a batch")
		}
		batch = batch[:0]
		return err
	}
	put := func(item map[string]types.AttributeValue) error {
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
		if len(batch) == 24 {
			return flush()
		}
		return nil
	}
	// The counters first: the minute's own sweep may begin before the last file is there.
	if err := put(map[string]types.AttributeValue{
		"pk": text("account#many"), "sk": text("usage"),
		"bytes": number(int64(5 * len(ids))), "files": number(int64(len(ids))), "moves": number(int64(len(ids))),
	}); err != nil {
		return err
	}
	created, end := ends.Add(-13*time.Hour).Unix(), ends.Unix()
	for _, id := range ids {
		shard := fnv.New32a()
		io.WriteString(shard, id)
		err := errors.Join(put(map[string]types.AttributeValue{
			"pk": text(id), "sk": text("file"), "list_pk": text("files#many"), "list_sk": text(fmt.Sprintf("%012d#%s", created, id)),
			"ttl": number(end + 172800), "write": text("fill"), "account": text("many"), "actor": text("ada"), "state": text("ready"),
			"purpose": text("upload"), "filename": text("file"), "content_type": text(anyType), "charged": number(5), "size": number(5),
			"created_at": number(created), "upload_by": number(created + 3600), "expires_at": number(end), "verified_at": number(created + 1),
			"sealed": text(sealedKey(id)), "sha256": text(sum([]byte("bytes"))),
		}), put(map[string]types.AttributeValue{
			"pk": text("hold#many"), "sk": text(fmt.Sprintf("%012d#%s", end, id)),
			"due_pk": text(fmt.Sprintf("%d#%d", end/60, shard.Sum32()%8)), "actor": text("ada"), "bytes": number(5),
		}))
		if err != nil {
			return err
		}
	}
	return flush()
}

var peakLine = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// watch returns the largest resident size in KiB, while ctx lasts, of any process of a binary. Linux only.
func watch(ctx context.Context, binary string) (peak int) {
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		peak = max(peak, peakOf(binary))
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return max(peak, peakOf(binary))
		}
	}
}

// peakOf is 0 when there is no such process.
func peakOf(binary string) (peak int) {
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	for _, p := range processes {
		if exe, err := os.Readlink(filepath.Join(p, "exe")); err != nil || exe != binary {
			continue
		}
		status, err := os.ReadFile(filepath.Join(p, "status"))
		if err != nil {
			continue // it has just ended
		}
		if m := peakLine.FindSubmatch(status); m != nil {
			n, _ := strconv.Atoi(string(m[1])) // digits
			peak = max(peak, n)
		}
	}
	return peak
}
