//go:build !unix

package dynamo

import "os"

// lockFile only opens the file: the standard library has no lock that ends with
// the process here, so keeping two servers off one folder is up to the caller.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
