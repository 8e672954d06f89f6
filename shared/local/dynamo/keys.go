package dynamo

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// keyAttribute is an attribute of a key schema: its name and its type S, N or B.
type keyAttribute struct {
	name string
	kind kind
}

// keySchema is a partition key and, unless its name is empty, a sort key.
type keySchema struct {
	partition keyAttribute
	sort      keyAttribute
}

func (s keySchema) attributes() []keyAttribute {
	if s.sort.name == "" {
		return []keyAttribute{s.partition}
	}
	return []keyAttribute{s.partition, s.sort}
}

// Ordering keys. Every table and index is one ordered list; the key of an entry
// is
//
//	hash of the partition key, partition key, sort key[, primary key in an index]
//
// with each part escaped so that parts cannot run into each other and bytes
// compare as the values do. The hash comes first so that a Scan visits
// partitions in an arbitrary but stable order, as on DynamoDB, and so that
// segments of a parallel Scan are ranges.

// appendEscaped appends part, unterminated: 00 becomes 00 FF.
func appendEscaped(b []byte, part string) []byte {
	for i := 0; i < len(part); i++ {
		b = append(b, part[i])
		if part[i] == 0 {
			b = append(b, 0xFF)
		}
	}
	return b
}

// appendPart appends part and the terminator 00 01, which sorts before every
// continuation of the part.
func appendPart(b []byte, part string) []byte {
	return append(appendEscaped(b, part), 0, 1)
}

// sortable is the byte form of a key value in which bytes compare as values do.
func sortable(v value) string {
	switch v := v.(type) {
	case text:
		return string(v)
	case blob:
		return string(v)
	case decimal:
		return string(v.appendSortable(nil))
	}
	return ""
}

func partitionPrefix(v value) []byte {
	part := sortable(v)
	sum := sha256.Sum256([]byte(part))
	return appendPart(append(make([]byte, 0, 64), sum[:8]...), part)
}

// orderingKey is the position of an item; ok is false when the item lacks an
// attribute of the schema or has it in another type (which keeps it out of an
// index).
func (s keySchema) orderingKey(item document) (key []byte, ok bool) {
	p := item[s.partition.name]
	if p == nil || p.kind() != s.partition.kind {
		return nil, false
	}
	key = partitionPrefix(p)
	if s.sort.name != "" {
		v := item[s.sort.name]
		if v == nil || v.kind() != s.sort.kind {
			return nil, false
		}
		key = appendPart(key, sortable(v))
	}
	return key, true
}

// keyOf picks the key attributes out of an item.
func (s keySchema) keyOf(item document) document {
	out := document{s.partition.name: item[s.partition.name]}
	if s.sort.name != "" {
		out[s.sort.name] = item[s.sort.name]
	}
	return out
}

// after is the smallest key greater than every key that starts with prefix, or
// "" when there is none.
func after(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xFF {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}

// segmentRange is the part of the hash space that a segment of a parallel Scan
// reads: hash × total >> 64 is the segment.
func segmentRange(segment, total uint64) keyRange {
	bound := func(n uint64) string {
		quotient, remainder := bits.Div64(n, 0, total)
		if remainder > 0 {
			quotient++
		}
		return string(binary.BigEndian.AppendUint64(nil, quotient))
	}
	r := keyRange{}
	if segment > 0 {
		r.low = bound(segment)
	}
	if segment+1 < total {
		r.high = bound(segment + 1)
	}
	return r
}
