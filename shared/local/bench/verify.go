package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"
)

// sample is an object to verify.
type sample struct {
	name, contentType string
	body              []byte
	limit             int64 // of bytes read, by perf.md
}

const (
	headBytes = 4 << 10
	tailBytes = 64 << 10
)

// samples are objects of each kind: of 1 MB, of big bytes and a ZIP whose directory is at its end.
func samples(big int) ([]sample, error) {
	archive, err := document(3 << 20)
	if err != nil {
		return nil, err
	}
	return []sample{
		{"1 MB", "application/octet-stream", noise(1_000_000), headBytes},
		{size(big), "application/octet-stream", noise(big), headBytes},
		{"ZIP (.docx, 3 MiB)", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", archive, headBytes + tailBytes},
	}, nil
}

func size(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// noise is bytes that no compression and no sniffing makes anything of.
func noise(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(b)
	b[0] = 0
	return b
}

// document is a word processor's file with an image of n bytes in it.
func document(n int) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, part := range []struct {
		name string
		body []byte
	}{
		{"word/media/image1.bin", noise(n)},
		{"[Content_Types].xml", []byte(`<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`)},
		{"_rels/.rels", []byte(`<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>`)},
		{"word/document.xml", []byte(`<?xml version="1.0"?><document/>`)},
	} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: part.name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(part.body)
		}
		if err != nil {
			return nil, fmt.Errorf("making a document: %w", err)
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// verified is what the verification of one sample took.
type verified struct {
	sample
	read int64  // bytes of the object
	cpu  series // of the verifying function, in ms, for an event after a while at rest
}

// verify uploads a sample as often as told and measures how the function on its event verifies it.
func (l *lab) verify(ctx context.Context, s sample, times int) (verified, error) {
	v := verified{sample: s}
	program := filepath.Join(l.data, "functions", "verify-upload")
	for range times {
		slot, err := l.reserve(ctx, l.stack.Key, "sample", s.contentType, len(s.body))
		if err != nil {
			return v, err
		}
		before, cpuBefore, err := l.look(program)
		if err != nil {
			return v, err
		}
		if err := l.upload(ctx, slot, s.body); err != nil {
			return v, err
		}
		if err := l.settle(ctx, "the verification", func(now spent) bool {
			return now.since(before).s3["CopyObject"] > 0 && now.since(before).s3["DeleteObject"]+now.since(before).s3["DeleteObjects"] > 0
		}); err != nil {
			return v, err
		}
		after, cpuAfter, err := l.look(program)
		if err != nil {
			return v, err
		}
		v.read = max(v.read, after.since(before).objectBytes)
		add(&v.cpu, milliseconds(cpuAfter-cpuBefore))
		var file struct{ State string }
		if err := l.call(ctx, 200, http.MethodGet, "/v1/files/"+slot.ID, l.stack.Key, nil, nil, &file); err != nil {
			return v, err
		}
		if file.State != "ready" {
			return v, fmt.Errorf("the %s was not verified: it is %s", s.name, file.State)
		}
		if err := l.call(ctx, 204, http.MethodDelete, "/v1/files/"+slot.ID, l.stack.Key, nil, nil, nil); err != nil {
			return v, err
		}
		if err := l.settle(ctx, "the deletion", func(spent) bool { return true }); err != nil {
			return v, err
		}
	}
	return v, nil
}

// look reads the counters and the CPU time of all instances of a function; where that can't be read it stays 0.
func (l *lab) look(program string) (spent, time.Duration, error) {
	c := l.count()
	if supported() != nil {
		return c, 0, nil
	}
	pids, err := processesOf(program)
	if err != nil {
		return c, 0, err
	}
	var all time.Duration
	for _, pid := range pids {
		cpu, err := cpuOf(pid)
		if err != nil {
			return c, 0, err
		}
		all += cpu
	}
	return c, all, nil
}
