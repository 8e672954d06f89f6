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

// SealedPrefix returns what the keys of all verified copies of file id begin with, and no others.
func SealedPrefix(id string) (string, error) {
	if !plain(id) {
		return "", fmt.Errorf("no sealed key: id %q has characters other than letters, digits, _ and -", id)
	}
	return sealedPrefix + id + "/", nil
}

// Parse tells the objects of files from others, and what key says of one: the id in it, "" when it is neither a key for
// an upload nor one that Sealed could have made, and whether it lies where clients upload to.
func Parse(key string) (id string, staged, ok bool) {
	if id, ok := ParseStaging(key); ok {
		return id, true, true
	}
	rest, ok := strings.CutPrefix(key, sealedPrefix)
	if !ok || rest == "" {
		return "", false, false
	}
	if IsSealed(key) {
		id, _, _ = strings.Cut(rest, "/")
	}
	return id, false, true
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
