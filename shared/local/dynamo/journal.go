package dynamo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// The journal is one file of lines, each a checksum, a space and a JSON object:
//
//	1c291ca3 {"at":...,"writes":[...]}
//
// It starts with a snapshot (tables, items, kept stream records and request
// tokens) and goes on with one line per commit, so a transaction is on disk
// whole or not at all. A line is written by one write call before the commit
// shows in memory and before the client hears of it: what was acknowledged
// survives kill -9. There is no fsync per commit, so a crash of the whole
// machine can lose the last moments, which is the right trade for a laptop.
const (
	journalName = "journal"
	lockName    = "lock"
	// compactAt is how far the file may grow past its last snapshot, in bytes
	// and as a multiple of the snapshot, before it is rewritten.
	compactAt     = 32 << 20
	compactFactor = 2
)

// line is one entry of the journal; exactly one of its groups is used.
type line struct {
	// A commit: what one request, or one removal by Sweep, changed. Seq is the
	// server's sequence number before it.
	At      int64       `json:"at,omitempty"` // Unix nanoseconds
	Seq     int64       `json:"seq,omitempty"`
	Writes  []lineWrite `json:"writes,omitempty"`
	Expired bool        `json:"expired,omitempty"`
	Token   *lineToken  `json:"token,omitempty"`

	Create *lineTable `json:"create,omitempty"`
	Drop   string     `json:"drop,omitempty"` // table name
	TTL    *lineTTL   `json:"ttl,omitempty"`

	// Snapshot only.
	Load   *lineWrite  `json:"load,omitempty"`   // an item, without a stream record
	Record *lineRecord `json:"record,omitempty"` // a kept stream record
	State  *lineState  `json:"state,omitempty"`
}

// lineWrite puts an item, or deletes the item with this key.
type lineWrite struct {
	Table string   `json:"t"`
	Put   document `json:"p,omitempty"`
	Del   document `json:"d,omitempty"`
}

type lineToken struct {
	Token  string `json:"token"`
	Digest string `json:"digest"`
	At     int64  `json:"at,omitempty"` // snapshot only; a commit has its own time
}

type lineTable struct {
	Spec    TableSpec `json:"spec"`
	ID      string    `json:"id"`
	Created int64     `json:"created"`
}

type lineTTL struct {
	Table     string `json:"t"`
	Attribute string `json:"attribute"`
}

type lineRecord struct {
	Table   string   `json:"t"`
	Seq     int64    `json:"seq"`
	At      int64    `json:"at"`
	Keys    document `json:"keys"`
	Old     document `json:"old,omitempty"`
	New     document `json:"new,omitempty"`
	Expired bool     `json:"expired,omitempty"`
}

type lineState struct {
	Seq     int64            `json:"seq"`
	Trimmed map[string]int64 `json:"trimmed,omitempty"` // by table
}

func encodeLine(l *line) ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(body)+10)
	out = fmt.Appendf(out, "%08x ", crc32.ChecksumIEEE(body))
	return append(append(out, body...), '\n'), nil
}

var errTorn = errors.New("the line is incomplete or its checksum does not match")

func decodeLine(raw []byte) (*line, error) {
	body, complete := bytes.CutSuffix(raw, []byte("\n"))
	if !complete || len(body) < 9 || body[8] != ' ' {
		return nil, errTorn
	}
	sum, err := strconv.ParseUint(string(body[:8]), 16, 32)
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(body[9:]) {
		return nil, errTorn
	}
	l := new(line)
	if err := json.Unmarshal(body[9:], l); err != nil {
		return nil, err
	}
	return l, nil
}

// journal is the open file. A nil journal keeps nothing.
type journal struct {
	dir    string
	file   *os.File
	unlock func() error
	size   int64
	limit  int64 // size at which to compact
	fault  error // set when the file could not be brought back to a whole line
}

// openJournal locks the folder and feeds every whole line to replay. A torn last
// line, left by a process that was killed while writing, is cut off; damage
// anywhere else is an error.
func openJournal(dir string, replay func(*line) error) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for table data: %w", err)
	}
	unlock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("%s is in use by another process; stop it or use another folder: %w", dir, err)
	}
	j := &journal{dir: dir, unlock: unlock}
	if j.file, err = os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		err = j.read(replay)
	}
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	j.limit = max(compactAt, j.size*compactFactor)
	return j, nil
}

func (j *journal) read(replay func(*line) error) error {
	r := bufio.NewReaderSize(j.file, 1<<20)
	for n := 1; ; n++ {
		raw, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s: %w", j.file.Name(), err)
		}
		if len(raw) == 0 {
			return nil
		}
		l, err := decodeLine(raw)
		if err != nil {
			if _, more := r.ReadByte(); errors.Is(more, io.EOF) && errors.Is(err, errTorn) {
				return j.rewind()
			}
			return fmt.Errorf("%s is damaged at line %d; restore it, or remove its folder to start empty: %w", j.file.Name(), n, err)
		}
		if err := replay(l); err != nil {
			return fmt.Errorf("%s: line %d cannot be applied: %w", j.file.Name(), n, err)
		}
		j.size += int64(len(raw))
	}
}

// rewind cuts the file off after the last whole line.
func (j *journal) rewind() error {
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("cutting a torn line off %s: %w", j.file.Name(), err)
	}
	return nil
}

// append writes one line. After a failed write the file is cut back, so that
// the line cannot surface later.
func (j *journal) append(l *line) error {
	if j == nil {
		return nil
	}
	if j.fault != nil {
		return j.fault
	}
	raw, err := encodeLine(l)
	if err != nil {
		return err
	}
	if _, err := j.file.WriteAt(raw, j.size); err != nil {
		j.fault = j.rewind()
		return fmt.Errorf("writing %s: %w", j.file.Name(), err)
	}
	j.size += int64(len(raw))
	return nil
}

// full reports whether the file should be rewritten.
func (j *journal) full() bool { return j != nil && j.size > j.limit }

// rewrite replaces the file with the lines that emit produces. Until the rename
// the old file stands, so a crash at any point leaves one of the two whole.
func (j *journal) rewrite(emit func(put func(*line) error) error) (err error) {
	path := filepath.Join(j.dir, journalName)
	next, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("compacting the journal: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("compacting the journal: %w", err), next.Close(), os.Remove(path+".new"))
		}
	}()
	w := bufio.NewWriterSize(next, 1<<20)
	size := int64(0)
	put := func(l *line) error {
		raw, err := encodeLine(l)
		if err != nil {
			return err
		}
		size += int64(len(raw))
		_, err = w.Write(raw)
		return err
	}
	if err := emit(put); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	// The rename must not reach the disk before the contents.
	if err := next.Sync(); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	old := j.file
	j.file, j.size, j.fault = next, size, nil
	j.limit = max(compactAt, size*compactFactor)
	_ = old.Close() // Its contents are superseded.
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	var errs []error
	if j.file != nil {
		errs = append(errs, j.file.Close())
	}
	return errors.Join(append(errs, j.unlock())...)
}
