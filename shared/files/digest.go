package files

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// ParseSHA256 reads a SHA-256 digest written as hex (either case), base64 or base64url, padded or not, and returns it
// as lower-case hex.
func ParseSHA256(s string) (string, bool) {
	if len(s) == 64 {
		raw, err := hex.DecodeString(s)
		return hex.EncodeToString(raw), err == nil
	}
	unpadded := s
	if len(s) == 44 {
		unpadded = strings.TrimSuffix(s, "=")
	}
	if len(unpadded) != 43 || strings.ContainsAny(unpadded, "\r\n") { // the decoder would skip line breaks
		return "", false
	}
	enc := base64.RawStdEncoding
	if strings.ContainsAny(unpadded, "-_") {
		enc = base64.RawURLEncoding
	}
	raw, err := enc.Strict().DecodeString(unpadded)
	if err != nil || len(raw) != 32 {
		return "", false
	}
	return hex.EncodeToString(raw), true
}
