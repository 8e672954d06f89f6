package main

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"
	"time"
)

// downloads are the facts about links and the host they name.
var downloads = []fact{
	{"a link is on the content host, and inert in a browser", func(ctx context.Context, t *target) (string, error) {
		content := []byte("<script>alert(1)</script>")
		_, link, err := t.linked(ctx, content, `,"filename":"naïve ☃.html","content_type":"text/html"`)
		if err != nil {
			return "", err
		}
		u, err := url.Parse(link)
		if err != nil || t.contentHost != "" && u.Host != t.contentHost {
			return "", fmt.Errorf("the link is not on %s", t.contentHost)
		}
		got, err := send(ctx, "GET", link, nil)
		if err == nil {
			err = same(got, content)
		}
		if err != nil {
			return "", err
		}
		for name, want := range map[string]string{
			"Content-Type": "text/html", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Disposition": "attachment",
		} {
			if !strings.Contains(got.header.Get(name), want) {
				return "", fmt.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
			}
		}
		_, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
		if err != nil || params["filename"] != "naïve ☃.html" {
			return "", fmt.Errorf("Content-Disposition names %q", params["filename"])
		}
		return "attachment under its name, nosniff, sandboxed, no-store", nil
	}},
	{"Range works through the link", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		_, link, err := t.linked(ctx, content, "")
		if err != nil {
			return "", err
		}
		part, err := send(ctx, "GET", link, nil, "Range", "bytes=10-19")
		if err == nil {
			err = part.want(206)
		}
		if err == nil && (string(part.body) != string(content[10:20]) || part.header.Get("Content-Range") != "bytes 10-19/1000") {
			err = fmt.Errorf("another part came: %q", part.header.Get("Content-Range"))
		}
		if err != nil {
			return "", err
		}
		beyond, err := send(ctx, "GET", link, nil, "Range", "bytes=1000-")
		if err != nil {
			return "", err
		}
		return "206, beyond the end " + beyond.String(), beyond.want(416)
	}},
	{"a link is good for its own method, object and headers only", func(ctx context.Context, t *target) (string, error) {
		_, link, err := t.linked(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		_, other, err := t.linked(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		signed, _ := url.Parse(link)
		moved, _ := url.Parse(other)
		moved.RawQuery = signed.RawQuery
		for what, attempt := range map[string][2]string{
			"HEAD": {"HEAD", link}, "DELETE": {"DELETE", link}, "another object": {"GET", moved.String()},
			"another disposition": {"GET", withQuery(link, "response-content-disposition", "inline")},
			"another signature":   {"GET", withQuery(link, "X-Amz-Signature", strings.Repeat("0", 64))},
		} {
			got, err := send(ctx, attempt[0], attempt[1], nil)
			if err == nil {
				err = got.want(403, 405)
			}
			if err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
		}
		return "HEAD, DELETE, another object, disposition or signature: refused", nil
	}},
	{"no answer is kept for a request with another signature", func(ctx context.Context, t *target) (string, error) {
		content := noise(10)
		_, link, err := t.linked(ctx, content, "")
		if err != nil {
			return "", err
		}
		bad := withQuery(link, "X-Amz-Signature", strings.Repeat("0", 64))
		for _, url := range []string{bad, link, bad, link} {
			got, err := send(ctx, "GET", url, nil)
			if err != nil {
				return "", err
			}
			if url == bad {
				err = got.want(403)
			} else {
				err = same(got, content)
			}
			if err != nil {
				return "", err
			}
		}
		return "403, 200, 403, 200 in turn", nil
	}},
	{"the content host drops Authorization", func(ctx context.Context, t *target) (string, error) {
		content := noise(10)
		_, link, err := t.linked(ctx, content, "")
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", link, nil, "Authorization", "Bearer nothing")
		if err != nil {
			return "", err
		}
		return got.String(), same(got, content)
	}},
	{"content redirects GET and HEAD to a URL for that method", func(ctx context.Context, t *target) (string, error) {
		content := noise(1000)
		f, err := t.stored(ctx, content, "")
		if err != nil {
			return "", err
		}
		places := map[string]string{}
		for _, method := range []string{"GET", "HEAD"} {
			got, err := t.api(ctx, method, "/v1/files/"+f.ID+"/content", nil)
			if err == nil {
				err = got.want(302)
			}
			if err == nil && got.header.Get("X-Content-SHA256") != hexSum(content) {
				err = errors.New("X-Content-SHA256 is another")
			}
			if err != nil {
				return "", fmt.Errorf("%s: %w", method, err)
			}
			places[method] = got.header.Get("Location")
		}
		got, err := send(ctx, "GET", places["GET"], nil, "Authorization", "Bearer nothing")
		if err == nil {
			err = same(got, content)
		}
		if err != nil {
			return "", fmt.Errorf("following GET: %w", err)
		}
		head, err := send(ctx, "HEAD", places["HEAD"], nil)
		if err == nil {
			err = head.want(200)
		}
		if err == nil && head.header.Get("Content-Length") != "1000" {
			err = fmt.Errorf("Content-Length is %q", head.header.Get("Content-Length"))
		}
		if err != nil {
			return "", fmt.Errorf("following HEAD: %w", err)
		}
		crossed, err := send(ctx, "GET", places["HEAD"], nil)
		if err != nil {
			return "", err
		}
		return "302 and 200 for both, GET on HEAD's URL " + crossed.String(), crossed.want(403)
	}},
	{"a link ends with the second it names", func(ctx context.Context, t *target) (string, error) {
		f, err := t.stored(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		link, ends, err := t.link(ctx, f.ID, 2)
		if err != nil {
			return "", err
		}
		if err := until(ctx, ends); err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", link, nil)
		if err != nil {
			return "", err
		}
		return got.String(), got.wantCode(403, "AccessDenied")
	}},
	{"a link to what was deleted says 403 and not that it is gone", func(ctx context.Context, t *target) (string, error) {
		f, link, err := t.linked(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		if got, err := t.api(ctx, "DELETE", "/v1/files/"+f.ID, nil); err != nil || got.status != 204 {
			return "", fmt.Errorf("deleting: %s %w", got, err)
		}
		began := time.Now()
		var got answer
		err = eventually(ctx, func() (bool, error) {
			got, err = send(ctx, "GET", link, nil)
			return got.status != 200, err
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s after %s", got, time.Since(began).Round(100*time.Millisecond)), got.wantCode(403, "AccessDenied")
	}},
	{"a page of another origin may download", func(ctx context.Context, t *target) (string, error) {
		_, link, err := t.linked(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", link, nil, "Origin", "https://smoke.example")
		if err == nil {
			err = got.want(200)
		}
		if err == nil && got.header.Get("Access-Control-Allow-Origin") == "" {
			err = errors.New("no Access-Control-Allow-Origin (CorsAllowedOrigins may name other origins)")
		}
		return "allowed", err
	}},
	{"the content host takes no plain HTTP", func(ctx context.Context, t *target) (string, error) {
		if !t.cloud {
			return "", notHere{"the local content host speaks plain HTTP"}
		}
		_, link, err := t.linked(ctx, noise(10), "")
		if err != nil {
			return "", err
		}
		got, err := send(ctx, "GET", "http"+strings.TrimPrefix(link, "https"), nil)
		if err != nil {
			return "", err
		}
		return got.String(), got.want(403)
	}},
}
