package files_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
	"claimcheck.dev/claimcheck/shared/filestest"
)

// many is a table and a bucket with as many ready files as one likes, which exist only while they are looked at. It
// watches the heap at every page.
type many struct {
	files.ReconcileRecords
	files.SweepRecords
	n          int
	now        time.Time
	base, peak uint64
	pages      int
	ended      chan struct{} // one for each
}

func (m *many) file(i int) files.File {
	id := fmt.Sprintf("f_%026d", i)
	return files.File{
		ID: id, Account: "acme", Actor: "alice", State: files.Ready, Purpose: files.Upload, Filename: "report.pdf",
		Sealed: "sealed/" + id, VerifiedAt: m.now.Add(-time.Hour), ExpiresAt: m.now.Add(time.Hour),
	}
}

// page returns the numbers of the next n files, and watches.
func (m *many) page(from string, n int) (first, last int, next string) {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	if m.base == 0 {
		m.base = s.HeapAlloc
	}
	m.peak = max(m.peak, s.HeapAlloc)
	m.pages++
	if from != "" {
		first, _ = strconv.Atoi(from)
	}
	if last = first + n; last >= m.n {
		return first, m.n, ""
	}
	return first, last, strconv.Itoa(last)
}

func (m *many) List(_ context.Context, from string) ([]files.StoredObject, string, error) {
	first, last, next := m.page(from, 1000)
	page := make([]files.StoredObject, 0, last-first)
	for i := first; i < last; i++ {
		f := m.file(i)
		page = append(page, files.StoredObject{ID: f.ID, Object: f.Sealed, Modified: m.now.Add(-3 * time.Hour)})
	}
	return page, next, nil
}

func (m *many) Records(_ context.Context, ids []string) (map[string]files.File, error) {
	out := map[string]files.File{}
	for _, id := range ids {
		i, err := strconv.Atoi(id[len("f_"):])
		if err != nil {
			return nil, err
		}
		out[id] = m.file(i)
	}
	return out, nil
}

func (m *many) Walk(_ context.Context, from string) (files.WalkPage, string, error) {
	first, last, next := m.page(from, 200)
	var page files.WalkPage
	for i := first; i < last; i++ {
		page.Files = append(page.Files, m.file(i))
	}
	return page, next, nil
}

func (m *many) Due(_ context.Context, minute, now time.Time, from string) ([]files.Hold, string, error) {
	if !minute.Equal(now.Truncate(time.Minute)) {
		return nil, "", nil
	}
	first, last, next := m.page(from, 200)
	var page []files.Hold
	for i := first; i < last; i++ {
		page = append(page, files.Hold{Account: "acme", ID: m.file(i).ID, Deadline: m.now})
	}
	return page, next, nil
}

func (m *many) File(_ context.Context, id string) (files.File, error) {
	out, err := m.Records(context.Background(), []string{id})
	f := out[id]
	f.ExpiresAt = m.now
	return f, err
}

func (m *many) End(_ context.Context, f files.File, e files.Ending) (files.File, error) {
	f.State, f.EndedAt = e.State, e.At
	m.ended <- struct{}{}
	return f, nil
}

func (m *many) HasHold(context.Context, files.File) (bool, error)        { return true, nil }
func (m *many) Exists(context.Context, string) (bool, error)             { return true, nil }
func (m *many) Remove(context.Context, string) error                     { return nil }
func (m *many) Progress(context.Context) (files.Progress, error)         { return files.Progress{}, nil }
func (m *many) SetProgress(context.Context, files.Progress) error        { return nil }
func (m *many) Watermark(context.Context) (time.Time, error)             { return m.now.Add(-time.Minute), nil }
func (m *many) SetWatermark(context.Context, time.Time) error            { return nil }
func (m *many) Release(context.Context, string, string, time.Time) error { return nil }

// TestFlatMemory: what a run keeps does not grow with what it looks at. Not parallel, since it measures the heap.
func TestFlatMemory(t *testing.T) {
	const n, allowed = 100_000, 4 << 20
	check := func(t *testing.T, m *many, pages int) {
		t.Helper()
		if m.pages != pages {
			t.Errorf("it took %d pages, want %d", m.pages, pages)
		}
		if m.peak > m.base+allowed {
			t.Errorf("the heap grew by %d KB, want %d at most", (m.peak-m.base)>>10, allowed>>10)
		}
	}
	now := filestest.NewClock().Now()
	t.Run("reconcile", func(t *testing.T) {
		m := &many{n: n, now: now}
		r := files.Reconciler{Records: m, Objects: m, Now: func() time.Time { return now }}
		if got, err := r.Reconcile(t.Context()); err != nil || got != (files.Reconciled{Finished: true}) {
			t.Errorf("reconciled %+v, %v", got, err)
		}
		check(t, m, n/1000+n/200)
	})
	t.Run("sweep", func(t *testing.T) {
		m := &many{n: n, now: now, ended: make(chan struct{}, n)}
		s := files.Sweeper{Records: m, Now: func() time.Time { return now }}
		if got, err := s.Sweep(t.Context()); err != nil || got.Ended != n || len(m.ended) != n {
			t.Errorf("swept %+v, %v; %d were ended", got, err, len(m.ended))
		}
		check(t, m, n/200)
	})
}
