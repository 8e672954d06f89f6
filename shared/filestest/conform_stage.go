package filestest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
)

// ObjectStore is what TestStage and TestSealedWriter test, and two ways around it.
type ObjectStore struct {
	Stage  files.Stage
	Writer files.SealedWriter
	// Put stores bytes as a client's upload for id would, whatever is staged already.
	Put func(t testing.TB, id string, body []byte)
	// Read returns the bytes of a sealed object, false when there is none.
	Read func(t testing.TB, object string) ([]byte, bool)
}

// TestStage checks an object store against the contract of files.Stage. Other objects may be there.
func TestStage(t *testing.T, s ObjectStore) {
	for name, test := range map[string]func(t *testing.T, s ObjectStore){
		"open":                 testStageOpen,
		"open empty":           testStageOpenEmpty,
		"missing":              testStageMissing,
		"tail":                 testStageTail,
		"seal":                 testStageSeal,
		"seal another version": testStageSealVersion,
		"seal large":           testStageSealLarge,
		"discard":              testStageDiscard,
		"remove":               testStageRemove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// pattern returns n bytes that differ from place to place.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	return b
}

func open(t *testing.T, s files.Stage, id string) (staged files.Staged, head []byte) {
	t.Helper()
	staged, err := s.Open(t.Context(), id)
	if err != nil {
		t.Fatalf("opening %s: %v", id, err)
	}
	defer staged.Head.Close()
	if head, err = io.ReadAll(staged.Head); err != nil {
		t.Fatalf("reading the head of %s: %v", id, err)
	}
	return staged, head
}

func seal(t *testing.T, s files.Stage, f files.File, etag string) files.Sealed {
	t.Helper()
	sealed, err := s.Seal(t.Context(), f, etag)
	if err != nil {
		t.Fatalf("sealing %s: %v", f.ID, err)
	}
	return sealed
}

func wantSealed(t *testing.T, s ObjectStore, sealed files.Sealed, body []byte) {
	t.Helper()
	sum := sha256.Sum256(body)
	if want := hex.EncodeToString(sum[:]); sealed.SHA256 != want {
		t.Errorf("the SHA-256 is %s, want %s", sealed.SHA256, want)
	}
	if got, ok := s.Read(t, sealed.Object); !ok || !bytes.Equal(got, body) {
		t.Errorf("%s exists %v with %d bytes, want the %d bytes that were sealed", sealed.Object, ok, len(got), len(body))
	}
}

func wantStageErr(t *testing.T, err error, wants ...error) {
	t.Helper()
	for _, want := range wants {
		if errors.Is(err, want) {
			return
		}
	}
	t.Errorf("got error %v, want one of %v", err, wants)
}

func testStageOpen(t *testing.T, s ObjectStore) {
	etags := map[string]bool{}
	for _, size := range []int{1, files.HeadBytes - 1, files.HeadBytes, files.HeadBytes + 1, 200_000} {
		id, body := files.NewID(), pattern(size)
		s.Put(t, id, body)
		staged, head := open(t, s.Stage, id)
		if staged.Size != int64(size) {
			t.Errorf("an object of %d bytes has size %d", size, staged.Size)
		}
		if want := body[:min(size, files.HeadBytes)]; !bytes.Equal(head, want) {
			t.Errorf("the head of %d bytes has %d bytes, want the first %d", size, len(head), len(want))
		}
		if staged.Modified.IsZero() || staged.Modified.Nanosecond() != 0 {
			t.Errorf("it was stored at %v, want a time in whole seconds", staged.Modified)
		}
		if staged.ETag == "" || etags[staged.ETag] {
			t.Errorf("the ETag %q does not tell objects apart", staged.ETag)
		}
		etags[staged.ETag] = true
	}
}

func testStageOpenEmpty(t *testing.T, s ObjectStore) {
	id := files.NewID()
	s.Put(t, id, nil)
	if staged, head := open(t, s.Stage, id); staged.Size != 0 || len(head) != 0 {
		t.Errorf("an empty object has size %d and a head of %d bytes", staged.Size, len(head))
	}
}

func testStageMissing(t *testing.T, s ObjectStore) {
	f := NewFile()
	_, err := s.Stage.Open(t.Context(), f.ID)
	wantStageErr(t, err, files.ErrNotUploaded)
	_, err = s.Stage.Tail(t.Context(), f.ID, `"0123456789abcdef0123456789abcdef"`, 10)
	wantStageErr(t, err, files.ErrNotUploaded)
	_, err = s.Stage.Seal(t.Context(), f, `"0123456789abcdef0123456789abcdef"`)
	wantStageErr(t, err, files.ErrNotUploaded)
}

func testStageTail(t *testing.T, s ObjectStore) {
	f, body := NewFile(), pattern(100_000)
	s.Put(t, f.ID, body)
	staged, _ := open(t, s.Stage, f.ID)
	for _, n := range []int{1, 22, files.TailBytes, len(body), len(body) + 1} {
		got, err := s.Stage.Tail(t.Context(), f.ID, staged.ETag, int64(n))
		if want := body[len(body)-min(n, len(body)):]; err != nil || !bytes.Equal(got, want) {
			t.Errorf("the last %d of %d bytes are %d bytes, %v", n, len(body), len(got), err)
		}
	}
	s.Put(t, f.ID, pattern(99_999))
	_, err := s.Stage.Tail(t.Context(), f.ID, staged.ETag, 10)
	wantStageErr(t, err, files.ErrStagedChanged)
}

func testStageSeal(t *testing.T, s ObjectStore) {
	f, body := NewFile(), []byte("%PDF-1.7 sealed")
	s.Put(t, f.ID, body)
	staged, _ := open(t, s.Stage, f.ID)
	first := seal(t, s.Stage, f, staged.ETag)
	wantSealed(t, s, first, body)
	if again := seal(t, s.Stage, f, staged.ETag); again != first {
		t.Errorf("sealed again it is %+v, want %+v", again, first)
	}
	if staged, head := open(t, s.Stage, f.ID); staged.Size != int64(len(body)) || !bytes.Equal(head, body) {
		t.Error("sealing changed what is staged")
	}
	// The same bytes of another file are another object.
	g := NewFile()
	s.Put(t, g.ID, body)
	if other := seal(t, s.Stage, g, staged.ETag); other.Object == first.Object {
		t.Errorf("two files share the object %s", other.Object)
	}
}

func testStageSealVersion(t *testing.T, s ObjectStore) {
	f, a, b := NewFile(), []byte("the first bytes"), []byte("the other bytes")
	s.Put(t, f.ID, a)
	stagedA, _ := open(t, s.Stage, f.ID)
	s.Put(t, f.ID, b)
	stagedB, _ := open(t, s.Stage, f.ID)
	_, err := s.Stage.Seal(t.Context(), f, stagedA.ETag)
	wantStageErr(t, err, files.ErrStagedChanged)
	sealedB := seal(t, s.Stage, f, stagedB.ETag)
	s.Put(t, f.ID, a)
	sealedA := seal(t, s.Stage, f, stagedA.ETag)
	if sealedA.Object == sealedB.Object {
		t.Fatalf("two versions share the object %s", sealedA.Object)
	}
	wantSealed(t, s, sealedA, a)
	wantSealed(t, s, sealedB, b)
}

func testStageSealLarge(t *testing.T, s ObjectStore) {
	f, body := NewFile(), pattern(12<<20)
	s.Put(t, f.ID, body)
	staged, head := open(t, s.Stage, f.ID)
	if staged.Size != int64(len(body)) || len(head) != files.HeadBytes {
		t.Errorf("it has %d bytes with a head of %d", staged.Size, len(head))
	}
	wantSealed(t, s, seal(t, s.Stage, f, staged.ETag), body)
}

func testStageDiscard(t *testing.T, s ObjectStore) {
	f, body := NewFile(), []byte("to be discarded")
	s.Put(t, f.ID, body)
	staged, _ := open(t, s.Stage, f.ID)
	sealed := seal(t, s.Stage, f, staged.ETag)
	for etag, want := range map[string]string{staged.ETag: sealed.Object, strings.Trim(staged.ETag, `"`): sealed.Object, "": "", `""`: ""} {
		if got := s.Stage.CopyName(f.ID, etag); got != want {
			t.Errorf("the copy with the ETag %s is called %q, want %q", etag, got, want)
		}
	}
	for range 2 {
		wantStageErr(t, s.Stage.Discard(t.Context(), f.ID), nil)
	}
	_, err := s.Stage.Open(t.Context(), f.ID)
	wantStageErr(t, err, files.ErrNotUploaded)
	wantSealed(t, s, sealed, body)
}

func testStageRemove(t *testing.T, s ObjectStore) {
	f, body := NewFile(), []byte("to be removed")
	s.Put(t, f.ID, body)
	staged, _ := open(t, s.Stage, f.ID)
	sealed := seal(t, s.Stage, f, staged.ETag)
	for range 2 {
		wantStageErr(t, s.Stage.Remove(t.Context(), sealed.Object), nil)
		if _, there := s.Read(t, sealed.Object); there {
			t.Error("the removed object is still there")
		}
	}
	wantSealed(t, s, seal(t, s.Stage, f, staged.ETag), body) // the staged bytes are as they were
}

// TestSealedWriter checks an object store against the contract of files.SealedWriter.
func TestSealedWriter(t *testing.T, s ObjectStore) {
	f, g := NewFile(), NewFile()
	objects := map[string]bool{}
	for _, w := range []struct {
		file files.File
		body []byte
	}{{f, []byte("{}")}, {f, []byte("[]")}, {g, []byte("{}")}, {g, pattern(4 << 20)}} {
		sealed, err := s.Writer.PutSealed(t.Context(), w.file, w.body)
		if err != nil {
			t.Fatalf("writing: %v", err)
		}
		wantSealed(t, s, sealed, w.body)
		if objects[sealed.Object] {
			t.Errorf("%s holds other bytes or another file", sealed.Object)
		}
		objects[sealed.Object] = true
		if again, err := s.Writer.PutSealed(t.Context(), w.file, w.body); err != nil || again != sealed {
			t.Errorf("written again it is %+v, %v; want %+v", again, err, sealed)
		}
	}
}
