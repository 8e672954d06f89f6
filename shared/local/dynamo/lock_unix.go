//go:build unix

package dynamo

import (
	"os"
	"syscall"
)

// lockFile takes an exclusive lock that ends with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // The lock error is the one to report.
		return nil, err
	}
	return f, nil
}
