package filestest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
)

// Keys keeps keys in memory: access.Keys. Make it with NewKeys; it is safe for concurrent use.
type Keys struct {
	Hook Hook

	mu   sync.Mutex
	keys map[string]access.Key
}

// NewKeys returns empty keys.
func NewKeys() *Keys { return &Keys{keys: map[string]access.Key{}} }

// PutKey implements access.Keys.
func (s *Keys) PutKey(ctx context.Context, k access.Key) error {
	return run(ctx, s.Hook, "PutKey", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, taken := s.keys[k.ID]; taken {
			return fmt.Errorf("there is a key %s", k.ID)
		}
		s.keys[k.ID] = cloneKey(k)
		return nil
	})
}

func cloneKey(k access.Key) access.Key {
	k.Scopes, k.SecretHash = slices.Clone(k.Scopes), bytes.Clone(k.SecretHash)
	return k
}

// Key implements access.KeyReader.
func (s *Keys) Key(ctx context.Context, id string) (access.Key, error) {
	return call(ctx, s.Hook, "Key", func() (access.Key, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		k, ok := s.keys[id]
		if !ok {
			return access.Key{}, access.ErrKeyNotFound
		}
		return cloneKey(k), nil
	})
}

// ListKeys implements access.Keys.
func (s *Keys) ListKeys(ctx context.Context, account string) ([]access.Key, error) {
	return call(ctx, s.Hook, "ListKeys", func() ([]access.Key, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		out := []access.Key{}
		for _, k := range s.keys {
			if k.Account == account {
				out = append(out, cloneKey(k))
			}
		}
		slices.SortFunc(out, func(a, b access.Key) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
		})
		return out, nil
	})
}

// RevokeKey implements access.Keys.
func (s *Keys) RevokeKey(ctx context.Context, account, id string, now time.Time) error {
	return run(ctx, s.Hook, "RevokeKey", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		k, ok := s.keys[id]
		if !ok || k.Account != account {
			return access.ErrKeyNotFound
		}
		if k.RevokedAt.IsZero() {
			k.RevokedAt = now.UTC().Truncate(time.Second)
			s.keys[id] = k
		}
		return nil
	})
}
