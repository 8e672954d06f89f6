package filestest

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// ErrAlreadyStaged is how the store refuses to replace staged bytes, as S3 does for If-None-Match: *.
var ErrAlreadyStaged = errors.New("412: there are staged bytes already")

// Store keeps objects in memory: files.Stage, files.SealedWriter, files.Bytes and files.ReconcileObjects. Make it with
// NewStore; it is safe for concurrent use.
type Store struct {
	Hook Hook

	clock    *Clock
	mu       sync.Mutex
	staged   map[string]stagedObject // by id
	sealed   map[string][]byte       // by name
	dated    map[string]time.Time    // when they were sealed
	headRead int64
	tailRead int64
}

type stagedObject struct {
	body     []byte
	etag     string
	modified time.Time
}

// NewStore returns an empty store whose objects are dated by clock.
func NewStore(clock *Clock) *Store {
	return &Store{clock: clock, staged: map[string]stagedObject{}, sealed: map[string][]byte{}, dated: map[string]time.Time{}}
}

// Put stages body for id, as a client's presigned PUT does.
func (s *Store) Put(ctx context.Context, id string, body []byte) error {
	return run(ctx, s.Hook, "Put", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, there := s.staged[id]; there {
			return ErrAlreadyStaged
		}
		sum := md5.Sum(body)
		s.staged[id] = stagedObject{
			body:     bytes.Clone(body),
			etag:     `"` + hex.EncodeToString(sum[:]) + `"`,
			modified: s.clock.Now().Truncate(time.Second),
		}
		return nil
	})
}

func (s *Store) find(id string) (stagedObject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.staged[id]
	if !ok {
		return stagedObject{}, files.ErrNotUploaded
	}
	return o, nil
}

func (s *Store) findVersion(id, etag string) (stagedObject, error) {
	o, err := s.find(id)
	if err == nil && o.etag != etag {
		err = files.ErrStagedChanged
	}
	return o, err
}

// Open implements files.Stage.
func (s *Store) Open(ctx context.Context, id string) (files.Staged, error) {
	return call(ctx, s.Hook, "Open", func() (files.Staged, error) {
		o, err := s.find(id)
		if err != nil {
			return files.Staged{}, err
		}
		return files.Staged{
			Size: int64(len(o.body)), ETag: o.etag, Modified: o.modified,
			Head: &head{ctx: ctx, store: s, rest: o.body[:min(len(o.body), files.HeadBytes)]},
		}, nil
	})
}

// head is the body of an opened object: the operation Head runs at its first read.
type head struct {
	ctx   context.Context
	store *Store
	rest  []byte
	begun bool
}

func (h *head) Read(p []byte) (int, error) {
	if !h.begun {
		h.begun = true
		if err := h.store.Hook.run(h.ctx, "Head", Before); err != nil {
			return 0, err
		}
	}
	if len(h.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, h.rest)
	h.rest = h.rest[n:]
	h.store.mu.Lock()
	h.store.headRead += int64(n)
	h.store.mu.Unlock()
	return n, nil
}

func (h *head) Close() error { return nil }

// Tail implements files.Stage.
func (s *Store) Tail(ctx context.Context, id, etag string, n int64) ([]byte, error) {
	return call(ctx, s.Hook, "Tail", func() ([]byte, error) {
		o, err := s.findVersion(id, etag)
		if err != nil {
			return nil, err
		}
		tail := o.body[max(0, int64(len(o.body))-n):]
		s.mu.Lock()
		s.tailRead += int64(len(tail))
		s.mu.Unlock()
		return bytes.Clone(tail), nil
	})
}

// Seal implements files.Stage.
func (s *Store) Seal(ctx context.Context, f files.File, etag string) (files.Sealed, error) {
	return call(ctx, s.Hook, "Seal", func() (files.Sealed, error) {
		o, err := s.findVersion(f.ID, etag)
		if err != nil {
			return files.Sealed{}, err
		}
		return s.put(f.ID, etag, o.body), nil
	})
}

// PutSealed implements files.SealedWriter.
func (s *Store) PutSealed(ctx context.Context, f files.File, body []byte) (files.Sealed, error) {
	sum := sha256.Sum256(body)
	version := hex.EncodeToString(sum[:])
	sealed, err := call(ctx, s.Hook, "PutSealed", func() (files.Sealed, error) { return s.put(f.ID, version, body), nil })
	sealed.Object = sealedName(f.ID, version)
	return sealed, err
}

const sealedPrefix = "sealed/"

func sealedName(id, version string) string {
	return sealedPrefix + id + "/" + strings.Trim(version, `"`)
}

// CopyName implements files.Stage.
func (s *Store) CopyName(id, etag string) string {
	if strings.Trim(etag, `"`) == "" {
		return ""
	}
	return sealedName(id, etag)
}

func stagedName(id string) string { return "staged/" + id }

func (s *Store) put(id, version string, body []byte) files.Sealed {
	name := sealedName(id, version)
	sum := sha256.Sum256(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.sealed[name]; !there {
		s.sealed[name], s.dated[name] = bytes.Clone(body), s.clock.Now().Truncate(time.Second)
	}
	return files.Sealed{Object: name, SHA256: hex.EncodeToString(sum[:])}
}

// Discard implements files.Stage.
func (s *Store) Discard(ctx context.Context, id string) error {
	return run(ctx, s.Hook, "Discard", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.staged, id)
		return nil
	})
}

// Remove implements files.Stage, files.Bytes and files.ReconcileObjects.
func (s *Store) Remove(ctx context.Context, object string) error {
	return run(ctx, s.Hook, "Remove", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sealed, object)
		if id, ok := strings.CutPrefix(object, stagedName("")); ok {
			delete(s.staged, id)
		}
		return nil
	})
}

// Objects returns a copy of everything. No hook runs.
func (s *Store) Objects() Objects {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := Objects{Staged: map[string][]byte{}, Sealed: maps.Clone(s.sealed)}
	for id, staged := range s.staged {
		o.Staged[id] = staged.body
	}
	return o
}

// BytesRead returns how much of staged objects was read, at their heads and tails.
func (s *Store) BytesRead() (head, tail int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headRead, s.tailRead
}

// Signer presigns nothing real: files.UploadSigner and files.LinkSigner. It is safe for concurrent use.
type Signer struct {
	Hook Hook
	Ends time.Time // of the signing credentials; zero: never
}

// SignUpload implements files.UploadSigner.
func (s *Signer) SignUpload(ctx context.Context, f files.File, _, until time.Time) (files.SignedRequest, error) {
	return s.sign(ctx, "SignUpload", "PUT", "https://stage.test/"+f.ID, until)
}

// SignLink implements files.LinkSigner.
func (s *Signer) SignLink(ctx context.Context, f files.File, method string, _, until time.Time) (files.SignedRequest, error) {
	return s.sign(ctx, "SignLink", method, "https://content.test/"+f.Sealed, until)
}

func (s *Signer) sign(ctx context.Context, op, method, url string, until time.Time) (files.SignedRequest, error) {
	return call(ctx, s.Hook, op, func() (files.SignedRequest, error) {
		if !s.Ends.IsZero() && s.Ends.Before(until) {
			until = s.Ends
		}
		return files.SignedRequest{Method: method, URL: url, ExpiresAt: until}, nil
	})
}
