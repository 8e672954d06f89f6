package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// inline stores content in one request.
func (t *target) inline(ctx context.Context, query string, content []byte, header ...string) (file, answer, error) {
	var f file
	got, err := t.api(ctx, "POST", "/v1/files"+query, content, header...)
	if err == nil && got.status == 201 {
		err = got.into(&f)
	}
	return f, got, err
}

// gateway are the facts about the HTTP API between a client and a function, and about what
// many requests at once do.
var gateway = []fact{
	{"every byte passes through the API as octet-stream", func(ctx context.Context, t *target) (string, error) {
		var content []byte
		for i := range 4096 {
			content = append(content, byte(i), byte(i>>4))
		}
		f, got, err := t.inline(ctx, "", content, "Content-Type", "application/octet-stream")
		if err == nil {
			err = got.want(201)
		}
		if err == nil && f.SHA256 != hexSum(content) {
			err = errors.New("other bytes were stored")
		}
		return "8 KiB of all values, SHA-256 as computed here", err
	}},
	{"4 MiB pass in one request", func(ctx context.Context, t *target) (string, error) {
		_, got, err := t.inline(ctx, "", noise(4<<20), "Content-Type", "application/octet-stream")
		if err != nil {
			return "", err
		}
		return got.String(), got.want(201)
	}},
	{"the gateway answers 413 above 10 MB", func(ctx context.Context, t *target) (string, error) {
		_, got, err := t.inline(ctx, "", noise(10<<20+1), "Content-Type", "application/octet-stream")
		if err != nil {
			return "", err
		}
		return got.String() + " " + short(got), got.want(413)
	}},
	{"the gateway refuses headers over 10,240 bytes", func(ctx context.Context, t *target) (string, error) {
		got, err := t.api(ctx, "GET", "/healthz", nil, "X-Filler", strings.Repeat("x", 11000))
		if err != nil {
			return "", err
		}
		return got.String() + " " + short(got), got.want(400, 413, 431, 494)
	}},
	{"text passes when its digest does", func(ctx context.Context, t *target) (string, error) {
		content := []byte("caffè ☃\n")
		f, got, err := t.inline(ctx, "", content, "Content-Type", "text/plain; charset=utf-8", "Repr-Digest", digest(content))
		if err == nil {
			err = got.want(201)
		}
		if err == nil && f.SHA256 != hexSum(content) {
			err = errors.New("other bytes were stored")
		}
		return "UTF-8 stored as sent", err
	}},
	{"text that is not UTF-8 arrives damaged and is refused, never stored otherwise", func(ctx context.Context, t *target) (string, error) {
		content := []byte("caff\xe8\n") // Latin-1
		f, got, err := t.inline(ctx, "", content, "Content-Type", "text/plain; charset=iso-8859-1", "Repr-Digest", digest(content))
		if err != nil {
			return "", err
		}
		if got.status == 201 && f.SHA256 == hexSum(content) {
			return "Latin-1 passed unharmed: stricter than needed here", nil
		}
		return got.String(), got.wantCode(415, "unsupported_media_type")
	}},
	{"text without a digest is refused", func(ctx context.Context, t *target) (string, error) {
		_, got, err := t.inline(ctx, "", []byte("hello\n"), "Content-Type", "text/plain")
		if err != nil {
			return "", err
		}
		return got.String(), got.wantCode(415, "unsupported_media_type")
	}},
	{"query parameters arrive decoded once", func(ctx context.Context, t *target) (string, error) {
		f, got, err := t.inline(ctx, "?filename=a%2Bb%20c+d%26%25.bin", []byte("x"), "Content-Type", "application/octet-stream")
		if err == nil {
			err = got.want(201)
		}
		if err == nil && f.Filename != "a+b c d&%.bin" {
			err = fmt.Errorf("the file is called %q", f.Filename)
		}
		return "a+b c d&%.bin", err
	}},
	{"a refusal for want of a key has our shape", func(ctx context.Context, t *target) (string, error) {
		got, err := t.api(ctx, "GET", "/v1/files", nil, "Authorization", "Bearer nothing")
		if err == nil {
			err = got.wantCode(401, "unauthorized")
		}
		if err == nil && got.header.Get("WWW-Authenticate") == "" {
			err = errors.New("401 without WWW-Authenticate")
		}
		if err == nil {
			err = problem(got)
		}
		return got.String() + " with WWW-Authenticate", err
	}},
	{"unknown routes and methods answer 404 in our shape", func(ctx context.Context, t *target) (string, error) {
		for _, route := range [][2]string{{"GET", "/v1/nothing"}, {"PUT", "/v1/files"}, {"DELETE", "/healthz"}, {"GET", "/"}, {"PATCH", "/v1/files/f_x"}} {
			got, err := t.api(ctx, route[0], route[1], nil)
			if err == nil {
				err = got.wantCode(404, "route_not_found")
			}
			if err == nil {
				err = problem(got)
			}
			if err != nil {
				return "", fmt.Errorf("%s %s: %w", route[0], route[1], err)
			}
		}
		return "404 route_not_found", nil
	}},
	{"HEAD is answered where it is a route, and nowhere else", func(ctx context.Context, t *target) (string, error) {
		f, err := t.stored(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		with, err := t.api(ctx, "HEAD", "/v1/files/"+f.ID+"/content", nil)
		if err == nil {
			err = with.want(302)
		}
		if err != nil {
			return "", err
		}
		without, err := t.api(ctx, "HEAD", "/v1/files/"+f.ID, nil)
		if err != nil {
			return "", err
		}
		return "302 on content, 404 on the file", without.want(404)
	}},
	{"missing and malformed ids answer alike", func(ctx context.Context, t *target) (string, error) {
		first := ""
		for _, id := range []string{"f_aaaaaaaaaaaaaaaaaaaaaaaaaa", "nonsense", "F_AAAAAAAAAAAAAAAAAAAAAAAAAA", "f_%C3%A9", "a%2Fb"} {
			got, err := t.api(ctx, "GET", "/v1/files/"+id, nil)
			if err != nil {
				return "", err
			}
			text := requestID.ReplaceAllString(string(got.body), "")
			if first == "" {
				first = text
			}
			if got.status != 404 || id != "a%2Fb" && text != first {
				return "", fmt.Errorf("%s: got %s, not what another id got", id, got)
			}
		}
		return "404 file_not_found with the same body", nil
	}},
	{"one Idempotency-Key makes one file, however many come at once", func(ctx context.Context, t *target) (string, error) {
		key := hexSum(noise(16))[:32]
		answers := atOnce(8, func(int) (answer, error) {
			return send(ctx, "POST", t.url+"/v1/uploads", []byte(`{"filename":"a","size_bytes":1}`),
				"Authorization", "Bearer "+t.key, "Idempotency-Key", key)
		})
		ids, busy := map[string]bool{}, 0
		for _, a := range answers {
			if a.err != nil {
				return "", a.err
			}
			if a.status == 503 { // a write conflict that outlasted its retries
				busy++
				continue
			}
			var f file
			if err := errors.Join(a.want(201), a.into(&f)); err != nil {
				return "", err
			}
			ids[f.ID] = true
			t.remember(f.ID)
		}
		if len(ids) != 1 {
			return "", fmt.Errorf("8 requests made %d files", len(ids))
		}
		return fmt.Sprintf("8 at once, one file, %d times 503", busy), nil
	}},
	{"one claim wins, however many come at once", func(ctx context.Context, t *target) (string, error) {
		f, err := t.stored(ctx, noise(10), `,"single_use":true`)
		if err != nil {
			return "", err
		}
		answers := atOnce(8, func(i int) (answer, error) {
			return t.api(ctx, "POST", "/v1/files/"+f.ID+"/claims", fmt.Appendf(nil, `{"holder":"smoke-%d"}`, i))
		})
		won := 0
		for _, a := range answers {
			if a.err != nil {
				return "", a.err
			}
			if err := a.want(201, 409, 503); err != nil {
				return "", err
			}
			if a.status == 201 {
				won++
			}
		}
		if won != 1 {
			return "", fmt.Errorf("%d of 8 claims won", won)
		}
		return "8 at once, one winner", nil
	}},
}

var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

// problem is an error unless the answer is problem+json from a function.
func problem(a answer) error {
	if a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("X-Request-Id") == "" {
		return fmt.Errorf("%s is no problem+json with X-Request-Id but %q", a, a.header.Get("Content-Type"))
	}
	return nil
}

// short is a body that is not ours, cut.
func short(a answer) string {
	return string(bytes.TrimSpace(a.body[:min(len(a.body), 80)]))
}
