package store_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"claimcheck.dev/claimcheck/shared/files"
)

// listing is an S3 that keeps names and lists them in pages of three.
type listing struct {
	mu      sync.Mutex
	keys    map[string]bool
	asked   []url.Values // of lists
	broken  string       // the code with which it refuses lists
	endless bool         // lists nothing and says that there is more
}

func (s *listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/bucket"), "/")
	switch {
	case r.Method == http.MethodHead:
		if !s.keys[key] {
			w.WriteHeader(http.StatusNotFound) // without a body that would say what is not found
		}
	case r.Method == http.MethodDelete:
		delete(s.keys, key)
		w.WriteHeader(http.StatusNoContent)
	case s.broken != "":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", s.broken)
	default:
		s.list(w, r.URL.Query())
	}
}

func (s *listing) list(w http.ResponseWriter, q url.Values) {
	s.asked = append(s.asked, q)
	limit := 3
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		limit = n
	}
	var page strings.Builder
	more := s.endless
	for _, k := range slices.Sorted(maps.Keys(s.keys)) {
		if !strings.HasPrefix(k, q.Get("prefix")) || k <= q.Get("start-after") || s.endless {
			continue
		}
		if limit == 0 {
			more = true
			break
		}
		limit--
		fmt.Fprintf(&page, "<Contents><Key>%s</Key><LastModified>2026-03-14T09:26:53.000Z</LastModified><Size>1</Size></Contents>", k)
	}
	fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%v</IsTruncated>%s</ListBucketResult>", more, &page)
}

func list(keys ...string) *listing {
	s := &listing{keys: map[string]bool{}}
	for _, k := range keys {
		s.keys[k] = true
	}
	return s
}

func TestPurgePages(t *testing.T) {
	t.Parallel()
	other := "files/" + id[:len(id)-1] + "q/0"
	s3 := list("staging/"+id, "staging/"+id+"x", other, "files/"+id+"x/0", "files/"+id)
	for i := range 10 {
		s3.keys[fmt.Sprintf("files/%s/%02d", id, i)] = true
	}
	s := connectTo(t, s3)
	if err := s.Purge(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	want := []string{"files/" + id, other, "files/" + id + "x/0", "staging/" + id + "x"}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(s3.keys)); !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	for _, bad := range []string{"", "a/b", "../x", "a b", "é"} {
		if err := s.Purge(t.Context(), bad); err == nil {
			t.Errorf("%q was purged", bad)
		}
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	want := []files.StoredObject{
		{Object: "files/" + id},
		{Object: "files/" + id + "/0", ID: id},
		{Object: "files/" + id + "/0/1"},
		{Object: "files/" + id + "/1", ID: id},
		{Object: "files/x"},
		{Object: "staging/" + id, ID: id, Staged: true},
		{Object: "staging/x y", ID: "x y", Staged: true},
	}
	s3 := list("a", "b", "c", "d", "files", "logs/1", "logs/2", "logs/3", "logs/4", "staging", "z") // pages without any of ours
	for _, o := range want {
		s3.keys[o.Object] = true
	}
	s := connectTo(t, s3)
	var got []files.StoredObject
	for next, n := "", 0; ; n++ {
		page, after, err := s.List(t.Context(), next)
		if err != nil || n > 10 {
			t.Fatal(n, err)
		}
		for _, o := range page {
			if o.Modified.Unix() != 1773480413 {
				t.Errorf("%s is of %v", o.Object, o.Modified)
			}
			o.Modified = files.StoredObject{}.Modified
			got = append(got, o)
		}
		if after == "" {
			break
		}
		next = after
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// TestExistsAgrees: an object is missing only when HEAD and a list say so, and the bucket is there.
func TestExistsAgrees(t *testing.T) {
	t.Parallel()
	s3 := list(sealed, sealed+"0")
	s := connectTo(t, s3)
	if there, err := s.Exists(t.Context(), sealed); err != nil || !there || len(s3.asked) != 0 {
		t.Errorf("an object that is there: %v, %v after %d lists", there, err, len(s3.asked))
	}
	delete(s3.keys, sealed)
	if there, err := s.Exists(t.Context(), sealed); err != nil || there {
		t.Errorf("an object that is not there: %v, %v", there, err)
	}
	s3.broken = "NoSuchBucket"
	if there, err := s.Exists(t.Context(), sealed); err == nil || there {
		t.Errorf("without a bucket: %v, %v", there, err)
	} else {
		checkError(t, err, errUnexplained)
	}
}

// TestEndlessList: S3 never does this; a loop that trusts it would not end.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	s3 := list()
	s3.endless = true
	s := connectTo(t, s3)
	if err := s.Purge(t.Context(), id); err == nil {
		t.Error("Purge came to an end")
	}
	if _, _, err := s.List(t.Context(), ""); err == nil {
		t.Error("List came to an end")
	}
}
