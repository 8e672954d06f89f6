package filestest

import (
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
)

// BytesAPI is how objects go again.
type BytesAPI interface {
	files.Bytes
	files.ReconcileObjects
}

// TestBytes checks an object store against the contracts of files.Bytes and files.ReconcileObjects. Other objects may
// be there, and come and go.
func TestBytes(t *testing.T, s ObjectStore, b BytesAPI) {
	for name, test := range map[string]func(t *testing.T, s ObjectStore, b BytesAPI){
		"purge":  testPurge,
		"list":   testListObjects,
		"exists": testExists,
		"remove": testRemoveByName,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s, b)
		})
	}
}

// store stages body for f and seals it.
func (s ObjectStore) store(t *testing.T, f files.File, body []byte) files.Sealed {
	t.Helper()
	s.Put(t, f.ID, body)
	staged, _ := open(t, s.Stage, f.ID)
	return seal(t, s.Stage, f, staged.ETag)
}

// objectsOf lists everything that is stored for id, with a check of the order.
func objectsOf(t *testing.T, b BytesAPI, id string) map[string]files.StoredObject {
	t.Helper()
	out := map[string]files.StoredObject{}
	last := ""
	for next, n := "", 0; ; n++ {
		page, after, err := b.List(t.Context(), next)
		if err != nil || n > 10_000 {
			t.Fatalf("page %d: %v", n, err)
		}
		for _, o := range page {
			if o.Object <= last {
				t.Errorf("%q comes behind %q", o.Object, last)
			}
			last = o.Object
			if o.ID == id {
				out[o.Object] = o
			}
		}
		if after == "" {
			return out
		}
		next = after
	}
}

func testPurge(t *testing.T, s ObjectStore, b BytesAPI) {
	f, g := NewFile(), NewFile()
	kept := s.store(t, g, []byte("another file"))
	var copies []files.Sealed
	for _, body := range []string{"one", "two", "three"} {
		copies = append(copies, s.store(t, f, []byte(body)))
	}
	for range 2 {
		if err := b.Purge(t.Context(), f.ID); err != nil {
			t.Fatalf("purging: %v", err)
		}
		for _, c := range copies {
			if _, there := s.Read(t, c.Object); there {
				t.Errorf("%s is still there", c.Object)
			}
		}
		_, err := s.Stage.Open(t.Context(), f.ID)
		wantStageErr(t, err, files.ErrNotUploaded)
	}
	wantSealed(t, s, kept, []byte("another file"))
	if _, head := open(t, s.Stage, g.ID); string(head) != "another file" {
		t.Errorf("what is staged for another file is %q", head)
	}
	wantStageErr(t, b.Purge(t.Context(), files.NewID()), nil)
}

func testListObjects(t *testing.T, s ObjectStore, b BytesAPI) {
	f := NewFile()
	one, two := s.store(t, f, []byte("one")), s.store(t, f, []byte("two"))
	got := objectsOf(t, b, f.ID)
	staged := 0
	for name, o := range got {
		if o.Modified.IsZero() {
			t.Errorf("%s has no date", name)
		}
		if o.Staged {
			staged++
		} else if name != one.Object && name != two.Object {
			t.Errorf("%s was never sealed", name)
		}
	}
	if len(got) != 3 || staged != 1 {
		t.Errorf("of %s there are %v, want two copies and an upload", f.ID, got)
	}
	// A place is one whether or not its object is still there.
	for name := range got {
		if err := b.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		page, _, err := b.List(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			if o.Object <= name {
				t.Errorf("behind %q comes %q", name, o.Object)
			}
		}
	}
	if left := objectsOf(t, b, f.ID); len(left) != 0 {
		t.Errorf("after everything was removed there are %v", left)
	}
}

func testExists(t *testing.T, s ObjectStore, b BytesAPI) {
	sealed := s.store(t, NewFile(), []byte("here"))
	want := func(object string, want bool) {
		t.Helper()
		if got, err := b.Exists(t.Context(), object); err != nil || got != want {
			t.Errorf("%s exists: %v, %v; want %v", object, got, err, want)
		}
	}
	want(sealed.Object, true)
	want(sealed.Object[:len(sealed.Object)-1], false) // the beginning of a name is no name
	want(strings.ToUpper(sealed.Object), false)
	if err := b.Remove(t.Context(), sealed.Object); err != nil {
		t.Fatal(err)
	}
	want(sealed.Object, false)
}

func testRemoveByName(t *testing.T, s ObjectStore, b BytesAPI) {
	f := NewFile()
	sealed := s.store(t, f, []byte("both"))
	for name, o := range objectsOf(t, b, f.ID) {
		if !o.Staged {
			continue
		}
		for range 2 {
			if err := b.Remove(t.Context(), name); err != nil {
				t.Errorf("removing %s: %v", name, err)
			}
		}
	}
	_, err := s.Stage.Open(t.Context(), f.ID)
	wantStageErr(t, err, files.ErrNotUploaded)
	wantSealed(t, s, sealed, []byte("both"))
}
