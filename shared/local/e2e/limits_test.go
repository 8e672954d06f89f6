package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// atOnce sends n requests at the same moment.
func atOnce(n int, send func(i int) reply) []reply {
	out := make([]reply, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			out[i] = send(i)
		})
	}
	close(start)
	all.Wait()
	return out
}

func (r *running) client(t testing.TB, account, actor string) client {
	t.Helper()
	key, err := r.mint(account, actor, "-role", "owner")
	if err != nil {
		t.Fatal(err)
	}
	return client{r.url, key}
}

// TestReservationsAreExact: 160 parallel reserves for each of two accounts that share the name of an actor, at a limit
// of 50.
func TestReservationsAreExact(t *testing.T) {
	t.Parallel()
	r := stackFor(t, "")
	clients := []client{r.client(t, "exact-one", "ada"), r.client(t, "exact-two", "ada")}
	made := make([]int, len(clients))
	for i, got := range atOnce(160*len(clients), func(i int) reply {
		return clients[i%len(clients)].call("POST", "/v1/uploads", `{"filename":"a","size_bytes":10}`)
	}) {
		switch {
		case got.status == 201:
			made[i%len(clients)]++
		case got.status != 429 || got.code() != "too_many_reservations" || got.header.Get("Retry-After") == "":
			t.Errorf("a reserve over the limit answered %s with Retry-After %q", got, got.header.Get("Retry-After"))
		}
	}
	if !slices.Equal(made, []int{50, 50}) {
		t.Errorf("%v reserves of 160 succeeded, want 50 in each account", made)
	}
	for _, c := range clients {
		u := c.usage(t)
		if u.Actor.Reservations != 50 || u.Account.Files != 50 || u.Account.LiveBytes != 500 {
			t.Errorf("usage is %+v, want 50 files of 10 bytes", u)
		}
		ids := c.listed(t)
		for id := range ids {
			if got := c.call("DELETE", "/v1/files/"+id, ""); got.status != 204 {
				t.Errorf("cancelling: %s", got)
			}
		}
		if u := c.usage(t); len(ids) != 50 || u != (usage{}) {
			t.Errorf("%d files were listed, and when they were cancelled usage is %+v", len(ids), u)
		}
	}
}

// TestUnsizedReservationsAreExact: unsized reservations are charged the largest file, and an actor may hold a quarter of
// the account's bytes so: five of 100 MiB in 2 GiB.
func TestUnsizedReservationsAreExact(t *testing.T) {
	t.Parallel()
	c := stackFor(t, "").client(t, "unsized-exact", "ada")
	made := 0
	for _, got := range atOnce(40, func(int) reply { return c.call("POST", "/v1/uploads", `{"filename":"a"}`) }) {
		switch {
		case got.status == 201:
			made++
		case got.status != 429 || got.header.Get("Retry-After") == "":
			t.Errorf("an unsized reserve over the limit answered %s", got)
		}
	}
	if made != 5 {
		t.Errorf("%d unsized reserves succeeded, want 5", made)
	}
}

// TestOneClaimWins: 100 parallel claims by different holders.
func TestOneClaimWins(t *testing.T) {
	t.Parallel()
	c := stackFor(t, "").client(t, "one-claim", "ada")
	f := c.inline(t, "single_use=true", "used once")
	won, claim := 0, ""
	for _, got := range atOnce(100, func(i int) reply {
		return c.call("POST", "/v1/files/"+f.ID+"/claims", fmt.Sprintf(`{"holder":"call-%d"}`, i))
	}) {
		switch {
		case got.status == 201:
			won++
			var lent struct{ Claim string }
			got.into(t, &lent)
			claim = lent.Claim
		case got.status != 409 || got.code() != "file_claimed" || got.header.Get("Retry-After") == "":
			t.Errorf("a claim that lost answered %s", got)
		}
	}
	if won != 1 {
		t.Fatalf("%d of 100 claims won", won)
	}
	for _, got := range atOnce(20, func(int) reply { return c.call("POST", "/v1/claims/"+claim+"/commit", "") }) {
		if got.status != 200 || !strings.Contains(string(got.body), `"spent"`) {
			t.Errorf("a commit among others answered %s", got)
		}
	}
	if u := c.usage(t); u != (usage{}) {
		t.Errorf("usage after the commits is %+v", u)
	}
}

// TestOneContentWins: 50 parallel uploads of different bytes to one reservation, while others finish and read it.
func TestOneContentWins(t *testing.T) {
	t.Parallel()
	c := stackFor(t, "").client(t, "one-content", "ada")
	const size = 4000
	content := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprintf("content %2d ", i), size/11+1)[:size]) }
	r := c.reserve(t, fmt.Sprintf(`{"filename":"a","size_bytes":%d}`, size))
	var winner sync.Map // digests that were shown
	atOnce(60, func(i int) reply {
		if i < 50 {
			got := r.put(content(i))
			if got.status != 200 && got.status != 412 && got.status != 409 {
				t.Errorf("upload %d answered %s", i, got)
			}
			return got
		}
		got := c.call("POST", "/v1/uploads/"+r.ID+"/complete", "")
		if got.status == 200 {
			var f file
			got.into(t, &f)
			winner.Store(f.SHA256, true)
		} else if got.code() != "not_uploaded" {
			t.Errorf("complete answered %s", got)
		}
		return got
	})
	got := c.call("POST", "/v1/uploads/"+r.ID+"/complete", "")
	if got.status != 200 {
		t.Fatalf("complete answered %s", got)
	}
	var f file
	got.into(t, &f)
	winner.Store(f.SHA256, true)
	n := 0
	winner.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d different digests were shown", n)
	}
	for i := range 50 { // replays, which S3 may take when nothing is staged any more
		r.put(content((i + 7) % 50))
		if i%10 == 0 {
			if read := c.read(t, r.ID); read.status != 200 || hexSHA256(read.body) != f.SHA256 {
				t.Fatalf("a read gave %d bytes with status %d, other than those of %s", len(read.body), read.status, f.SHA256)
			}
		}
	}
	eventually(t, "the end of what replays staged", func() bool {
		n, err := countKeys(stackFor(t, "").data+"/s3/objects", "staging/"+r.ID)
		return err == nil && n == 0
	})
	if read := c.read(t, r.ID); read.status != 200 || hexSHA256(read.body) != f.SHA256 {
		t.Errorf("after the replays a read gave %s", read)
	}
}
