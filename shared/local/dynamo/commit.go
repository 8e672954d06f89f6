package dynamo

import (
	"fmt"
	"time"
)

// tokenLife is how long a ClientRequestToken protects a transaction.
const tokenLife = 10 * time.Minute

// requestToken is a remembered ClientRequestToken.
type requestToken struct {
	digest string // of the request it came with
	at     time.Time
}

// commit is a set of changes that happen together.
type commit struct {
	changes []change
	expired bool // made by Sweep
	token   string
	digest  string
}

// commit writes the changes to the journal and then applies them. It holds
// nothing back: after it, memory and journal agree. The caller holds the write
// lock and has checked every condition.
func (s *Server) commit(c commit) error {
	at := s.now()
	l := &line{At: at.UnixNano(), Seq: s.seq, Expired: c.expired}
	if c.token != "" {
		l.Token = &lineToken{Token: c.token, Digest: c.digest}
	}
	for _, ch := range c.changes {
		if sameItem(ch.old, ch.new) {
			continue
		}
		w := lineWrite{Table: ch.table.spec.Name, Put: ch.new}
		if ch.new == nil {
			w.Del = ch.table.schema.keyOf(ch.old)
		}
		l.Writes = append(l.Writes, w)
	}
	if len(l.Writes) > 0 || l.Token != nil {
		if err := s.journal.append(l); err != nil {
			return internalError(err.Error())
		}
	}
	s.perform(c, at)
	if s.journal.full() {
		s.compact()
	}
	return nil
}

// perform applies a commit in memory and to the streams.
func (s *Server) perform(c commit, at time.Time) {
	for _, ch := range c.changes {
		ch.apply()
		// A write that changes nothing leaves no stream record.
		if st := ch.table.stream; st != nil && !sameItem(ch.old, ch.new) {
			s.seq++
			present := ch.new
			if present == nil {
				present = ch.old
			}
			st.add(streamEntry{
				seq: s.seq, at: at, keys: ch.table.schema.keyOf(present),
				old: ch.old, new: ch.new, expired: c.expired,
			})
		}
	}
	if c.token != "" {
		s.tokens[c.token] = requestToken{digest: c.digest, at: at}
	}
}

func sameItem(a, b document) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return equal(a, b)
}

func (t requestToken) protects(now time.Time) bool { return now.Sub(t.at) <= tokenLife }

// forgetTokens drops, now and then, the tokens that no longer protect anything.
// The SDK gives every transaction a token, so looking at all of them each time
// would be too much.
func (s *Server) forgetTokens(now time.Time) {
	if now.Sub(s.forgotten) < tokenLife/10 {
		return
	}
	s.forgotten = now
	for name, t := range s.tokens {
		if !t.protects(now) {
			delete(s.tokens, name)
		}
	}
}

// replay applies one line of the journal.
func (s *Server) replay(l *line) error {
	switch {
	case l.Create != nil:
		s.tables[l.Create.Spec.Name] = newTable(l.Create.Spec, l.Create.ID, time.Unix(0, l.Create.Created), s.limits)
		return nil
	case l.Drop != "":
		delete(s.tables, l.Drop)
		return nil
	case l.State != nil:
		s.seq = l.State.Seq
		for name, seq := range l.State.Trimmed {
			if t := s.tables[name]; t != nil && t.stream != nil {
				t.stream.trimmed = max(seq, t.stream.trimmed)
			}
		}
		return nil
	case l.TTL != nil:
		t, err := s.known(l.TTL.Table)
		if err == nil {
			t.spec.TTLAttribute = l.TTL.Attribute
		}
		return err
	case l.Load != nil:
		ch, err := s.changeOf(*l.Load)
		if err == nil {
			ch.apply()
		}
		return err
	case l.Record != nil:
		t, err := s.known(l.Record.Table)
		if err == nil && t.stream != nil {
			r := l.Record
			// Share the image with the table again.
			if key, ok := t.schema.orderingKey(r.Keys); ok {
				if item := t.items.get(string(key)); item != nil && equal(item, r.New) {
					r.New = item
				}
			}
			t.stream.add(streamEntry{
				seq: r.Seq, at: time.Unix(0, r.At), keys: r.Keys, old: r.Old, new: r.New, expired: r.Expired,
			})
		}
		return err
	}
	return s.replayCommit(l)
}

func (s *Server) replayCommit(l *line) error {
	c := commit{expired: l.Expired}
	at := time.Unix(0, l.At)
	if l.Token != nil {
		c.token, c.digest = l.Token.Token, l.Token.Digest
		if l.Token.At != 0 { // from a snapshot
			at = time.Unix(0, l.Token.At)
		}
	}
	for _, w := range l.Writes {
		ch, err := s.changeOf(w)
		if err != nil {
			return err
		}
		c.changes = append(c.changes, ch)
	}
	if len(c.changes) > 0 {
		s.seq = l.Seq
		s.commits++
	}
	s.perform(c, at)
	return nil
}

func (s *Server) known(name string) (*table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no table %q at this point", name)
}

func (s *Server) changeOf(w lineWrite) (change, error) {
	t, err := s.known(w.Table)
	if err != nil {
		return change{}, err
	}
	item := w.Put
	if item == nil {
		item = w.Del
	}
	key, ok := t.schema.orderingKey(item)
	if !ok {
		return change{}, fmt.Errorf("an item of table %q lacks its key", w.Table)
	}
	return change{table: t, key: string(key), old: t.items.get(string(key)), new: w.Put}, nil
}

// compact rewrites the journal as a snapshot. When that fails the old journal
// stays in use, and the next attempt waits for it to double.
func (s *Server) compact() {
	if err := s.journal.rewrite(s.snapshot); err != nil {
		s.journal.limit *= 2
	}
}

// snapshot emits lines that rebuild the present state.
func (s *Server) snapshot(put func(*line) error) error {
	s.forgetTokens(s.now())
	trimmed := make(map[string]int64)
	for _, name := range sortedKeys(s.tables) {
		t := s.tables[name]
		if err := put(&line{Create: &lineTable{Spec: t.spec, ID: t.id, Created: t.created.UnixNano()}}); err != nil {
			return err
		}
		var err error
		t.items.ascend(keyRange{}, func(e entry) bool {
			err = put(&line{Load: &lineWrite{Table: name, Put: e.item}})
			return err == nil
		})
		if err != nil {
			return err
		}
		if t.stream == nil {
			continue
		}
		for _, e := range t.stream.entries {
			r := &lineRecord{Table: name, Seq: e.seq, At: e.at.UnixNano(), Keys: e.keys, Old: e.old, New: e.new, Expired: e.expired}
			if err := put(&line{Record: r}); err != nil {
				return err
			}
		}
		trimmed[name] = t.stream.trimmed
	}
	for _, name := range sortedKeys(s.tokens) {
		tk := s.tokens[name]
		if err := put(&line{Token: &lineToken{Token: name, Digest: tk.digest, At: tk.at.UnixNano()}}); err != nil {
			return err
		}
	}
	return put(&line{State: &lineState{Seq: s.seq, Trimmed: trimmed}})
}
