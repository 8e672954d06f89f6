package dynamo

import (
	"time"
)

const (
	maxItemSize      = 400 << 10
	maxPartitionSize = 2048
	maxSortSize      = 1024
)

// table is one table with its indexes and its stream. It is guarded by the
// server's lock.
type table struct {
	spec    TableSpec
	schema  keySchema
	id      string
	created time.Time
	items   ordered
	bytes   int64
	indexes []*index
	// indexKeys are the kinds of the attributes that are keys of indexes.
	indexKeys map[string]kind
	stream    *stream // nil without one
}

func newTable(spec TableSpec, id string, created time.Time, streamLimits limits) *table {
	t := &table{spec: spec, schema: spec.schema(), id: id, created: created, indexKeys: make(map[string]kind)}
	for _, s := range spec.Indexes {
		ix := newIndex(s, t.schema)
		t.indexes = append(t.indexes, ix)
		for _, a := range ix.schema.attributes() {
			t.indexKeys[a.name] = a.kind
		}
	}
	if spec.StreamView != "" {
		t.stream = newStream(spec.StreamView, created, streamLimits)
	}
	return t
}

func (t *table) index(name string) *index {
	for _, ix := range t.indexes {
		if ix.spec.Name == name {
			return ix
		}
	}
	return nil
}

// checkKeySize applies the limits on the length of one key value.
func checkKeySize(a keyAttribute, v value, isSort bool) error {
	n := len(sortable(v))
	switch {
	case isSort && n > maxSortSize:
		return invalidParameter("Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
	case !isSort && n > maxPartitionSize:
		return invalidParameter("Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	return nil
}

func emptyKeyText(v value) string {
	switch {
	case v.kind() == kindS && v.(text) == "":
		return "an empty string value"
	case v.kind() == kindB && v.(blob) == "":
		return "an empty binary value"
	}
	return ""
}

// lookup validates the Key parameter of a request and returns the ordering key.
func (t *table) lookup(key document) (string, error) {
	if len(key) != len(t.schema.attributes()) {
		return "", invalid("The provided key element does not match the schema")
	}
	if err := checkKey(t.schema, key); err != nil {
		return "", err
	}
	id, _ := t.schema.orderingKey(key)
	return string(id), nil
}

// checkKey validates the key attributes in item, as for a Key parameter.
func checkKey(s keySchema, item document) error {
	for _, a := range s.attributes() {
		if v := item[a.name]; v == nil || v.kind() != a.kind {
			return invalid("The provided key element does not match the schema")
		}
	}
	return checkKeyContents(s, item)
}

// locate validates the key attributes of a whole item that is to be put.
func (t *table) locate(item document) (string, error) {
	for _, a := range t.schema.attributes() {
		v := item[a.name]
		if v == nil {
			return "", invalidParameter("Missing the key %s in the item", a.name)
		}
		if v.kind() != a.kind {
			return "", invalidParameter("Type mismatch for key %s expected: %s actual: %s", a.name, a.kind, v.kind())
		}
	}
	if err := checkKeyContents(t.schema, item); err != nil {
		return "", err
	}
	key, _ := t.schema.orderingKey(item)
	return string(key), nil
}

// checkKeyContents applies the limits on key values of the right types.
func checkKeyContents(s keySchema, item document) error {
	for i, a := range s.attributes() {
		v := item[a.name]
		if what := emptyKeyText(v); what != "" {
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain %s. Key: %s", what, a.name)
		}
		if err := checkKeySize(a, v, i == 1); err != nil {
			return err
		}
	}
	return nil
}

// checkIndexKeys refuses an item whose attribute cannot be the key of an index
// that has it as its key.
func (t *table) checkIndexKeys(item document) error {
	for _, ix := range t.indexes {
		for i, a := range ix.schema.attributes() {
			v := item[a.name]
			if v == nil {
				continue
			}
			if v.kind() != a.kind {
				return invalidParameter("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
					a.name, a.kind, v.kind(), ix.spec.Name)
			}
			if what := emptyKeyText(v); what != "" {
				return invalid("One or more parameter values are not valid. A value specified for a secondary index key is not supported. "+
					"The AttributeValue for a key attribute cannot contain %s. IndexName: %s, IndexKey: %s", what, ix.spec.Name, a.name)
			}
			if err := checkKeySize(a, v, i == 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNested refuses expressions that look into a key attribute.
func (t *table) checkNested(m mentions) error {
	const rule = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
	for _, a := range t.schema.attributes() {
		if m.nested[a.name] {
			return invalid(rule+"Key: %s", a.name)
		}
	}
	for _, ix := range t.indexes {
		for _, a := range ix.schema.attributes() {
			if m.nested[a.name] {
				return invalid(rule+"IndexKey: %s", a.name)
			}
		}
	}
	return nil
}

// change replaces one item: old or new is nil where there is no item.
type change struct {
	table    *table
	key      string
	old, new document
}

// apply performs the change on the table and its indexes.
func (c change) apply() {
	t := c.table
	if c.old != nil {
		t.bytes -= int64(itemSize(c.old))
	}
	if c.new != nil {
		t.bytes += int64(itemSize(c.new))
		t.items.put(c.key, c.new)
	} else {
		t.items.remove(c.key)
	}
	for _, ix := range t.indexes {
		ix.apply(c.old, c.new)
	}
}

// index is a global secondary index: the items that have its key attributes,
// ordered by them.
type index struct {
	spec    IndexSpec
	schema  keySchema
	primary keySchema
	keep    map[string]bool // projected attributes; nil means all
	entries ordered
}

func newIndex(spec IndexSpec, primary keySchema) *index {
	ix := &index{spec: spec, schema: schemaOf(spec.PartitionKey, spec.SortKey), primary: primary}
	if spec.Projection != projectAll {
		ix.keep = make(map[string]bool)
		for _, a := range append(ix.schema.attributes(), primary.attributes()...) {
			ix.keep[a.name] = true
		}
		for _, name := range spec.NonKeyAttributes {
			ix.keep[name] = true
		}
	}
	return ix
}

// entryFor is what the index holds for an item; ok is false when it holds
// nothing.
func (ix *index) entryFor(item document) (entry, bool) {
	if item == nil {
		return entry{}, false
	}
	key, ok := ix.schema.orderingKey(item)
	if !ok {
		return entry{}, false
	}
	// Items may share an index key; the primary key tells them apart.
	primary, _ := ix.primary.orderingKey(item)
	return entry{string(append(key, primary...)), ix.projected(item)}, true
}

func (ix *index) projected(item document) document {
	if ix.keep == nil {
		return item
	}
	out := make(document, len(ix.keep))
	for name := range ix.keep {
		if v, ok := item[name]; ok {
			out[name] = v
		}
	}
	return out
}

func (ix *index) apply(old, new document) {
	before, had := ix.entryFor(old)
	now, has := ix.entryFor(new)
	if had && (!has || before.key != now.key) {
		ix.entries.remove(before.key)
	}
	if has {
		ix.entries.put(now.key, now.item)
	}
}

// writeUnits is what a change costs on the index: nothing when the entry stays
// as it is, one write to add, drop or replace it, two when its key moves.
func (ix *index) writeUnits(old, new document) float64 {
	before, had := ix.entryFor(old)
	now, has := ix.entryFor(new)
	switch {
	case !had && !has:
		return 0
	case had && has && before.key == now.key:
		if equal(before.item, now.item) {
			return 0
		}
		return units(max(itemSize(before.item), itemSize(now.item)), writeUnit)
	}
	total := 0.0
	if had {
		total += units(itemSize(before.item), writeUnit)
	}
	if has {
		total += units(itemSize(now.item), writeUnit)
	}
	return total
}
