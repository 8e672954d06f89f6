package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// refusal is a fact of the kind "S3 refuses an upload that differs so": attempt makes it,
// and the answer must be the status with one of the codes.
func refusal(text string, more string, attempt func(ctx context.Context, f file, content []byte) (answer, error), status int, codes ...string) fact {
	return fact{text, func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, more)
		if err != nil {
			return "", err
		}
		got, err := attempt(ctx, f, content)
		if err != nil {
			return "", err
		}
		return got.String(), got.wantCode(status, codes...)
	}}
}

// uploads are the facts about presigned PUTs, their refusals and verification.
var uploads = []fact{
	{"a PUT with exactly the headers of the reservation is stored", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, "")
		if err != nil {
			return "", err
		}
		got, err := f.put(ctx, content)
		if err != nil {
			return "", err
		}
		return got.String(), got.want(200)
	}},
	refusal("S3 refuses another length", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return f.put(ctx, append(content, 0))
	}, 403, "SignatureDoesNotMatch"),
	refusal("S3 refuses another type", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return f.put(ctx, content, "Content-Type", "text/html")
	}, 403, "SignatureDoesNotMatch"),
	refusal("S3 refuses a PUT without If-None-Match", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return f.put(ctx, content, "If-None-Match", "")
	}, 403, "SignatureDoesNotMatch", "AccessDenied"),
	refusal("S3 refuses a header x-amz-* that was not signed", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return f.put(ctx, content, "X-Amz-Meta-Extra", "1")
	}, 403, "AccessDenied"),
	refusal("S3 refuses an Authorization header beside the signed query", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return f.put(ctx, content, "Authorization", "Bearer nothing")
	}, 400, "InvalidArgument"),
	refusal("S3 refuses a life longer than was signed", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		return send(ctx, "PUT", withQuery(f.Upload.URL, "X-Amz-Expires", "604800"), content, f.headers()...)
	}, 403, "SignatureDoesNotMatch"),
	refusal("S3 refuses to read with the URL of an upload", "", func(ctx context.Context, f file, _ []byte) (answer, error) {
		return send(ctx, "GET", f.Upload.URL, nil)
	}, 403, "SignatureDoesNotMatch", "AccessDenied"),
	refusal("S3 refuses whoever has no signature", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		bare, _, _ := strings.Cut(f.Upload.URL, "?")
		return send(ctx, "PUT", bare, content, f.headers()...)
	}, 403, "AccessDenied"),
	refusal("S3 refuses upload forms", "", func(ctx context.Context, f file, content []byte) (answer, error) {
		u, err := url.Parse(f.Upload.URL)
		if err != nil {
			return answer{}, errors.New("the upload URL is not valid")
		}
		key := u.Path[strings.Index(u.Path, "staging/"):]
		u.RawQuery, u.Path = "", strings.TrimSuffix(u.Path, key)
		var form bytes.Buffer
		fmt.Fprintf(&form, "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n%s\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n%s\r\n--x--\r\n", key, content)
		return send(ctx, "POST", u.String(), form.Bytes(), "Content-Type", "multipart/form-data; boundary=x")
	}, 403, "AccessDenied"),
	{"S3 refuses a body without a length", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, "")
		if err != nil {
			return "", err
		}
		// A reader that does not know its length is sent in chunks.
		got, err := sendFrom(ctx, plain, "PUT", f.Upload.URL, io.MultiReader(bytes.NewReader(content)), f.headers()...)
		if err != nil {
			return "", err
		}
		return got.String(), got.want(403, 411, 501)
	}},
	{"S3 refuses other bytes under a signed SHA-256, and keeps none", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, `,"sha256":"`+hexSum(content)+`"`)
		if err != nil {
			return "", err
		}
		got, err := f.put(ctx, noise(1000))
		if err == nil {
			err = got.wantCode(400, "BadDigest", "XAmzContentChecksumMismatch")
		}
		if err != nil {
			return "", err
		}
		after, err := t.api(ctx, "POST", "/v1/uploads/"+f.ID+"/complete", nil)
		if err != nil {
			return "", err
		}
		return got.String() + ", then " + after.String(), after.wantCode(409, "not_uploaded")
	}},
	{"S3 refuses a second PUT while the first is staged", func(ctx context.Context, t *target) (string, error) {
		// Verification takes the staged object away, so the second may come too late: try a few times.
		for range 5 {
			content := noise(1000)
			f, err := t.reserve(ctx, content, "")
			if err != nil {
				return "", err
			}
			answers := atOnce(4, func(int) (answer, error) { return f.put(ctx, content) })
			stored, refused := 0, 0
			for _, a := range answers {
				if a.err != nil {
					return "", a.err
				}
				if err := a.want(200, 409, 412); err != nil {
					return "", err
				}
				if a.status == 200 {
					stored++
				} else {
					refused++
				}
			}
			if stored == 1 && refused == 3 {
				return "of four at once one was stored, three got 412 or 409", nil
			}
		}
		return "", errors.New("of four PUTs at once never exactly one was stored")
	}},
	{"a replayed PUT never changes verified bytes", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, "")
		if err != nil {
			return "", err
		}
		if got, err := f.put(ctx, content); err != nil || got.status != 200 {
			return "", fmt.Errorf("uploading: %s %w", got, err)
		}
		if got, err := t.api(ctx, "POST", "/v1/uploads/"+f.ID+"/complete", nil); err != nil || got.status != 200 {
			return "", fmt.Errorf("completing: %s %w", got, err)
		}
		replay, err := f.put(ctx, noise(1000))
		if err == nil {
			err = replay.want(200, 409, 412)
		}
		if err != nil {
			return "", err
		}
		link, _, err := t.link(ctx, f.ID, 0)
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", link, nil)
		if err != nil {
			return "", err
		}
		return "the replay got " + replay.String() + ", the bytes are the first ones", same(got, content)
	}},
	{"an upload URL ends with the second it names", func(ctx context.Context, t *target) (string, error) {
		content := noise(10)
		f, err := t.reserve(ctx, content, `,"ttl_seconds":3`)
		if err != nil {
			return "", err
		}
		if err := until(ctx, f.Upload.ExpiresAt); err != nil {
			return "", err
		}
		got, err := f.put(ctx, content)
		if err != nil {
			return "", err
		}
		return got.String(), got.wantCode(403, "AccessDenied")
	}},
	{"the URL says what expires_at says, and carries one session token", func(ctx context.Context, t *target) (string, error) {
		f, err := t.reserve(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		u, err := url.Parse(f.Upload.URL)
		if err != nil {
			return "", errors.New("the upload URL is not valid")
		}
		q := u.Query()
		signed, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
		seconds, err2 := strconv.Atoi(q.Get("X-Amz-Expires"))
		if err := errors.Join(err, err2); err != nil {
			return "", errors.New("X-Amz-Date or X-Amz-Expires is missing")
		}
		if ends := signed.Add(time.Duration(seconds) * time.Second); ends.Before(f.Upload.ExpiresAt) || ends.Sub(f.Upload.ExpiresAt) > time.Second {
			return "", fmt.Errorf("the URL ends at %s, expires_at is %s", ends.Format(time.TimeOnly), f.Upload.ExpiresAt.Format(time.TimeOnly))
		}
		if n := len(q["X-Amz-Security-Token"]); n != 1 {
			return "", fmt.Errorf("%d session tokens in the query", n)
		}
		return fmt.Sprintf("%d s from its date, one token", seconds), nil
	}},
	{"a page of another origin may upload", func(ctx context.Context, t *target) (string, error) {
		f, err := t.reserve(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "OPTIONS", f.Upload.URL, nil, "Origin", "https://smoke.example",
			"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "content-type,if-none-match,x-amz-checksum-sha256")
		if err == nil {
			err = got.want(200, 204)
		}
		if err != nil {
			return "", err
		}
		if got.header.Get("Access-Control-Allow-Origin") == "" || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "PUT") {
			return "", errors.New("the preflight allows no PUT (CorsAllowedOrigins may name other origins)")
		}
		return got.String() + ", allowed", nil
	}},
	{"S3 takes no upload over plain HTTP", func(ctx context.Context, t *target) (string, error) {
		if !t.cloud {
			return "", notHere{"the local S3 speaks plain HTTP"}
		}
		content := noise(10)
		f, err := t.reserve(ctx, content, "")
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "PUT", "http"+strings.TrimPrefix(f.Upload.URL, "https"), content, f.headers()...)
		if err != nil {
			return "", err
		}
		return got.String(), got.wantCode(403, "AccessDenied")
	}},
	{"S3 takes no TLS below 1.2", func(ctx context.Context, t *target) (string, error) {
		if !t.cloud {
			return "", notHere{"the local S3 speaks plain HTTP"}
		}
		f, err := t.reserve(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		old := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}}}
		got, err := sendFrom(ctx, old, "PUT", f.Upload.URL, bytes.NewReader(noise(10)), f.headers()...)
		if err != nil {
			return "no handshake", nil
		}
		return got.String(), got.want(403)
	}},
	{"the event alone verifies what was uploaded", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.reserve(ctx, content, "")
		if err != nil {
			return "", err
		}
		if got, err := f.put(ctx, content); err != nil || got.status != 200 {
			return "", fmt.Errorf("uploading: %s %w", got, err)
		}
		began := time.Now()
		err = eventually(ctx, func() (bool, error) {
			got, err := t.api(ctx, "GET", "/v1/files/"+f.ID, nil)
			if err == nil {
				err = got.into(&f)
			}
			return f.State == "ready", err
		})
		return "ready after " + time.Since(began).Round(100*time.Millisecond).String(), err
	}},
	{"the copy has the digest of the whole file, a large one too", func(ctx context.Context, t *target) (string, error) {
		content := noise(20 << 20)
		f, err := t.stored(ctx, content, "")
		if err != nil {
			return "", err
		}
		if f.SHA256 != hexSum(content) {
			return "", fmt.Errorf("20 MiB have the digest %q", f.SHA256)
		}
		return "20 MiB, SHA-256 as computed here", nil
	}},
	{"the copy drops a Content-Encoding that the client sent", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.stored(ctx, content, "", "Content-Encoding", "gzip")
		if err != nil {
			return "", err
		}
		link, _, err := t.link(ctx, f.ID, 0)
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", link, nil)
		if err == nil {
			err = same(got, content)
		}
		if err != nil {
			return "", err
		}
		if e := got.header.Get("Content-Encoding"); e != "" {
			return "", fmt.Errorf("the download says Content-Encoding: %s", e)
		}
		return "the download has none", nil
	}},
}

// withQuery replaces a member of a query.
func withQuery(link, name, value string) string {
	u, err := url.Parse(link)
	if err != nil {
		return link
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// outcome is one of several answers.
type outcome struct {
	answer
	err error
}

// atOnce sends n requests together.
func atOnce(n int, send func(i int) (answer, error)) []outcome {
	out := make([]outcome, n)
	done := make(chan struct{})
	for i := range n {
		go func() {
			out[i].answer, out[i].err = send(i)
			done <- struct{}{}
		}()
	}
	for range n {
		<-done
	}
	return out
}
