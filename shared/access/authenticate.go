package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// CacheFor is how long one function instance may go on using a key that it has read, so revocation takes at most as
// long. Only keys that exist are remembered: a new key works at once.
const CacheFor = 60 * time.Second

const cacheEntries = 1000 // per instance; a few hundred KiB at the most

// Authenticator turns an Authorization header into a caller. It is safe for concurrent use.
type Authenticator struct {
	Keys KeyReader
	Now  func() time.Time

	mu    sync.Mutex
	cache map[string]cached
}

type cached struct {
	key  Key
	read time.Time
}

// Caller returns who the header speaks for. Every refusal is files.ErrUnauthorized, whatever its cause; other errors
// are those of the key store.
func (a *Authenticator) Caller(ctx context.Context, authorization string) (files.Caller, error) {
	id, secret, ok := parseBearer(authorization)
	if !ok {
		return files.Caller{}, files.ErrUnauthorized
	}
	now := a.Now()
	k, err := a.key(ctx, id, now)
	if errors.Is(err, ErrKeyNotFound) {
		return files.Caller{}, files.ErrUnauthorized
	}
	if err != nil {
		return files.Caller{}, fmt.Errorf("reading the key: %w", err)
	}
	if !matches(secret, k.SecretHash) || !k.Valid(now) {
		return files.Caller{}, files.ErrUnauthorized
	}
	return k.caller(), nil
}

func (a *Authenticator) key(ctx context.Context, id string, now time.Time) (Key, error) {
	a.mu.Lock()
	c, ok := a.cache[id]
	a.mu.Unlock()
	if age := now.Sub(c.read); ok && age >= 0 && age < CacheFor {
		return c.key, nil
	}
	k, err := a.Keys.Key(ctx, id)
	if err != nil {
		return Key{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cache == nil || len(a.cache) >= cacheEntries {
		a.cache = make(map[string]cached)
	}
	a.cache[id] = cached{key: k, read: now}
	return k, nil
}
