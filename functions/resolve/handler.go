package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

// resolved is what a tool gets for one handle.
type resolved struct {
	URL         string    `json:"url"`
	ContentType string    `json:"content_type"`
	Size        int64     `json:"size"`
	SHA256      string    `json:"sha256"`
	Expires     time.Time `json:"expires"`
	Filename    string    `json:"filename"`
}

func endpoint(auth httpapi.Authenticator, reader *files.Reader, prefix, metaKey string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesRead,
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			body, err := r.JSON(httpapi.MaxJSON)
			if err != nil {
				return nil, err
			}
			input := body.Raw("input")
			if err := body.Err(); err != nil {
				return nil, err
			}
			handles, err := findHandles(input, prefix)
			if err != nil {
				return nil, err
			}
			links, err := reader.Resolve(ctx, r.Caller, prefix, handles)
			if err != nil {
				return nil, err
			}
			found := make(map[string]resolved, len(links))
			for i, l := range links {
				found[handles[i]] = resolved{l.URL, l.File.ContentType, l.File.Size, l.File.SHA256, l.ExpiresAt.UTC(), l.File.Filename}
			}
			return httpapi.OK(map[string]any{"_meta": map[string]any{metaKey: found}})
		},
	}
}

// findHandles returns the different handles in a JSON value, in the order in which they appear. A handle is a whole
// string value that begins with the prefix and holds no space; inside prose, or as a member name, it is only text.
func findHandles(value json.RawMessage, prefix string) ([]string, error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var (
		handles []string
		seen    = map[string]bool{}
		inside  []bool // for each open object or array: is it an object
		name    bool   // the next string is a member name
	)
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return handles, nil
		}
		if err != nil {
			return nil, files.Invalid("input", "must be valid JSON")
		}
		switch t := tok.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				inside = append(inside, t == '{')
			default:
				inside = inside[:len(inside)-1]
			}
			name = len(inside) > 0 && inside[len(inside)-1]
			continue
		case string:
			if name {
				name = false
				continue
			}
			if isHandle(t, prefix) && !seen[t] {
				seen[t] = true
				handles = append(handles, t)
			}
		}
		name = len(inside) > 0 && inside[len(inside)-1]
	}
}

// isHandle reports whether s is meant as a handle. Malformed ones count: passing them on in silence would hide a
// reference that a model has garbled.
func isHandle(s, prefix string) bool {
	return strings.HasPrefix(s, prefix) && !strings.ContainsFunc(s, unicode.IsSpace)
}
