package dynamo

import (
	"maps"
	"sync"
)

// Capacity units count started blocks of these sizes, in bytes.
const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10
)

// units is the number of blocks that size bytes start, at least one.
func units(size, block int) float64 {
	return float64(max(1, (size+block-1)/block))
}

// Units are capacity units. They can be halves: an eventually consistent read
// of up to 4 KB costs 0.5.
type Units struct {
	Read, Write float64
}

// TableUnits are the units spent on a table and, apart from them, on each of
// its indexes.
type TableUnits struct {
	Units
	Indexes map[string]Units
}

// Counters say what has been asked of the server since it was opened or since
// ResetCounters. Units follow the rules for on-demand tables: a write costs one
// unit per started KB of the larger of the old and the new item and is charged
// even when its condition fails; a read costs half a unit per started 4 KB, one
// when strongly consistent; a transaction costs double on the table. Index
// writes cost the same in and out of transactions, because indexes are updated
// after the transaction has committed.
type Counters struct {
	Requests map[string]int64 // by operation name
	Tables   map[string]TableUnits
}

// counters guard their own state: reads of tables hold only a read lock.
type counters struct {
	mu sync.Mutex
	c  Counters
}

func newCounters() Counters {
	return Counters{Requests: make(map[string]int64), Tables: make(map[string]TableUnits)}
}

func (c *counters) request(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c.Requests[op]++
}

func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.c = newCounters()
}

func (c *counters) snapshot() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counters{Requests: maps.Clone(c.c.Requests), Tables: make(map[string]TableUnits, len(c.c.Tables))}
	for name, t := range c.c.Tables {
		t.Indexes = maps.Clone(t.Indexes)
		out.Tables[name] = t
	}
	return out
}

// spending collects the units of one request, by table, for the counters and
// for ConsumedCapacity.
type spending struct {
	mode   string // NONE, TOTAL or INDEXES
	order  []string
	tables map[string]*TableUnits
}

func newSpending(mode *string) *spending {
	s := &spending{tables: make(map[string]*TableUnits)}
	if mode != nil {
		s.mode = *mode
	}
	return s
}

func (s *spending) on(table string) *TableUnits {
	t := s.tables[table]
	if t == nil {
		t = &TableUnits{Indexes: make(map[string]Units)}
		s.tables[table] = t
		s.order = append(s.order, table)
	}
	return t
}

// read charges a read of size bytes on a table, or on an index when it has a
// name. rate is units per block: 0.5, 1 or 2.
func (s *spending) read(table, index string, size int, rate float64) {
	n := units(size, readUnit) * rate
	t := s.on(table)
	if index == "" {
		t.Read += n
		return
	}
	u := t.Indexes[index]
	u.Read += n
	t.Indexes[index] = u
}

// write charges a write to the table and to its indexes. rate is 1, or 2 in a
// transaction. A write whose condition failed is charged with old as new.
func (s *spending) write(c change, rate float64) {
	t := s.on(c.table.spec.Name)
	t.Write += units(max(itemSize(c.old), itemSize(c.new)), writeUnit) * rate
	for _, ix := range c.table.indexes {
		if n := ix.writeUnits(c.old, c.new); n > 0 {
			u := t.Indexes[ix.spec.Name]
			u.Write += n
			t.Indexes[ix.spec.Name] = u
		}
	}
}

// record adds the request's units to the counters.
func (s *spending) record(c *counters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, spent := range s.tables {
		total := c.c.Tables[name]
		if total.Indexes == nil {
			total.Indexes = make(map[string]Units)
		}
		total.Read += spent.Read
		total.Write += spent.Write
		for ix, u := range spent.Indexes {
			sum := total.Indexes[ix]
			sum.Read += u.Read
			sum.Write += u.Write
			total.Indexes[ix] = sum
		}
		c.c.Tables[name] = total
	}
}

// capacity is ConsumedCapacity on the wire. Transactions also split units into
// reads and writes.
type capacity struct {
	TableName              string               `json:"TableName,omitempty"`
	CapacityUnits          float64              `json:"CapacityUnits"`
	ReadCapacityUnits      float64              `json:"ReadCapacityUnits,omitempty"`
	WriteCapacityUnits     float64              `json:"WriteCapacityUnits,omitempty"`
	Table                  *capacity            `json:"Table,omitempty"`
	GlobalSecondaryIndexes map[string]*capacity `json:"GlobalSecondaryIndexes,omitempty"`
}

func (u Units) capacity(split bool) *capacity {
	c := &capacity{CapacityUnits: u.Read + u.Write}
	if split {
		c.ReadCapacityUnits, c.WriteCapacityUnits = u.Read, u.Write
	}
	return c
}

// report is the ConsumedCapacity of every table of the request, in the order in
// which they were used; nil when it was not asked for.
func (s *spending) report(split bool) []*capacity {
	if s.mode != "TOTAL" && s.mode != "INDEXES" {
		return nil
	}
	out := make([]*capacity, 0, len(s.order))
	for _, name := range s.order {
		t := s.tables[name]
		sum := t.Units
		indexes := make(map[string]*capacity)
		for ix, u := range t.Indexes {
			sum.Read += u.Read
			sum.Write += u.Write
			indexes[ix] = u.capacity(split)
		}
		c := sum.capacity(split)
		c.TableName = name
		if s.mode == "INDEXES" {
			c.Table = t.Units.capacity(split)
			c.GlobalSecondaryIndexes = indexes
		}
		out = append(out, c)
	}
	return out
}

// addTo puts the report of a request on one table into its answer.
func (s *spending) addTo(answer map[string]any) {
	if r := s.report(false); len(r) > 0 {
		answer["ConsumedCapacity"] = r[0]
	}
}

// addAllTo puts the report of a request on several tables into its answer.
func (s *spending) addAllTo(answer map[string]any, split bool) {
	if r := s.report(split); r != nil {
		answer["ConsumedCapacity"] = r
	}
}
