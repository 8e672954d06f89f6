package filestest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"claimcheck.dev/claimcheck/shared/files"
)

// testLifeModel does the same random things to the records under test and to Records, and wants the same answers: what
// testModel does, and what comes after.
func testLifeModel(t *tableTest) {
	const seed, steps = 11, 400
	m := model{tableTest: t, want: NewRecords(), rand: rand.New(rand.NewPCG(seed, seed))}
	for i := range steps {
		m.step = i
		if m.rand.IntN(3) == 0 {
			m.one()
		} else {
			m.live()
		}
	}
	m.compare()
}

type answer struct {
	file     files.File
	claim    string
	repeated bool
}

// live does one random thing to a file that may be claimed.
func (m *model) live() {
	m.clock += time.Duration(m.rand.IntN(10)) * time.Second
	now := Now.Add(m.clock)
	if len(m.single) < 6 || m.rand.IntN(8) == 0 {
		f := NewFile(Once, Sized(1+m.rand.Int64N(100)))
		f.CreatedAt, f.UploadBy, f.ExpiresAt = now, now.Add(time.Minute), now.Add(time.Duration(2+m.rand.IntN(10))*time.Minute)
		both(m, "Create", func(r RecordsAPI) (files.File, error) {
			f, _, err := r.Create(m.ctx, f, Roomy, nil, now)
			return f, err
		})
		if m.rand.IntN(6) > 0 {
			v := VerifiedAs(f, f.Size)
			v.At = now
			both(m, "MarkReady", func(r RecordsAPI) (files.File, error) { return r.MarkReady(m.ctx, f, v) })
		}
		m.single = append(m.single[max(0, len(m.single)-7):], f.ID)
	}
	id := m.single[m.rand.IntN(len(m.single))]
	f, err := m.want.File(m.ctx, id)
	if err != nil {
		return
	}
	claim := f.Claim.ID
	if claim == "" || m.rand.IntN(5) == 0 {
		claim = "c_" + files.RandomText(52)
	}
	switch m.rand.IntN(10) {
	case 0, 1, 2:
		c := files.Claim{ID: "c_" + files.RandomText(52), Actor: "alice", Holder: "h", LeaseUntil: now.Add(time.Duration(1+m.rand.IntN(40)) * time.Second)}
		var idem *files.Idempotency
		if m.rand.IntN(2) == 0 {
			idem = &files.Idempotency{Account: "acme", Actor: "alice", Route: "claims", Key: fmt.Sprint(id, m.rand.IntN(2)), Digest: fmt.Sprint(m.rand.IntN(5) / 4)}
		}
		both(m, "Claim", func(r RecordsAPI) (answer, error) {
			f, claim, repeated, err := r.Claim(m.ctx, id, c, idem, now)
			return answer{f, claim, repeated}, err
		})
	case 3:
		both(m, "Unclaim", func(r RecordsAPI) (files.File, error) { return r.Unclaim(m.ctx, id, claim) })
	case 4:
		until := now.Add(time.Duration(1+m.rand.IntN(60)) * time.Second)
		both(m, "Extend", func(r RecordsAPI) (files.File, error) { return r.Extend(m.ctx, id, claim, until) })
	case 5:
		both(m, "Spend", func(r RecordsAPI) (files.File, error) { return r.Spend(m.ctx, f, claim, now) })
	case 6:
		end := files.Ending{State: files.Deleted, At: now}
		both(m, "End", func(r RecordsAPI) (files.File, error) { return r.End(m.ctx, f, end) })
	case 7:
		both(m, "Usage", func(r RecordsAPI) (files.Usage, error) { return r.Usage(m.ctx, "acme", "alice") })
	case 8:
		minute := now.Add(-time.Duration(m.rand.IntN(3)) * time.Minute)
		due := both(m, "Due", func(r RecordsAPI) (map[string]files.Hold, error) {
			t := *m.tableTest
			t.Records = r
			return t.due(minute, now), nil
		})
		for _, h := range due {
			both(m, "Release", func(r RecordsAPI) (struct{}, error) { return struct{}{}, r.Release(m.ctx, h.Account, h.ID, now) })
		}
	default:
		at := files.Position{CreatedAt: f.CreatedAt, ID: f.ID}
		if m.rand.IntN(3) == 0 {
			at = files.Position{}
		}
		both(m, "Files", func(r RecordsAPI) ([]string, error) {
			list, more, err := r.Files(m.ctx, "acme", at, 4)
			out := []string{fmt.Sprint(more)}
			for _, f := range list {
				out = append(out, f.ID+" "+string(f.State))
			}
			return out, err
		})
	}
	if m.step%40 == 0 {
		m.compare()
	}
}
