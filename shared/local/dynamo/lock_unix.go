//go:build unix

package dynamo

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes an exclusive lock that ends with the process, however it ends,
// or with a call of unlock.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // The lock error is the one to report.
		return nil, err
	}
	return func() error {
		// Closing alone would leave the lock to a child process that is between
		// fork and exec.
		return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
	}, nil
}
