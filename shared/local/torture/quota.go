package main

import (
	"fmt"
	"slices"
	"time"
)

// attempt is a creation that is under way or whose outcome nobody told: it may count until its time is over.
type attempt struct {
	who      *identity
	size     int64 // bytes it would be charged
	unsized  bool
	reserves bool // counts as a reservation
	start    time.Time
	until    time.Time // after that it counts no more
	resolved bool      // its file is known, or it was refused
	unknown  bool      // the answer said nothing
}

func (acc *account) begin(at *attempt) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.attempts = append(acc.attempts, at)
}

// settle ends an attempt with what the answer said; f is the new file, if any.
func (acc *account) settle(at *attempt, f *file, a answer, life time.Duration) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	if f != nil {
		acc.files = append(acc.files, f)
		acc.counting = append(acc.counting, f)
	}
	if a.unknown() {
		acc.unknown++
		at.unknown, at.until = true, a.end.Add(life+time.Second)
		return
	}
	at.resolved = true
}

// held is what an account, and one of its actors, hold at least or at most.
type held struct {
	bytes, files, reservations, unsized int64
}

// bounds returns what certainly counts now, and what may have counted at some time since start, other than own.
func (acc *account) bounds(actor string, start time.Time, own *attempt) (least, most held) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	now := time.Now()
	for _, f := range acc.counting {
		f.mu.Lock()
		certain, possible := f.charge()
		mine := f.owner.actor == actor && !f.inline
		if f.certainlyLive(now) {
			least.files++
			least.bytes += certain
			if mine && f.putsBegun == 0 && now.Before(f.uploadBy) {
				least.reservations++
				if f.size < 0 {
					least.unsized += f.charged
				}
			}
		}
		if f.possiblyLive(start) {
			most.files++
			most.bytes += possible
			if mine && start.Before(f.uploadBy) && (f.readyAt.IsZero() || !f.readyAt.Before(start)) {
				most.reservations++
				if f.size < 0 {
					most.unsized += f.charged
				}
			}
		}
		f.mu.Unlock()
	}
	for _, at := range acc.attempts {
		if at == own || at.resolved || at.unknown && !start.Before(at.until) {
			continue
		}
		most.files++
		most.bytes += at.size
		if at.reserves && at.who.actor == actor {
			most.reservations++
			if at.unsized {
				most.unsized += at.size
			}
		}
	}
	return least, most
}

// overLimit says which limit is certainly exceeded, or "".
func (l limits) overLimit(least held) string {
	switch {
	case least.bytes > l.maxLive:
		return fmt.Sprintf("the account certainly holds %d bytes, over the limit of %d", least.bytes, l.maxLive)
	case least.reservations > l.reservations:
		return fmt.Sprintf("the actor certainly holds %d reservations, over the limit of %d", least.reservations, l.reservations)
	case least.unsized > l.maxLive/4:
		return fmt.Sprintf("the actor certainly holds %d bytes without a size, over the limit of %d", least.unsized, l.maxLive/4)
	}
	return ""
}

// falseLimit says why a refusal for a limit can't be right, or "".
func (l limits) falseLimit(most held, at *attempt, a answer) string {
	switch a.code {
	case "too_many_reservations":
		if most.reservations >= l.reservations || at.unsized && most.unsized+at.size > l.maxLive/4 {
			return ""
		}
	case "storage_quota_exceeded":
		if most.bytes+at.size > l.maxLive {
			return ""
		}
	}
	return fmt.Sprintf("refused as %s, but at most %+v counted beside %d bytes", a.code, most, at.size)
}

// forget drops what can't matter to quotas any more, so that a long run stays fast.
func (acc *account) forget() {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	now := time.Now().Add(-time.Minute) // no request takes longer
	acc.counting = slices.DeleteFunc(acc.counting, func(f *file) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.possiblyLive(now)
	})
	kept := acc.attempts[:0]
	for _, at := range acc.attempts {
		if !at.resolved && !(at.unknown && at.until.Before(now)) {
			kept = append(kept, at)
		}
	}
	acc.attempts = kept
}
