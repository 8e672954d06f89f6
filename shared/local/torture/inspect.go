package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/local/stack"
)

// row is one item of the table; what is not text, number or boolean is left out.
type row map[string]string

func (r row) int(name string) int64 {
	n, _ := strconv.ParseInt(r[name], 10, 64)
	return n
}

func (r row) live() bool {
	return r["state"] == "reserved" || r["state"] == "ready" || r["state"] == "claimed"
}

// object is one object of the bucket.
type object struct {
	Key    string
	Blob   string
	Size   int64
	digest string
}

// picture is all that the stack holds at one moment, read behind the service's back.
type picture struct {
	files    map[string]row
	holds    []row
	counters map[string]row // by pk and sk
	objects  map[string]object
}

// direct carries requests of an SDK client straight into a server.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = io.NopCloser(bytes.NewReader(nil))
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// look takes the picture, of the objects only when data is not "". Nothing may be under way.
func look(ctx context.Context, s *stack.Stack, data string) (*picture, error) {
	client := dynamodb.New(dynamodb.Options{
		Region: stack.Region, BaseEndpoint: aws.String("http://table"), HTTPClient: direct{s.Dynamo()},
		Credentials: credentials.NewStaticCredentialsProvider("look", "look", ""),
	})
	p := &picture{files: map[string]row{}, counters: map[string]row{}, objects: map[string]object{}}
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &s.Template().Tables[0].Name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			r := row{}
			for name, v := range item {
				switch v := v.(type) {
				case *types.AttributeValueMemberS:
					r[name] = v.Value
				case *types.AttributeValueMemberN:
					r[name] = v.Value
				case *types.AttributeValueMemberBOOL:
					r[name] = strconv.FormatBool(v.Value)
				}
			}
			switch {
			case r["sk"] == "file":
				p.files[r["pk"]] = r
			case strings.HasPrefix(r["pk"], "hold#"):
				p.holds = append(p.holds, r)
			case strings.HasPrefix(r["pk"], "account#"):
				p.counters[r["pk"]+" "+r["sk"]] = r
			}
		}
	}
	if data == "" {
		return p, nil
	}
	return p, p.lookAtObjects(filepath.Join(data, "s3"))
}

// lookAtObjects reads the folder of the local S3: one JSON file for each object, which names its blob.
func (p *picture) lookAtObjects(dir string) error {
	descriptions, err := filepath.Glob(filepath.Join(dir, "objects", "*"))
	if err != nil {
		return err
	}
	for _, path := range descriptions {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var o object
		if err := json.Unmarshal(text, &o); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		bytes, err := os.ReadFile(filepath.Join(dir, "blobs", o.Blob))
		if err != nil {
			return err
		}
		o.digest = sum(bytes)
		p.objects[o.Key] = o
	}
	return nil
}

// ledger checks that holds, counters and live files are the same three times.
func (p *picture) ledger() (bad []string) {
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	type totals struct{ bytes, files, reservations, unsized int64 }
	want := map[string]totals{} // by pk and sk of the counters
	held := map[string]row{}
	for _, h := range p.holds {
		account := "account#" + strings.TrimPrefix(h["pk"], "hold#")
		_, id, _ := strings.Cut(h["sk"], "#")
		if held[id] != nil {
			report("%s has two holds", id)
		}
		held[id] = h
		t := want[account+" usage"]
		t.bytes, t.files = t.bytes+h.int("bytes"), t.files+1
		want[account+" usage"] = t
		if h["counted"] == "true" {
			key := account + " actor#" + h["actor"]
			t := want[key]
			t.reservations, t.unsized = t.reservations+1, t.unsized+h.int("unsized")
			want[key] = t
		}
	}
	for id, f := range p.files {
		h := held[id]
		delete(held, id)
		deadline := f.int("expires_at")
		if f["state"] == "reserved" {
			deadline = f.int("upload_by")
		}
		switch {
		case f.live() && h == nil:
			report("%s is %s but nothing holds its quota", id, f["state"])
		case !f.live() && h != nil:
			report("%s is %s but its quota is still held", id, f["state"])
		case h != nil && (h["pk"] != "hold#"+f["account"] || h.int("bytes") != f.int("charged") || !strings.HasPrefix(h["sk"], fmt.Sprintf("%012d#", deadline))):
			report("the hold of %s (%v) is not that of %v", id, h, f)
		case h != nil && (h["counted"] == "true") != (f["state"] == "reserved" && f["counted"] == "true"):
			report("the hold of %s counts as a reservation: %q, though it is %s", id, h["counted"], f["state"])
		}
	}
	for id := range held {
		report("there is a hold of %s, which does not exist", id)
	}
	for key, c := range p.counters {
		got := totals{c.int("bytes"), c.int("files"), c.int("reservations"), c.int("unsized")}
		if got != want[key] {
			report("the counters of %s are %+v, the holds add up to %+v", key, got, want[key])
		}
		delete(want, key)
	}
	for key, t := range want {
		report("there are no counters of %s, the holds add up to %+v", key, t)
	}
	slices.Sort(bad)
	return bad
}

// bytesAtRest checks records against objects once every queue is empty: each live record has its object, and no object
// is there without one.
func (p *picture) bytesAtRest(now time.Time) (bad, orphans []string) {
	report := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	named := map[string]bool{}
	for id, f := range p.files {
		if f["state"] != "ready" && f["state"] != "claimed" {
			continue
		}
		named[f["sealed"]] = true
		o, ok := p.objects[f["sealed"]]
		switch {
		case !ok && now.Unix() < f.int("expires_at"):
			report("%s is %s, but its object %s does not exist", id, f["state"], f["sealed"])
		case ok && (o.digest != f["sha256"] || o.Size != f.int("size")):
			report("the object %s has other bytes than were verified", f["sealed"])
		}
	}
	for key := range p.objects {
		if named[key] {
			continue
		}
		kind, rest, _ := strings.Cut(key, "/")
		id, _, _ := strings.Cut(rest, "/")
		f := p.files[id]
		orphans = append(orphans, fmt.Sprintf("%s, whose file is %q (ended %s)", key, f["state"], time.Unix(f.int("ended_at"), 0).UTC().Format("15:04:05")))
		if kind != "staging" && kind != "files" {
			report("an object at %s", key)
		}
	}
	slices.Sort(bad)
	slices.Sort(orphans)
	return bad, orphans
}
