package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/httpapi"
)

const (
	defaultLimit = 20
	maxLimit     = 100
)

// page is the answer. A page may be short; only a null cursor ends the list.
type page struct {
	Files      []httpapi.FileObject `json:"files"`
	NextCursor *string              `json:"next_cursor"`
}

func endpoint(auth httpapi.Authenticator, lister *files.Lister, prefix string) *httpapi.Endpoint {
	return &httpapi.Endpoint{
		Auth:  auth,
		Scope: files.FilesRead,
		Query: []string{"limit", "cursor", "state", "purpose", "run"},
		Do: func(ctx context.Context, r *httpapi.Request) (*httpapi.Response, error) {
			q, err := decode(r)
			if err != nil {
				return nil, err
			}
			list, next, err := lister.List(ctx, r.Caller, q.filter, q.after, q.limit)
			if err != nil {
				return nil, err
			}
			out := page{Files: make([]httpapi.FileObject, len(list))}
			now := lister.Now()
			for i, f := range list {
				out.Files[i] = httpapi.NewFileObject(prefix, f, now)
			}
			if next != nil {
				cursor := encodeCursor(r.Caller.Account, *next)
				out.NextCursor = &cursor
			}
			return httpapi.OK(out)
		},
	}
}

type query struct {
	filter files.Filter
	after  files.Position
	limit  int
}

func decode(r *httpapi.Request) (query, error) {
	var bad files.ValidationError
	q := query{limit: defaultLimit}
	if n := r.QueryInt("limit", &bad); n != nil {
		if *n < 1 || *n > maxLimit {
			bad.Add("limit", fmt.Sprintf("must be from 1 to %d", maxLimit))
		} else {
			q.limit = int(*n)
		}
	}
	if s, ok := r.Query("cursor"); ok {
		var valid bool
		if q.after, valid = decodeCursor(r.Caller.Account, s); !valid {
			bad.Add("cursor", "must be the next_cursor of an earlier page of this account")
		}
	}
	if s, ok := r.Query("state"); ok {
		for name := range strings.SplitSeq(s, ",") {
			if !slices.Contains(files.States, files.State(name)) {
				bad.Add("state", fmt.Sprintf("must be one or more, with commas, of %v", files.States))
				break
			}
			q.filter.States = append(q.filter.States, files.State(name))
		}
	}
	if s, ok := r.Query("purpose"); ok {
		q.filter.Purpose = files.Purpose(s)
		if !slices.Contains(files.Purposes, q.filter.Purpose) {
			bad.Add("purpose", fmt.Sprintf("must be one of %v", files.Purposes))
		}
	}
	if s, ok := r.Query("run"); ok {
		q.filter.Run = s
		if s == "" {
			bad.Add("run", "must not be empty; leave it out instead")
		}
	}
	return q, bad.Err()
}

// cursor is a position, bound to the account it was made for. It names a place between files, not a file, so it stays
// good when files are deleted.
type cursor struct {
	Account string `json:"a"` // the first bytes of its SHA-256
	Created int64  `json:"t"` // seconds
	ID      string `json:"i"`
}

func encodeCursor(account string, p files.Position) string {
	raw, err := json.Marshal(cursor{accountMark(account), p.CreatedAt.Unix(), p.ID})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor(account, s string) (files.Position, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return files.Position{}, false
	}
	var c cursor
	if json.Unmarshal(raw, &c) != nil || c.Account != accountMark(account) || !files.ValidID(c.ID) || c.Created <= 0 || c.Created >= 1<<36 {
		return files.Position{}, false
	}
	return files.Position{CreatedAt: time.Unix(c.Created, 0).UTC(), ID: c.ID}, true
}

func accountMark(account string) string {
	sum := sha256.Sum256([]byte(account))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
