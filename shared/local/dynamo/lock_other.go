//go:build !unix

package dynamo

import "os"

// lockFile only makes the file: the standard library has no lock that ends with
// the process here, so keeping two servers off one folder is up to the caller.
func lockFile(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}
