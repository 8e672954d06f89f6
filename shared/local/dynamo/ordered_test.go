package dynamo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The ordered list must hold what a map holds, in order, whatever was inserted
// and removed, and read any range in both directions.
func TestOrderedAgreesWithSortedMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var o ordered
	reference := map[string]document{}
	key := func() string { return fmt.Sprintf("%04d", r.IntN(3000)) }
	for round := range 30 {
		for range 500 {
			k := key()
			if r.IntN(3) == 0 || round%7 == 6 {
				o.remove(k)
				delete(reference, k)
			} else {
				item := document{"k": text(k), "v": text(fmt.Sprint(r.IntN(1000)))}
				o.put(k, item)
				reference[k] = item
			}
		}
		if o.count != len(reference) {
			t.Fatalf("count is %d, want %d", o.count, len(reference))
		}
		keys := sortedKeys(reference)
		for range 20 {
			in := keyRange{key(), key()}
			if r.IntN(4) == 0 {
				in.high = ""
			}
			if in.high != "" && in.high < in.low {
				in.low, in.high = in.high, in.low
			}
			var want []string
			for _, k := range keys {
				if in.has(k) {
					want = append(want, k)
				}
			}
			var up, down []string
			o.ascend(in, func(e entry) bool { up = append(up, e.key); return true })
			o.descend(in, func(e entry) bool { down = append(down, e.key); return true })
			slices.Reverse(down)
			if !slices.Equal(up, want) || !slices.Equal(down, want) {
				t.Fatalf("range %v: ascend %v, descend %v, want %v", in, up, down, want)
			}
		}
		for k, item := range reference {
			if got := o.get(k); got["v"] != item["v"] {
				t.Fatalf("get(%s) = %v, want %v", k, got, item)
			}
		}
		if o.get("absent") != nil {
			t.Fatal("an absent key has an item")
		}
	}
}

func TestOrderedStopsWhenTold(t *testing.T) {
	t.Parallel()
	var o ordered
	for i := range 1000 {
		o.put(fmt.Sprintf("%04d", i), document{})
	}
	n := 0
	o.ascend(keyRange{}, func(entry) bool { n++; return n < 5 })
	o.descend(keyRange{}, func(entry) bool { n++; return n < 10 })
	if n != 10 {
		t.Errorf("visited %d entries, want 5 up and 5 down", n)
	}
}

// Keys of different parts must not run into each other, and prefixes must select
// exactly what starts with them.
func TestKeyParts(t *testing.T) {
	t.Parallel()
	parts := []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\xFF", "a", "a\x00", "a\x00b", "ab", "b", "\xFF", "\xFF\xFF"}
	slices.Sort(parts)
	for i, p := range parts {
		for j, q := range parts {
			x, y := string(appendPart(nil, p)), string(appendPart(nil, q))
			if (x < y) != (i < j) {
				t.Errorf("%q and %q are out of order", p, q)
			}
			low := string(appendEscaped(nil, p))
			in := keyRange{low, after(low)}
			if starts := len(q) >= len(p) && q[:len(p)] == p; in.has(y) != starts {
				t.Errorf("begins_with(%q, %q) is %t", q, p, in.has(y))
			}
		}
	}
}
