package main

import (
	"fmt"
	"net/http"
	"time"
)

// claim claims a single-use file, sometimes one that is not, as one of a few holders.
func (c *caller) claim() {
	f := c.any(func(f *file) bool { return f.single || c.chance(3) })
	if f == nil {
		return
	}
	lease := int64(1 + c.rng.IntN(int(c.limits.leaseTTL/time.Second)))
	cl := &claim{file: f, who: c.who, holder: fmt.Sprintf("call-%d", c.rng.IntN(3)), start: time.Now()}
	cl.possibly = cl.start.Add(time.Hour) // while it is under way
	f.mu.Lock()
	f.claims = append(f.claims, cl)
	before := f.known
	f.mu.Unlock()
	body := fmt.Sprintf(`{"holder":%q,"lease_seconds":%d}`, cl.holder, lease)
	a := c.request(c.who, http.MethodPost, "/v1/files/"+f.id+"/claims", []byte(body))
	f.mu.Lock()
	cl.end = a.end
	cl.possibly = a.end.Add(c.limits.leaseTTL)
	f.mu.Unlock()
	switch {
	case a.unknown():
	case a.status == 201, a.status == 200:
		c.claimed(f, cl, before, a)
	case a.code == "file_claimed":
		f.drop(cl)
		if !f.mayBeClaimed(cl, a) {
			c.wrong(f, "claim", a, "claimed by nobody")
		}
	default:
		f.drop(cl)
		c.wrong(f, "claim", a, f.refused(before, a))
	}
}

// drop forgets a claim that was refused.
func (f *file) drop(c *claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, o := range f.claims {
		if o == c {
			f.claims = append(f.claims[:i:i], f.claims[i+1:]...)
			return
		}
	}
}

func (c *caller) claimed(f *file, cl *claim, before facts, a answer) {
	var got struct {
		Claim string
		Link  linkObject
		Until time.Time `json:"lease_expires_at"`
	}
	if err := a.into(&got); err != nil {
		c.wrong(f, "claim", a, "no claim: "+string(a.body))
		return
	}
	c.linked(f, "claim", before, a, got.Link)
	c.wrong(f, "claim", a, f.claimAcknowledged(before, cl, got.Claim, got.Until, a))
	c.held = append(c.held, cl)
	if c.chance(30) {
		c.fetch(f, got.Link)
	}
}

// mineClaim picks a claim that the caller was given, mostly a recent one.
func (c *caller) mineClaim() *claim {
	if len(c.held) == 0 {
		return nil
	}
	return c.held[len(c.held)-1-c.rng.IntN(min(len(c.held), 5))]
}

// begin tells the model what is about to be done with a claim, and returns what is known before.
func (cl *claim) begin(change func()) facts {
	cl.file.mu.Lock()
	defer cl.file.mu.Unlock()
	change()
	return cl.file.known
}

func (c *caller) commit() {
	cl := c.mineClaim()
	if cl == nil {
		return
	}
	f := cl.file
	first := time.Now()
	before := cl.begin(func() {
		f.tried.commits = true
		for _, o := range f.claims {
			if o.id != cl.id {
				continue
			}
			if o.committing.IsZero() {
				o.committing = first
			}
			first = o.committing
		}
	})
	a := c.request(c.who, http.MethodPost, "/v1/claims/"+cl.id+"/commit", nil)
	why := ""
	switch {
	case a.unknown():
	case a.status == 200:
		f.mu.Lock()
		switch {
		case before.spent != "" && before.spent != cl.id, f.known.spent != "" && f.known.spent != cl.id:
			why = "spent a second time, after " + f.known.spent
		case before.deleted || before.rejected:
			why = "spent after another end"
		case !first.Before(f.expires): // an earlier commit, whose answer was lost, may have spent it in time
			why = "spent after its expiry"
		}
		f.nowSpent(cl.id)
		f.mu.Unlock()
	case a.code == "lease_lost":
		if !f.mayBeLost(cl) || before.spent == cl.id {
			why = "nobody else claimed it, and it was not released"
		}
	case a.code == "file_spent":
		why = "a claim that spent it should be confirmed, another is lost"
	default:
		why = f.refused(before, a)
	}
	c.wrong(f, "commit "+cl.id, a, why)
}

func (c *caller) release() {
	cl := c.mineClaim()
	if cl == nil {
		return
	}
	f := cl.file
	before := cl.begin(func() {
		for _, o := range f.claims {
			if o.id == cl.id {
				o.releaseTried = true
			}
		}
	})
	a := c.request(c.who, http.MethodPost, "/v1/claims/"+cl.id+"/release", nil)
	why := ""
	switch {
	case a.unknown():
	case a.status == 200:
		if before.ended() || !a.start.Before(f.expires) {
			why = "released after its end"
		}
		f.mu.Lock()
		for _, o := range f.claims {
			if o.id == cl.id && o.releasedAt.IsZero() {
				o.releasedAt = a.end
			}
		}
		f.mu.Unlock()
	case a.code == "lease_lost":
		if !f.mayBeLost(cl) {
			why = "nobody else claimed it"
		}
	default:
		why = f.refused(before, a)
	}
	c.wrong(f, "release "+cl.id, a, why)
}

func (c *caller) extend() {
	cl := c.mineClaim()
	if cl == nil {
		return
	}
	f := cl.file
	lease := time.Duration(1+c.rng.IntN(int(c.limits.leaseTTL/time.Second))) * time.Second
	before := cl.begin(func() {
		for _, o := range f.claims {
			if o.id == cl.id {
				if end := time.Now().Truncate(time.Second); end.Before(o.surely) {
					o.surely = end // a shorter lease may take effect at any moment
				}
				o.possibly = time.Now().Add(time.Hour)
			}
		}
	})
	a := c.request(c.who, http.MethodPost, "/v1/claims/"+cl.id+"/extend", fmt.Appendf(nil, `{"lease_seconds":%d}`, int(lease/time.Second)))
	var got struct {
		Until time.Time `json:"lease_expires_at"`
	}
	why := ""
	switch {
	case a.unknown():
	case a.status == 200:
		switch err := a.into(&got); {
		case err != nil:
			why = "no lease: " + string(a.body)
		case before.ended() || got.Until.After(f.expires):
			why = "extended after its end, or beyond it"
		}
	case a.code == "lease_lost":
		if !f.mayBeLost(cl) {
			why = "nobody else claimed it, and it was not released"
		}
	default:
		why = f.refused(before, a)
	}
	f.mu.Lock()
	for _, o := range f.claims {
		if o.id == cl.id {
			o.possibly = a.end.Add(c.limits.leaseTTL)
		}
	}
	f.mu.Unlock()
	c.wrong(f, "extend "+cl.id, a, why)
}
