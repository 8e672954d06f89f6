package stack

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// lockFolder takes the data folder for this process. The kernel gives the lock
// back however the process ends.
func lockFolder(data string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another stack uses the data folder %s: stop it, or give this one another with DATA=…", data)
		}
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
	return file, nil
}

func isPortInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// syncWriter lets many goroutines write whole lines.
type syncWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *syncWriter) Write(p []byte) (int, error) {
	if w.to == nil {
		return len(p), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// quietLog drops what net/http says about clients that hang up.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }
