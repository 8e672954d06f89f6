package filestest

import (
	"bytes"
	"context"
	"strings"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// Purge implements files.Bytes.
func (s *Store) Purge(ctx context.Context, id string) error {
	return run(ctx, s.Hook, "Purge", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.staged, id)
		for name := range s.sealed {
			if strings.HasPrefix(name, sealedName(id, "")) {
				delete(s.sealed, name)
			}
		}
		return nil
	})
}

// List implements files.ReconcileObjects.
func (s *Store) List(ctx context.Context, from string) ([]files.StoredObject, string, error) {
	p, err := call(ctx, s.Hook, "List", func() (paged[[]files.StoredObject], error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		objects := map[string]files.StoredObject{}
		for id, o := range s.staged {
			objects[stagedName(id)] = files.StoredObject{ID: id, Object: stagedName(id), Staged: true, Modified: o.modified}
		}
		for name := range s.sealed {
			id, _, _ := strings.Cut(strings.TrimPrefix(name, sealedPrefix), "/")
			objects[name] = files.StoredObject{ID: id, Object: name, Modified: s.dated[name]}
		}
		names, next := pageOf(objects, from)
		var page []files.StoredObject
		for _, name := range names {
			page = append(page, objects[name])
		}
		return paged[[]files.StoredObject]{page, next}, nil
	})
	return p.page, p.next, err
}

// Exists implements files.ReconcileObjects.
func (s *Store) Exists(ctx context.Context, object string) (bool, error) {
	return call(ctx, s.Hook, "Exists", func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, there := s.sealed[object]
		return there, nil
	})
}

// Leave stores a sealed copy for id that no record names, dated at, and returns its name: what a verifier leaves that
// was killed, or an operator.
func (s *Store) Leave(id, version string, body []byte, at time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := sealedName(id, version)
	s.sealed[name], s.dated[name] = bytes.Clone(body), at
	return name
}

// Lose removes a sealed object behind everybody's back.
func (s *Store) Lose(object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sealed, object)
}
