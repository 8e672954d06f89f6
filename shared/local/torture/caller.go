package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	anyType  = "application/octet-stream"
	pdfType  = "application/pdf"
	textType = "text/plain; charset=utf-8"
)

// caller does one thing after another, at random but always the same for a seed.
type caller struct {
	*world
	who  *identity
	acc  *account
	rng  *rand.Rand
	name string
	n    int     // of its bodies
	mine []*file // that it reserved
	held []*claim
	// repeatable are creations under an Idempotency-Key.
	repeatable []creation
	counts     []atomic.Int64 // of deeds, shared
}

// creation is a reservation under an Idempotency-Key, to be repeated.
type creation struct {
	key, body string
	id        string // "" while unknown
	at        *attempt
	draft     *file
	made      time.Time
	again     bool // an earlier attempt may have made it
}

// deeds are what a caller may do, with how often.
var deeds = [...]struct {
	name   string
	weight int
	do     func(*caller)
}{
	{"reserve", 20, (*caller).reserve},
	{"repeat", 3, (*caller).repeat},
	{"inline", 7, (*caller).createInline},
	{"put", 22, (*caller).put},
	{"replay", 4, (*caller).replay},
	{"put twice", 2, (*caller).putTwice},
	{"complete", 12, (*caller).complete},
	{"show", 8, (*caller).show},
	{"upload", 3, (*caller).upload},
	{"link", 8, (*caller).link},
	{"content", 3, (*caller).content},
	{"resolve", 3, (*caller).resolve},
	{"list", 1, (*caller).list},
	{"usage", 2, (*caller).usage},
	{"foreign", 2, (*caller).foreign},
	{"claim", 12, (*caller).claim},
	{"commit", 5, (*caller).commit},
	{"release", 4, (*caller).release},
	{"extend", 2, (*caller).extend},
	{"delete", 5, (*caller).remove},
}

// step does one thing.
func (c *caller) step() {
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	n := c.rng.IntN(total)
	for i, d := range deeds {
		if n -= d.weight; n < 0 {
			c.counts[i].Add(1)
			d.do(c)
			return
		}
	}
}

func (c *caller) chance(percent int) bool { return c.rng.IntN(100) < percent }

// any picks a file that the caller can see, mostly a recent one; nil when there is none.
func (c *caller) any(fits func(*file) bool) *file {
	c.acc.mu.Lock()
	defer c.acc.mu.Unlock()
	return pick(c.rng, c.acc.files, fits)
}

// own picks a file that the caller reserved itself.
func (c *caller) own(fits func(*file) bool) *file { return pick(c.rng, c.mine, fits) }

func pick(rng *rand.Rand, from []*file, fits func(*file) bool) *file {
	for range 8 {
		if len(from) == 0 {
			return nil
		}
		recent := min(len(from), 24)
		if rng.IntN(10) == 0 {
			recent = min(len(from), 400)
		}
		if f := from[len(from)-1-rng.IntN(recent)]; fits == nil || fits(f) {
			return f
		}
	}
	return nil
}

// body makes bytes that occur once in a run.
func (c *caller) body(kind string, size int) []byte {
	c.n++
	text := fmt.Sprintf("%s-%d ", c.name, c.n)
	if kind == pdfType {
		text = "%PDF-1.7\n" + text
	}
	for len(text) < size {
		text += text
	}
	return []byte(text[:max(size, 24)])
}

// wrong reports what the model finds wrong with an answer.
func (c *caller) wrong(f *file, doing string, a answer, why string) {
	if why == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.fail("%s: %s %s %s answered %s from %s to %s: %s\n    known %+v, tried %+v, uploadBy %s, expires %s, single %v", c.name, f.owner.account, doing, f.id, a,
		stamp(a.start), stamp(a.end), why, f.known, f.tried, stamp(f.uploadBy), stamp(f.expires), f.single)
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// draft makes up a file to create.
func (c *caller) draft(inline bool) *file {
	f := &file{owner: c.who, single: c.chance(40), inline: inline, size: -1, charged: c.limits.maxFile, kind: anyType}
	switch c.rng.IntN(4) {
	case 0:
		f.kind = pdfType
	case 1:
		f.kind = textType
	}
	size := 24 + c.rng.IntN(3000)
	if c.chance(10) {
		size = 20_000 + c.rng.IntN(40_000)
	}
	f.good, f.bad = c.body(f.kind, size), c.body("", size)
	switch f.kind {
	case textType:
		f.bad[7] = 0 // no text has that
	case anyType: // anything passes, so the other bytes are as good
	}
	if inline || c.chance(80) {
		f.size = int64(len(f.good))
		f.charged = f.size
	}
	f.bad = f.bad[:len(f.good)]
	if !inline && c.chance(40) {
		f.sha = sum(f.good)
	}
	f.tried.puts = map[string]time.Time{}
	return f
}

// ttl is a life in seconds, 0 for the default.
func (c *caller) ttl() int64 {
	if c.chance(25) {
		return int64(1 + c.rng.IntN(6))
	}
	return 0
}

func (c *caller) reserve() {
	f := c.draft(false)
	fields := []string{`"filename":"a b.txt"`, fmt.Sprintf(`"content_type":%q`, f.kind)}
	if f.size >= 0 {
		fields = append(fields, fmt.Sprintf(`"size_bytes":%d`, f.size))
	}
	if f.sha != "" {
		fields = append(fields, fmt.Sprintf(`"sha256":%q`, f.sha))
	}
	if f.single {
		fields = append(fields, `"single_use":true`)
	}
	if ttl := c.ttl(); ttl > 0 {
		fields = append(fields, fmt.Sprintf(`"ttl_seconds":%d`, ttl))
	}
	cr := creation{body: "{" + strings.Join(fields, ",") + "}", draft: f, made: time.Now()}
	if c.chance(25) {
		cr.key = fmt.Sprintf("%s-%d", c.name, c.n)
	}
	c.attempt(&cr)
	if cr.key != "" {
		c.repeatable = append(c.repeatable, cr)
	}
}

// attempt sends a reservation and learns from the answer.
func (c *caller) attempt(cr *creation) {
	f := cr.draft
	var header []string
	if cr.key != "" {
		header = []string{"Idempotency-Key", cr.key}
	}
	cr.at = &attempt{who: c.who, size: f.charged, unsized: f.size < 0, reserves: true, start: time.Now()}
	c.acc.begin(cr.at)
	a := c.request(c.who, http.MethodPost, "/v1/uploads", []byte(cr.body), header...)
	var made *file
	switch {
	case a.status == 201:
		var o fileObject
		if err := a.into(&o); err != nil || o.Upload == nil {
			c.fail("%s: a reservation without an upload: %s", c.name, a.body)
			break
		}
		made = f
		f.id, f.uploadBy, f.expires = o.ID, o.UploadBy, o.ExpiresAt
		f.url, f.urlEnds, f.headers = o.Upload.URL, o.Upload.ExpiresAt, o.Upload.Headers
		cr.id = o.ID
		c.mine = append(c.mine, f)
	case a.unknown():
	case cr.again && (a.code == "upload_expired" || a.code == "file_expired"): // made by an attempt that nobody heard of
	case a.code == "too_many_reservations" || a.code == "storage_quota_exceeded":
		_, most := c.acc.bounds(c.who.actor, a.start, cr.at)
		if why := c.limits.falseLimit(most, cr.at, a); why != "" {
			c.fail("%s: reserve answered %s from %s to %s: %s", c.name, a, stamp(a.start), stamp(a.end), why)
		}
		if a.header.Get("Retry-After") == "" {
			c.fail("%s: %s without Retry-After", c.name, a)
		}
	default:
		c.fail("%s: reserve %s answered %s %s", c.name, cr.body, a, a.body)
	}
	c.acc.settle(cr.at, made, a, c.limits.reservationTTL)
	if made != nil {
		least, _ := c.acc.bounds(c.who.actor, time.Now(), nil)
		if why := c.limits.overLimit(least); why != "" {
			c.fail("%s: after reserving %s: %s", c.name, f.id, why)
		}
	}
}

// repeat sends a reservation again under its Idempotency-Key, or another under the same.
func (c *caller) repeat() {
	if len(c.repeatable) == 0 {
		return
	}
	i := len(c.repeatable) - 1 - c.rng.IntN(min(4, len(c.repeatable)))
	cr := &c.repeatable[i]
	if cr.id == "" { // nobody knows yet whether it was made: this asks
		if time.Since(cr.made) < 3*time.Second {
			again := creation{key: cr.key, body: cr.body, draft: cr.draft, made: cr.made, again: true}
			c.attempt(&again)
			*cr = again
		}
		return
	}
	f := cr.draft
	before := f.snapshot()
	if c.chance(20) {
		a := c.request(c.who, http.MethodPost, "/v1/uploads", []byte(strings.Replace(cr.body, "a b.txt", "other", 1)), "Idempotency-Key", cr.key)
		if !a.unknown() && a.code != "idempotency_mismatch" {
			c.wrong(f, "another request under its key for", a, "not a mismatch")
		}
		return
	}
	a := c.request(c.who, http.MethodPost, "/v1/uploads", []byte(cr.body), "Idempotency-Key", cr.key)
	c.fileAnswer(f, "repeat", before, a, 201)
}

func (c *caller) createInline() {
	f := c.draft(true)
	path := fmt.Sprintf("/v1/files?filename=inline&content_type=%s", url.QueryEscape(f.kind))
	if f.single {
		path += "&single_use=true"
	}
	life := c.limits.reservationTTL // the time that an inline file has to get ready
	if ttl := c.ttl(); ttl > 0 {
		path += fmt.Sprintf("&ttl_seconds=%d", ttl)
		life = min(life, time.Duration(ttl)*time.Second)
	}
	at := &attempt{who: c.who, size: f.size, start: time.Now()}
	c.acc.begin(at)
	f.tried.puts[sum(f.good)] = time.Now()
	a := c.request(c.who, http.MethodPost, path, f.good, "Content-Type", anyType)
	var made *file
	switch {
	case a.status == 201:
		var o fileObject
		if err := a.into(&o); err != nil {
			c.fail("%s: an inline file answered %s", c.name, a.body)
			break
		}
		f.id, f.uploadBy, f.expires = o.ID, o.UploadBy, o.ExpiresAt
		made = f
		if why := f.shown(facts{}, o, a); why != "" || o.State != "ready" && o.State != "expired" {
			c.wrong(f, "inline", a, "made in state "+o.State+" "+why)
		}
	case a.unknown():
	case a.status == 410 && !a.end.Before(a.start.Truncate(time.Second).Add(life)): // shorter than the request
	case a.code == "storage_quota_exceeded":
		_, most := c.acc.bounds(c.who.actor, a.start, at)
		if why := c.limits.falseLimit(most, at, a); why != "" {
			c.fail("%s: inline answered %s from %s to %s: %s", c.name, a, stamp(a.start), stamp(a.end), why)
		}
	default:
		c.fail("%s: inline answered %s %s", c.name, a, a.body)
	}
	c.acc.settle(at, made, a, c.limits.fileTTL)
	if made != nil {
		c.mine = append(c.mine, f)
		least, _ := c.acc.bounds(c.who.actor, time.Now(), nil)
		if why := c.limits.overLimit(least); why != "" {
			c.fail("%s: after creating %s: %s", c.name, f.id, why)
		}
	}
}
