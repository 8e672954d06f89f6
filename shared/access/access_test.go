package access_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// ring is an Authenticator over keys in memory and a clock that stands still, and how often a key was read.
type ring struct {
	*access.Authenticator
	clock *filestest.Clock
	keys  *filestest.Keys
	reads int
}

func newRing(t *testing.T) *ring {
	t.Helper()
	r := &ring{clock: filestest.NewClock(), keys: filestest.NewKeys()}
	r.keys.Hook = func(_ context.Context, op string, when filestest.When) error {
		if op == "Key" && when == filestest.Before {
			r.reads++
		}
		return nil
	}
	r.Authenticator = &access.Authenticator{Keys: r.keys, Now: r.clock.Now}
	return r
}

// add stores a key of acme's ada and returns its text.
func (r *ring) add(t *testing.T, expires time.Time, scopes ...files.Scope) (access.Key, string) {
	t.Helper()
	k, text := access.NewKey("acme", "ada", scopes, r.clock.Now(), expires)
	if err := r.keys.PutKey(context.Background(), k); err != nil {
		t.Fatal(err)
	}
	return k, text
}

func (r *ring) check(t *testing.T, what, text string, valid bool) {
	t.Helper()
	_, err := r.Caller(context.Background(), "Bearer "+text)
	if valid && err != nil || !valid && !errors.Is(err, files.ErrUnauthorized) {
		t.Errorf("%s: got %v, want a valid key: %v", what, err, valid)
	}
}

func TestKeysAreWellFormed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 9, 26, 53, 999, time.FixedZone("", 3600))
	seen := map[string]bool{}
	for range 100 {
		k, text := access.NewKey("acme", "ada", []files.Scope{files.FilesRead}, now, time.Time{})
		parts := strings.Split(text, "_")
		if len(parts) != 3 || parts[0] != "ck" || parts[1] != k.ID || !access.ValidKeyID(k.ID) || len(parts[2]) != 40 {
			t.Fatalf("key %s of id %s", text, k.ID)
		}
		sum := sha256.Sum256([]byte(parts[2]))
		if !slices.Equal(k.SecretHash, sum[:]) {
			t.Fatal("the hash isn't the SHA-256 of the secret")
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", k, k, k), parts[2]) {
			t.Fatal("the record has the secret")
		}
		if seen[k.ID] || seen[parts[2]] {
			t.Fatal("an id or a secret came twice")
		}
		seen[k.ID], seen[parts[2]] = true, true
		if want := time.Date(2026, 3, 14, 8, 26, 53, 0, time.UTC); k.CreatedAt != want {
			t.Fatalf("created at %v, want %v", k.CreatedAt, want)
		}
	}
}

func TestAuthorizationHeaders(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	k, text := r.add(t, time.Time{}, files.FilesRead, files.FilesWrite)
	_, other := access.NewKey("acme", "ada", nil, r.clock.Now(), time.Time{}) // not stored
	secret := text[len("ck_")+len(k.ID)+1:]
	flipped := []byte(text)
	flipped[len(flipped)-1] ^= 1

	want := files.Caller{Account: "acme", Actor: "ada", Scopes: []files.Scope{files.FilesRead, files.FilesWrite}, KeyID: k.ID}
	for _, header := range []string{"Bearer " + text, "bearer " + text, "BEARER " + text, "Bearer   " + text + " "} {
		got, err := r.Caller(context.Background(), header)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v", header, got, err)
		}
	}

	var texts []string
	for _, header := range []string{
		"", " ", "Bearer", "Bearer ", text, "Basic " + text, "Bearer" + text, "Bearer\t" + text, "Bearer " + text + "\n", "Bearer " + text + ",Bearer " + text,
		"Bearer " + other, "Bearer " + string(flipped), "Bearer " + strings.ToUpper(text), "Bearer ck_" + k.ID + "_", "Bearer ck_" + k.ID, "Bearer ck__" + secret, "Bearer " + secret,
		"Bearer ck_" + k.ID + "_" + secret + "_", "Bearer ck_" + k.ID + "_" + secret + "0", "Bearer ck_" + k.ID + "_" + secret[1:], "Bearer ck_" + k.ID + "0_" + secret[1:],
		"Bearer ck_" + k.ID + "_" + strings.Repeat("\x00", 40), "Bearer Bearer " + text, "Bearer ck_" + secret[:16] + "_" + secret, "Bearer ck_../../etc/passw_" + secret, "Bearer " + strings.Repeat("a", 1<<16),
	} {
		got, err := r.Caller(context.Background(), header)
		if !errors.Is(err, files.ErrUnauthorized) || !reflect.DeepEqual(got, files.Caller{}) {
			t.Errorf("%.80q: got %+v, %v", header, got, err)
			continue
		}
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	if texts = slices.Compact(texts); len(texts) != 1 {
		t.Errorf("refusals tell their causes apart: %q", texts)
	}
}

// Whether the id, the secret, the time or the administrator refuses, the answer is one and the same.
func TestRefusalsAreAlike(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	_, valid := r.add(t, time.Time{})
	_, missing := access.NewKey("acme", "ada", nil, r.clock.Now(), time.Time{})
	_, expired := r.add(t, r.clock.Now().Add(time.Second))
	dead, revoked := r.add(t, time.Time{})
	if err := r.keys.RevokeKey(context.Background(), "acme", dead.ID, r.clock.Now()); err != nil {
		t.Fatal(err)
	}
	wrong := valid[:len(valid)-40] + missing[len(missing)-40:]
	r.clock.Advance(time.Second)
	for name, text := range map[string]string{"missing": missing, "expired": expired, "revoked": revoked, "wrong secret": wrong, "malformed": "ck_1"} {
		_, err := r.Caller(context.Background(), "Bearer "+text)
		if err != files.ErrUnauthorized {
			t.Errorf("%s: got %v, want the bare sentinel", name, err)
		}
	}
	r.check(t, "the valid one, after all that", valid, true)
}

func TestCacheLivesSixtySeconds(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	k, text := r.add(t, time.Time{}, files.FilesRead)
	r.check(t, "at once", text, true)
	if err := r.keys.RevokeKey(context.Background(), "acme", k.ID, r.clock.Now()); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(59 * time.Second)
	r.check(t, "revoked 59 s ago", text, true)
	if r.reads != 1 {
		t.Errorf("read %d times in 59 s, want once", r.reads)
	}
	r.clock.Advance(time.Second - 1)
	r.check(t, "revoked a nanosecond under 60 s ago", text, true)
	r.clock.Advance(1)
	r.check(t, "revoked 60 s ago", text, false)
	if r.reads != 2 {
		t.Errorf("read %d times, want twice", r.reads)
	}
	r.check(t, "still", text, false)
	if r.reads != 2 {
		t.Errorf("a revoked key is read each time: %d", r.reads)
	}
}

func TestUseDoesNotProlongTheCache(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	k, text := r.add(t, time.Time{})
	r.check(t, "at first", text, true)
	if err := r.keys.RevokeKey(context.Background(), "acme", k.ID, r.clock.Now()); err != nil {
		t.Fatal(err)
	}
	for s := 10; s < 60; s += 10 {
		r.clock.Advance(10 * time.Second)
		r.check(t, fmt.Sprintf("after %d s", s), text, true)
	}
	r.clock.Advance(10 * time.Second)
	r.check(t, "after 60 s of use", text, false)
}

func TestCacheChecksSecretAndTime(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	_, text := r.add(t, r.clock.Now().Add(30*time.Second))
	_, other := r.add(t, time.Time{})
	r.check(t, "at first", text, true)
	r.check(t, "cached id, another secret", text[:len(text)-40]+other[len(other)-40:], false)
	r.clock.Advance(30*time.Second - 1)
	r.check(t, "before its end", text, true)
	r.clock.Advance(1)
	r.check(t, "at its end, cached", text, false)
	if r.reads != 1 {
		t.Errorf("read %d times, want once", r.reads)
	}
}

func TestNewKeysWorkAtOnce(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	k, text := access.NewKey("acme", "ada", nil, r.clock.Now(), time.Time{})
	r.check(t, "before it is stored", text, false)
	if err := r.keys.PutKey(context.Background(), k); err != nil {
		t.Fatal(err)
	}
	r.check(t, "right after", text, true)
}

func TestClockThatGoesBackReadsAgain(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	_, text := r.add(t, time.Time{})
	r.check(t, "at first", text, true)
	r.clock.Advance(-time.Hour)
	r.check(t, "an hour before", text, true)
	if r.reads != 2 {
		t.Errorf("read %d times, want twice: what was read in the future may be of any age", r.reads)
	}
}

func TestKeyStoreFailuresAreNoRefusals(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	_, text := r.add(t, time.Time{})
	r.keys.Hook = func(context.Context, string, filestest.When) error { return files.ErrTryAgain }
	_, err := r.Caller(context.Background(), "Bearer "+text)
	if !errors.Is(err, files.ErrTryAgain) || errors.Is(err, files.ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), text[len(text)-40:]) {
		t.Errorf("the error has the secret: %v", err)
	}
	r.keys.Hook = nil
	r.check(t, "when the store is back", text, true)
}

// A stream of different keys may not grow the cache without end, nor may it be wrong while many ask.
func TestCacheUnderLoad(t *testing.T) {
	t.Parallel()
	clock, keys := filestest.NewClock(), filestest.NewKeys()
	auth := &access.Authenticator{Keys: keys, Now: clock.Now}
	texts := make([]string, 1500)
	for i := range texts {
		k, text := access.NewKey("acme", fmt.Sprintf("actor-%d", i), nil, clock.Now(), time.Time{})
		if err := keys.PutKey(context.Background(), k); err != nil {
			t.Fatal(err)
		}
		texts[i] = text
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range texts {
				i = (i + w*300) % len(texts)
				got, err := auth.Caller(context.Background(), "Bearer "+texts[i])
				if want := fmt.Sprintf("actor-%d", i); err != nil || got.Actor != want {
					t.Errorf("got %s, %v, want %s", got.Actor, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzAuthorization(f *testing.F) {
	r := &access.Authenticator{Keys: filestest.NewKeys(), Now: filestest.NewClock().Now}
	_, text := access.NewKey("acme", "ada", nil, time.Now(), time.Time{})
	for _, seed := range []string{"", "Bearer", "Bearer " + text, "bearer ck__", "Basic YTpi", "Bearer ck_\xff_"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if c, err := r.Caller(context.Background(), header); err != files.ErrUnauthorized || c.Account != "" {
			t.Errorf("got %+v, %v", c, err)
		}
	})
}
