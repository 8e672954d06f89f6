package s3

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// object is one stored object. It is immutable once published: replacing an
// object publishes a new value, so a reader can keep the one it found.
type object struct {
	Key  string `json:"key"`
	Blob string `json:"blob"` // file name under blobs/
	Size int64  `json:"size"`
	ETag string `json:"etag"` // hex MD5 of the bytes, without quotes

	Modified time.Time `json:"modified"`
	Checksum checksum  `json:"checksum"`

	ContentType        string            `json:"content_type,omitempty"`
	ContentEncoding    string            `json:"content_encoding,omitempty"`
	ContentDisposition string            `json:"content_disposition,omitempty"`
	ContentLanguage    string            `json:"content_language,omitempty"`
	CacheControl       string            `json:"cache_control,omitempty"`
	Expires            string            `json:"expires,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
}

// store keeps objects in a directory:
//
//	blobs/<random>            the bytes; never changed once named here
//	objects/<sha256 of key>   everything else as JSON, naming its blob
//	incoming/<random>         files being written; emptied at start
//	events/<sequencer>        notifications not handed over yet
//
// Publishing an object is the one rename of its JSON file, so a process killed
// at any point leaves either the old object or the new one, complete. What a
// kill can leave besides is garbage (an unnamed blob, an incoming file), and
// openStore removes it. Nothing is synced: the contract is to survive the
// death of the process, not of the machine.
type store struct {
	dir  string
	lock *os.File

	mu      sync.RWMutex
	objects map[string]*object
	sorted  []string // keys in order; nil when it must be rebuilt
}

// openStore opens dir, creating it when needed, and holds it until close.
// A directory held by another process is an error.
func openStore(dir string) (*store, error) {
	s := &store{dir: dir, objects: map[string]*object{}}
	for _, sub := range []string{"blobs", "objects", "incoming", "events"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("creating the S3 data directory: %w", err)
		}
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the S3 data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the S3 data directory %s is in use by another process; stop it or choose another directory: %w", dir, err)
	}
	s.lock = lock
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *store) close() { s.lock.Close() }

// load reads the published objects and removes what a kill left behind.
func (s *store) load() error {
	named := map[string]bool{}
	entries, err := os.ReadDir(filepath.Join(s.dir, "objects"))
	if err != nil {
		return fmt.Errorf("reading the stored objects: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(s.dir, "objects", entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a stored object: %w", err)
		}
		o := new(object)
		if err := json.Unmarshal(data, o); err != nil {
			return fmt.Errorf("the stored object %s is damaged; delete the file to go on without it: %w", path, err)
		}
		s.objects[o.Key] = o
		named[o.Blob] = true
	}
	blobs, err := os.ReadDir(filepath.Join(s.dir, "blobs"))
	if err != nil {
		return fmt.Errorf("reading the stored blobs: %w", err)
	}
	for _, blob := range blobs {
		if !named[blob.Name()] {
			os.Remove(s.blob(blob.Name()))
		}
	}
	incoming := filepath.Join(s.dir, "incoming")
	if err := os.RemoveAll(incoming); err != nil {
		return fmt.Errorf("removing unfinished uploads: %w", err)
	}
	return os.Mkdir(incoming, 0o700)
}

func (s *store) blob(name string) string { return filepath.Join(s.dir, "blobs", name) }

func (s *store) description(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, "objects", hex.EncodeToString(sum[:]))
}

func (s *store) incoming(name string) string { return filepath.Join(s.dir, "incoming", name) }

// create opens a new file for the bytes of an object to be published under
// the returned blob name. The caller closes it and calls publish or discard.
func (s *store) create() (name string, f *os.File, err error) {
	name = rand.Text()
	f, err = os.OpenFile(s.incoming(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return name, f, err
}

func (s *store) discard(name string) { os.Remove(s.incoming(name)) }

// find returns the object at key, or nil.
func (s *store) find(key string) *object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[key]
}

// open returns the object at key with its bytes, or a nil object. The two
// belong together even when the key is replaced or deleted meanwhile.
func (s *store) open(key string) (*object, *os.File, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.objects[key]
	if o == nil {
		return nil, nil, nil
	}
	f, err := os.Open(s.blob(o.Blob))
	if err != nil {
		return nil, nil, fmt.Errorf("opening the bytes of an object: %w", err)
	}
	return o, f, nil
}

// publish puts o, whose bytes are in the incoming file o.Blob, at o.Key, if
// condition accepts the object there now (nil when there is none). When event
// is not nil it is recorded first: a notification is due from the moment the
// object is visible, even if the process dies right then.
func (s *store) publish(o *object, condition func(current *object) error, event *ObjectCreated) error {
	data, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encoding an object: %w", err)
	}
	description := s.incoming(o.Blob + ".json")
	if err := os.WriteFile(description, data, 0o600); err != nil {
		return fmt.Errorf("writing an object: %w", err)
	}
	defer os.Remove(description) // a no-op once renamed

	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.objects[o.Key]
	if err := condition(current); err != nil {
		return err
	}
	if event != nil {
		if err := s.recordEvent(*event); err != nil {
			return err
		}
	}
	err = os.Rename(s.incoming(o.Blob), s.blob(o.Blob))
	if err == nil {
		err = os.Rename(description, s.description(o.Key))
	}
	if err != nil {
		os.Remove(s.blob(o.Blob))
		if event != nil {
			s.forgetEvent(*event)
		}
		return fmt.Errorf("storing an object: %w", err)
	}
	s.objects[o.Key] = o
	if current == nil {
		s.sorted = nil
	} else {
		os.Remove(s.blob(current.Blob))
	}
	return nil
}

// remove deletes the object at key if condition accepts it (nil when there is
// none). Deleting what is not there succeeds.
func (s *store) remove(key string, condition func(current *object) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.objects[key]
	if err := condition(current); err != nil || current == nil {
		return err
	}
	if err := os.Remove(s.description(key)); err != nil {
		return fmt.Errorf("deleting an object: %w", err)
	}
	delete(s.objects, key)
	s.sorted = nil
	os.Remove(s.blob(current.Blob)) // what stays is removed at the next start
	return nil
}

// adopt makes the bytes of the open blob src the incoming file of a new
// object. Blobs never change, so both share one file where the file system
// has hard links.
func (s *store) adopt(src *os.File) (name string, err error) {
	name = rand.Text()
	if os.Link(src.Name(), s.incoming(name)) == nil {
		return name, nil
	}
	name, f, err := s.create()
	if err != nil {
		return "", err
	}
	_, err = io.Copy(f, io.NewSectionReader(src, 0, 1<<62))
	if err := errors.Join(err, f.Close()); err != nil {
		s.discard(name)
		return "", fmt.Errorf("copying the bytes of an object: %w", err)
	}
	return name, nil
}

// after returns up to limit objects whose keys start with prefix and are
// greater than key, in the order of their bytes, and whether there are more.
func (s *store) after(prefix, key string, limit int) (page []*object, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = make([]string, 0, len(s.objects))
		for k := range s.objects {
			s.sorted = append(s.sorted, k)
		}
		slices.Sort(s.sorted)
	}
	start, found := slices.BinarySearch(s.sorted, max(prefix, key))
	if found && key >= prefix {
		start++
	}
	for _, k := range s.sorted[start:] {
		if !strings.HasPrefix(k, prefix) {
			break
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, s.objects[k])
	}
	return page, false
}
