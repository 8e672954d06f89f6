package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// fileAnswer checks an answer that holds a file object when its status is ok.
func (c *caller) fileAnswer(f *file, doing string, before facts, a answer, ok int) {
	switch {
	case a.unknown():
	case a.status == ok:
		var o fileObject
		if err := a.into(&o); err != nil {
			c.wrong(f, doing, a, "no file object: "+string(a.body))
			return
		}
		c.wrong(f, doing, a, f.shown(before, o, a))
		if o.Upload != nil {
			f.mu.Lock()
			f.url, f.urlEnds, f.headers = o.Upload.URL, o.Upload.ExpiresAt, o.Upload.Headers
			f.mu.Unlock()
		}
	default:
		c.wrong(f, doing, a, f.refused(before, a))
	}
}

// beginPut tells the model what is about to be sent.
func (f *file) beginPut(body []byte) (target string, ends time.Time, headers map[string]string, before facts, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = f.putsBegun == 0
	f.putsBegun++
	digest := sum(body)
	if _, ok := f.tried.puts[digest]; !ok {
		f.tried.puts[digest] = time.Now()
	}
	if f.kind != anyType && digest == sum(f.bad) {
		f.tried.badPut = true
	}
	return f.url, f.urlEnds, f.headers, f.known, first
}

func (c *caller) uploadable(f *file) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.inline && !f.known.staged && f.known.digest == "" && !f.known.ended() && time.Now().Before(f.urlEnds)
}

// put uploads the bytes of a reservation, mostly the right ones.
func (c *caller) put() {
	f := c.own(c.uploadable)
	if f == nil {
		c.reserve()
		return
	}
	switch c.rng.IntN(12) {
	case 0, 1:
		c.putBytes(f, f.bad)
	case 2:
		c.putRefused(f, f.good[:len(f.good)-1], "")
	case 3:
		c.putRefused(f, f.good, "If-None-Match")
	case 4:
		c.putRefused(f, f.good, "Content-Type")
	default:
		c.putBytes(f, f.good)
	}
}

// replay repeats an upload at any later moment.
func (c *caller) replay() {
	f := c.own(func(f *file) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.putsBegun > 0 && time.Now().Before(f.urlEnds)
	})
	if f == nil {
		return
	}
	if c.chance(50) {
		c.putBytes(f, f.good)
	} else {
		c.putBytes(f, f.bad)
	}
}

// putTwice uploads different bytes at once: one content wins.
func (c *caller) putTwice() {
	f := c.own(c.uploadable)
	if f == nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { c.putBytes(f, f.good) })
	both.Go(func() { c.putBytes(f, f.bad) })
	both.Wait()
}

func (c *caller) putBytes(f *file, body []byte) {
	target, ends, headers, before, first := f.beginPut(body)
	a := c.send(http.MethodPut, target, body, flat(headers, "")...)
	wrongDigest := f.sha != "" && sum(body) != f.sha
	expired := !a.end.Before(ends)
	why := ""
	switch {
	case a.unknown():
	case a.status == 200:
		if wrongDigest {
			why = "S3 took other bytes than declared"
		}
		f.mu.Lock()
		if a.end.Before(f.uploadBy) && before.digest == "" && !before.ended() {
			f.known.staged = true
		}
		f.mu.Unlock()
	case a.status == 412, a.status == 409:
		if first && !before.staged && f.onlyPut() {
			why = "there was nothing that the upload could meet"
		}
	case a.status == 403 && expired:
	case a.status == 400 && wrongDigest:
	default:
		why = "the upload was refused: " + string(a.body)
	}
	c.wrong(f, "PUT", a, why)
}

func (f *file) onlyPut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.putsBegun == 1
}

// putRefused sends a request that S3 has to refuse: a length other than signed, or without a signed header.
func (c *caller) putRefused(f *file, body []byte, without string) {
	if without == "" && f.size < 0 {
		return // the length is free
	}
	f.mu.Lock()
	target, headers := f.url, f.headers
	f.mu.Unlock()
	a := c.send(http.MethodPut, target, body, flat(headers, without)...)
	if a.status > 0 && a.status < 400 {
		c.wrong(f, "altered PUT", a, "S3 took it")
	}
}

func flat(headers map[string]string, without string) []string {
	var out []string
	for name, value := range headers {
		if name != without && name != "Content-Length" { // net/http sends the length of the body
			out = append(out, name, value)
		}
	}
	return out
}

func (c *caller) complete() {
	f := c.own(func(f *file) bool { return !f.inline })
	if f == nil {
		return
	}
	before := f.snapshot()
	a := c.request(c.who, http.MethodPost, "/v1/uploads/"+f.id+"/complete", nil)
	c.fileAnswer(f, "complete", before, a, 200)
}

func (c *caller) show() {
	if f := c.any(nil); f != nil {
		before := f.snapshot()
		c.fileAnswer(f, "GET file", before, c.request(c.who, http.MethodGet, "/v1/files/"+f.id, nil), 200)
	}
}

func (c *caller) upload() {
	f := c.own(nil)
	if f == nil {
		return
	}
	before := f.snapshot()
	c.fileAnswer(f, "GET upload", before, c.request(c.who, http.MethodGet, "/v1/uploads/"+f.id, nil), 200)
}

type linkObject struct {
	URL       string
	SHA256    string
	SizeBytes int64     `json:"size_bytes"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (c *caller) link() {
	f := c.any(func(f *file) bool { return !f.single || c.chance(10) })
	if f == nil {
		return
	}
	before := f.snapshot()
	a := c.request(c.who, http.MethodPost, "/v1/files/"+f.id+"/links", nil)
	if a.status != 201 {
		if !a.unknown() {
			c.wrong(f, "link", a, f.refused(before, a))
		}
		return
	}
	var l linkObject
	if err := a.into(&l); err != nil {
		c.wrong(f, "link", a, "no link: "+string(a.body))
		return
	}
	c.linked(f, "link", before, a, l)
	c.fetch(f, l)
}

// linked checks a link that was given out.
func (c *caller) linked(f *file, doing string, before facts, a answer, l linkObject) {
	f.mu.Lock()
	why := ""
	switch {
	case before.ended() || !a.start.Before(f.expires):
		why = "a link to a file that had ended"
	case f.single && doing != "claim":
		why = "a link to a single-use file"
	case l.ExpiresAt.After(f.expires):
		why = "a link that outlives its file"
	default:
		why = f.nowReady(before, &l.SHA256, &l.SizeBytes)
	}
	f.mu.Unlock()
	c.wrong(f, doing, a, why)
}

// fetch reads a link: the bytes are exactly those of the digest, and are there unless the file may have ended.
func (c *caller) fetch(f *file, l linkObject) {
	a := c.send(http.MethodGet, l.URL, nil)
	f.mu.Lock()
	gone := f.tried.deleted || f.tried.commits
	f.mu.Unlock()
	switch {
	case a.unknown():
	case a.status == 200:
		if sum(a.body) != l.SHA256 {
			c.wrong(f, "fetch", a, "other bytes than those of the digest")
		}
	case a.status == 403 && !a.end.Before(l.ExpiresAt):
	case a.status == 403 && (gone || !a.end.Before(f.expires)): // who may not list is not told 404
	default:
		c.wrong(f, "fetch", a, "the bytes are not there: "+string(a.body))
	}
}

func (c *caller) content() {
	f := c.any(nil)
	if f == nil {
		return
	}
	before := f.snapshot()
	a := c.request(c.who, http.MethodGet, "/v1/files/"+f.id+"/content", nil)
	if a.status != 302 {
		if !a.unknown() {
			c.wrong(f, "content", a, f.refused(before, a))
		}
		return
	}
	l := linkObject{URL: a.header.Get("Location"), SHA256: a.header.Get("X-Content-Sha256"), ExpiresAt: f.expires}
	f.mu.Lock()
	known := f.known.digest
	f.mu.Unlock()
	if known != "" && l.SHA256 != known || f.single || before.ended() {
		c.wrong(f, "content", a, "redirected to "+l.SHA256)
	}
	c.fetch(f, l)
}

// resolve asks for several handles at once; all must be readable, or one is named.
func (c *caller) resolve() {
	var input []string
	asked := map[string]*file{}
	before := map[string]facts{}
	for range 1 + c.rng.IntN(4) {
		if f := c.any(func(f *file) bool { return !f.single }); f != nil {
			input = append(input, "claim://"+f.id)
			asked["claim://"+f.id], before["claim://"+f.id] = f, f.snapshot()
		}
	}
	body, _ := json.Marshal(map[string]any{"input": map[string]any{"files": input}}) // strings always encode
	a := c.request(c.who, http.MethodPost, "/v1/resolve", body)
	if a.unknown() {
		return
	}
	if a.status != 200 {
		var problem struct{ Handle string }
		f := asked[""]
		if a.into(&problem) == nil {
			f = asked[problem.Handle]
		}
		if f == nil {
			c.fail("%s: resolve of %v answered %s %s", c.name, input, a, a.body)
			return
		}
		c.wrong(f, "resolve", a, f.refused(before[problem.Handle], a))
		return
	}
	var out struct {
		Meta map[string]map[string]struct {
			URL, SHA256 string
			Size        int64
			Expires     time.Time
		} `json:"_meta"`
	}
	if err := a.into(&out); err != nil || len(out.Meta["dev.claimcheck/files"]) != len(asked) {
		c.fail("%s: resolve of %v answered %s", c.name, input, a.body)
		return
	}
	for handle, l := range out.Meta["dev.claimcheck/files"] {
		c.linked(asked[handle], "resolve", before[handle], a, linkObject{URL: l.URL, SHA256: l.SHA256, SizeBytes: l.Size, ExpiresAt: l.Expires})
	}
}

// foreign asks for a file of another account, which is like one that never was.
func (c *caller) foreign() {
	for _, other := range c.accounts {
		if other == c.acc {
			continue
		}
		other.mu.Lock()
		f := pick(c.rng, other.files, nil)
		other.mu.Unlock()
		if f == nil {
			continue
		}
		requests := [][2]string{
			{http.MethodGet, "/v1/files/" + f.id}, {http.MethodDelete, "/v1/files/" + f.id},
			{http.MethodPost, "/v1/uploads/" + f.id + "/complete"}, {http.MethodPost, "/v1/files/" + f.id + "/links"},
		}
		r := requests[c.rng.IntN(len(requests))]
		if a := c.request(c.who, r[0], r[1], nil); !a.unknown() && a.code != "file_not_found" {
			c.wrong(f, r[0]+" by another account of", a, "not 404")
		}
	}
}

func (c *caller) remove() {
	f := c.any(nil)
	if f == nil {
		return
	}
	f.mu.Lock()
	f.tried.deleted = true
	f.mu.Unlock()
	a := c.request(c.who, http.MethodDelete, "/v1/files/"+f.id, nil)
	switch {
	case a.unknown():
	case a.status == 204:
		f.mu.Lock()
		f.nowDeleted()
		f.mu.Unlock()
	default:
		c.wrong(f, "DELETE", a, "not 204")
	}
}

// list reads all pages: nothing in it has ended, and nothing is missing.
func (c *caller) list() {
	type expected struct {
		f      *file
		before facts
	}
	want := map[string]expected{}
	c.acc.mu.Lock()
	for _, f := range c.acc.counting {
		f.mu.Lock()
		want[f.id] = expected{f, f.known}
		f.mu.Unlock()
	}
	c.acc.mu.Unlock()
	seen := map[string]bool{}
	began := time.Now()
	for cursor := ""; ; {
		path := "/v1/files?limit=100"
		if cursor != "" {
			path += "&cursor=" + url.QueryEscape(cursor)
		}
		a := c.request(c.who, http.MethodGet, path, nil)
		if a.unknown() {
			return
		}
		var page struct {
			Files []fileObject
			Next  *string `json:"next_cursor"`
		}
		if err := a.into(&page); err != nil || a.status != 200 {
			c.fail("%s: list answered %s %s", c.name, a, a.body)
			return
		}
		for _, o := range page.Files {
			if seen[o.ID] {
				c.fail("%s: list shows %s twice", c.name, o.ID)
			}
			seen[o.ID] = true
			if e, ok := want[o.ID]; ok {
				c.wrong(e.f, "list", a, e.f.shown(e.before, o, a))
				if e.before.rejected {
					c.wrong(e.f, "list", a, "listed after it was rejected")
				}
			}
		}
		if page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	for id, e := range want {
		e.f.mu.Lock()
		// A reservation past its time isn't listed, though the news of its bytes may yet come.
		settled := e.before.digest != "" || time.Now().Before(e.f.uploadBy)
		missing := !seen[id] && settled && e.f.certainlyLive(time.Now())
		e.f.mu.Unlock()
		if missing {
			c.wrong(e.f, "list", answer{start: began, end: time.Now(), status: 200}, "not listed")
		}
	}
}

func (c *caller) usage() {
	a := c.request(c.who, http.MethodGet, "/v1/usage", nil)
	if a.unknown() {
		return
	}
	var u usage
	if err := a.into(&u); err != nil || a.status != 200 {
		c.fail("%s: usage answered %s %s", c.name, a, a.body)
		return
	}
	_, most := c.acc.bounds(c.who.actor, a.start, nil)
	if u.Account.LiveBytes > most.bytes || u.Account.Files > most.files || u.Actor.Reservations > most.reservations {
		c.fail("%s: usage from %s to %s is %+v, but at most %+v counted", c.name, stamp(a.start), stamp(a.end), u, most)
	}
	if u.Account.LiveBytes > c.limits.maxLive || u.Actor.Reservations > c.limits.reservations || u.Account.LiveBytes < 0 || u.Account.Files < 0 || u.Actor.Reservations < 0 {
		c.fail("%s: usage is over the limits, or negative: %+v", c.name, u)
	}
}

// usage is the answer of GET /v1/usage.
type usage struct {
	Account struct {
		LiveBytes int64 `json:"live_bytes"`
		Files     int64
	}
	Actor struct{ Reservations int64 }
}
