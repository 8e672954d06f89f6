package dynamo

import "sort"

// chunkSize bounds the pieces of an ordered list: an insertion moves at most
// this many entries.
const chunkSize = 256

// entry is an item under the key that orders it.
type entry struct {
	key  string
	item document
}

// ordered is a sorted list of entries with distinct keys, held in chunks: a
// B-tree of two levels, which is enough for the sizes this server is for.
// Chunks are never empty.
type ordered struct {
	chunks [][]entry
	count  int
}

// position finds the first entry with a key >= key.
func (o *ordered) position(key string) (chunk, at int, exact bool) {
	chunk = sort.Search(len(o.chunks), func(i int) bool {
		c := o.chunks[i]
		return c[len(c)-1].key >= key
	})
	if chunk == len(o.chunks) {
		return chunk, 0, false
	}
	c := o.chunks[chunk]
	at = sort.Search(len(c), func(i int) bool { return c[i].key >= key })
	return chunk, at, c[at].key == key
}

// get returns the item under the key, or nil.
func (o *ordered) get(key string) document {
	if chunk, at, ok := o.position(key); ok {
		return o.chunks[chunk][at].item
	}
	return nil
}

// put inserts or replaces.
func (o *ordered) put(key string, item document) {
	chunk, at, exact := o.position(key)
	if exact {
		o.chunks[chunk][at].item = item
		return
	}
	o.count++
	if chunk == len(o.chunks) {
		if chunk == 0 {
			o.chunks = append(o.chunks, []entry{{key, item}})
			return
		}
		chunk--
		at = len(o.chunks[chunk])
	}
	c := append(o.chunks[chunk], entry{})
	copy(c[at+1:], c[at:])
	c[at] = entry{key, item}
	o.chunks[chunk] = c
	if len(c) > chunkSize {
		o.split(chunk)
	}
}

func (o *ordered) split(chunk int) {
	c := o.chunks[chunk]
	half := len(c) / 2
	right := append(make([]entry, 0, chunkSize+1), c[half:]...)
	clear(c[half:])
	o.chunks[chunk] = c[:half]
	o.chunks = append(o.chunks, nil)
	copy(o.chunks[chunk+2:], o.chunks[chunk+1:])
	o.chunks[chunk+1] = right
}

// remove deletes the entry under the key, if there is one.
func (o *ordered) remove(key string) {
	chunk, at, exact := o.position(key)
	if !exact {
		return
	}
	o.count--
	c := o.chunks[chunk]
	copy(c[at:], c[at+1:])
	c[len(c)-1] = entry{}
	o.chunks[chunk] = c[:len(c)-1]
	if len(c) == 1 {
		o.chunks = append(o.chunks[:chunk], o.chunks[chunk+1:]...)
	}
}

// keyRange is low <= key < high; an empty high has no end.
type keyRange struct {
	low, high string
}

func (r keyRange) has(key string) bool { return key >= r.low && (r.high == "" || key < r.high) }

// resume is the part of the range that comes after key in reading direction.
func (r keyRange) resume(key string, backward bool) keyRange {
	if backward {
		r.high = key
	} else {
		r.low = key + "\x00"
	}
	return r
}

// ascend calls visit in key order until it returns false.
func (o *ordered) ascend(r keyRange, visit func(entry) bool) {
	chunk, at, _ := o.position(r.low)
	for ; chunk < len(o.chunks); chunk, at = chunk+1, 0 {
		for _, e := range o.chunks[chunk][at:] {
			if r.high != "" && e.key >= r.high || !visit(e) {
				return
			}
		}
	}
}

// descend calls visit against key order until it returns false.
func (o *ordered) descend(r keyRange, visit func(entry) bool) {
	chunk, at := len(o.chunks), 0
	if r.high != "" {
		chunk, at, _ = o.position(r.high)
	}
	for {
		if at == 0 {
			if chunk == 0 {
				return
			}
			chunk--
			at = len(o.chunks[chunk])
		}
		at--
		if e := o.chunks[chunk][at]; e.key < r.low || !visit(e) {
			return
		}
	}
}
