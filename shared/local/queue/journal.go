package queue

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The operations of the journal. Each line is one entry and takes effect whole.
const (
	opPut     = "put"     // a message as it is
	opReceive = "receive" // delivered, hidden until Until
	opHide    = "hide"    // hidden until Until
	opDelete  = "delete"
	opMove    = "move"   // to the dead-letter queue
	opReturn  = "return" // from the dead-letter queue, to be tried anew
	opPurge   = "purge"
)

type entry struct {
	Op      string   `json:"op"`
	Queue   string   `json:"q"`
	Message *message `json:"m,omitempty"`
	ID      string   `json:"id,omitempty"`
	Receipt string   `json:"receipt,omitempty"`
	To      string   `json:"to,omitempty"`
	At      int64    `json:"at,omitempty"`
	Until   int64    `json:"until,omitempty"`
}

// journal is an append-only file of entries. It is written without fsync: a
// killed process loses nothing, only a power cut may.
type journal struct {
	path  string
	file  *os.File
	lines int // since it was written anew
	limit int // how many lines it grows before it is written anew
}

// load replays the journal and starts a fresh one with what is left.
func (s *Server) load() error {
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return fmt.Errorf("making the queue folder: %w", err)
	}
	s.journal = &journal{path: filepath.Join(s.opt.Dir, "queues.jsonl"), limit: 20000}
	old, err := os.Open(s.journal.path)
	if err == nil {
		defer old.Close()
		if err := s.replay(old); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the queues: %w", err)
	}
	now := s.now().UnixMilli()
	for _, q := range s.queues {
		for _, m := range q.messages {
			if m.Receipt != "" && m.VisibleAt > now {
				m.VisibleAt = now
			}
		}
	}
	return s.rewrite()
}

func (s *Server) replay(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil // whatever stands behind the last newline was cut off while being written
		}
		if err != nil {
			return fmt.Errorf("reading the queues: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d is damaged: %w; move the file away to start with empty queues", s.journal.path, n, err)
		}
		s.apply(e)
	}
}

// commit writes an entry and makes it so. Callers hold the lock.
func (s *Server) commit(e entry) error {
	if err := s.journal.append(e); err != nil {
		return err
	}
	s.apply(e)
	if s.journal.lines > s.journal.limit {
		return s.rewrite()
	}
	return nil
}

// apply is the meaning of an entry. Entries about what no longer exists have none.
func (s *Server) apply(e entry) {
	q := s.queues[e.Queue]
	if q == nil {
		return
	}
	switch e.Op {
	case opPut:
		q.messages = append(q.messages, e.Message)
		q.wake()
		return
	case opPurge:
		q.messages = nil
		return
	}
	i := q.index(e.ID)
	if i < 0 {
		return
	}
	m := q.messages[i]
	switch e.Op {
	case opReceive:
		m.Receives++
		m.Receipt, m.VisibleAt = e.Receipt, e.Until
		if m.First == 0 {
			m.First = e.At
		}
	case opHide:
		m.VisibleAt = e.Until
		q.wake()
	case opDelete, opMove, opReturn:
		q.messages = append(q.messages[:i], q.messages[i+1:]...)
		target := s.queues[e.To]
		if target == nil {
			return
		}
		m.Receipt, m.VisibleAt = "", e.At
		if e.Op == opMove {
			// A dead letter keeps the time it was sent, which its retention counts from.
			m.Source = q.Name
		} else {
			m.Source, m.Receives, m.First, m.Sent = "", 0, 0, e.At
		}
		target.messages = append(target.messages, m)
		target.wake()
	}
}

func (q *queue) index(id string) int {
	for i, m := range q.messages {
		if m.ID == id {
			return i
		}
	}
	return -1
}

// rewrite replaces the journal by one that only puts what is there now.
func (s *Server) rewrite() error {
	var b bytes.Buffer
	lines := 0
	for name, q := range s.queues {
		for _, m := range q.messages {
			line, err := json.Marshal(entry{Op: opPut, Queue: name, Message: m})
			if err != nil {
				return fmt.Errorf("encoding a message: %w", err)
			}
			b.Write(append(line, '\n'))
			lines++
		}
	}
	next := s.journal.path + ".next"
	if err := os.WriteFile(next, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the queues: %w", err)
	}
	if err := os.Rename(next, s.journal.path); err != nil {
		return fmt.Errorf("writing the queues: %w", err)
	}
	file, err := os.OpenFile(s.journal.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("writing the queues: %w", err)
	}
	if s.journal.file != nil {
		s.journal.file.Close()
	}
	// A long queue must not be rewritten with every message, so its own lines do not count.
	s.journal.file, s.journal.lines = file, -lines
	return nil
}

func (j *journal) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	if j.file == nil {
		return errors.New("the queues are closed")
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the queues: %w", err)
	}
	j.lines++
	return nil
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
