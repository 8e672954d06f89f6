// Package keys names the S3 objects of files.
//
// Every file has at most two objects. Clients write staging/<id>, which no client can read; a verified copy lies at
// files/<id>/<version>, which no client can write. The version is the ETag of the staged object or the SHA-256 of an
// inline body, so that bytes that were verified are never replaced by others.
package keys

import (
	"fmt"
	"strings"
)

const (
	stagingPrefix = "staging/"
	sealedPrefix  = "files/"
)

// CacheControl is what sealed objects are stored and served with: what a link opens is for its holder alone.
const CacheControl = "private, no-store"

// Staging returns the key to which the client of file id uploads.
func Staging(id string) string { return stagingPrefix + id }

// ParseStaging returns what follows staging/ in key, which need not be a file id: strangers can't write there, but an
// operator can. It is false for every other key.
func ParseStaging(key string) (id string, ok bool) {
	id, ok = strings.CutPrefix(key, stagingPrefix)
	return id, ok && id != ""
}

// Sealed returns the key of a verified copy of file id. Version is an ETag, quoted or not, or a digest.
func Sealed(id, version string) (string, error) {
	version = strings.Trim(version, `"`)
	if !plain(id) || !plain(version) {
		return "", fmt.Errorf("no sealed key: id %q or version %q has characters other than letters, digits, _ and -", id, version)
	}
	return sealedPrefix + id + "/" + version, nil
}

// IsSealed reports whether key is one that Sealed could have made.
func IsSealed(key string) bool {
	rest, ok := strings.CutPrefix(key, sealedPrefix)
	id, version, cut := strings.Cut(rest, "/")
	return ok && cut && plain(id) && plain(version)
}

// plain reports whether s can stand in a key and in a URL as it is. Multipart ETags have a hyphen.
func plain(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
