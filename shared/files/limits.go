package files

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits are the configured bounds of reserving. Sizes in bytes.
type Limits struct {
	MaxFileBytes         int64
	AccountMaxLiveBytes  int64
	ActorMaxReservations int64
	FileTTL              time.Duration // default and maximum life
	SingleUseTTL         time.Duration // default life of single-use files
	ReservationTTL       time.Duration // how long an upload may take to arrive
}

// Quota is what one creation may not exceed; the adapter checks it in the same transaction that creates the file.
type Quota struct {
	AccountMaxLiveBytes  int64
	ActorMaxReservations int64
	ActorMaxUnsizedBytes int64
}

func (l Limits) quota() Quota {
	return Quota{
		AccountMaxLiveBytes:  l.AccountMaxLiveBytes,
		ActorMaxReservations: l.ActorMaxReservations,
		ActorMaxUnsizedBytes: l.AccountMaxLiveBytes / 4,
	}
}

// life resolves ttl_seconds (nil: the default) to a duration.
func (l Limits) life(ttlSeconds *int64, singleUse bool) (life time.Duration, problem string) {
	if ttlSeconds == nil && singleUse {
		return min(l.SingleUseTTL, l.FileTTL), ""
	}
	return secondsUpTo(ttlSeconds, l.FileTTL)
}

// secondsUpTo reads a field that gives a number of seconds: 1 to longest, which is also the default. Problem says what
// is wrong with it, "" when nothing is.
func secondsUpTo(given *int64, longest time.Duration) (d time.Duration, problem string) {
	most := int64(longest / time.Second)
	switch {
	case given == nil:
		return longest, ""
	case *given < 1 || *given > most:
		return 0, "must be a whole number from 1 to " + strconv.FormatInt(most, 10)
	}
	return time.Duration(*given) * time.Second, ""
}

const (
	metadataKeys  = 16
	metadataBytes = 2048 // keys and values together
)

// checkMetadata adds to bad what is wrong with m.
func checkMetadata(m map[string]string, bad *ValidationError) {
	if len(m) > metadataKeys {
		bad.Add("metadata", "must have at most 16 keys")
	}
	total := 0
	for k, v := range m {
		total += len(k) + len(v)
		if k == "" {
			bad.Add("metadata", "must not have an empty key")
		}
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			bad.Add("metadata", "must be valid UTF-8")
		}
	}
	if total > metadataBytes {
		bad.Add("metadata", "must be at most 2048 bytes in all, keys and values together")
	}
}
