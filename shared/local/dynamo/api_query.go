package dynamo

import "fmt"

// maxPage is how many bytes of items one Query or Scan looks at.
const maxPage = 1 << 20

// pageRequest is what Query and Scan have in common.
type pageRequest struct {
	table       string
	index       string
	limit       int // 0 for none
	start       *attributes
	consistent  bool
	count       bool // Select COUNT
	selection   string
	input       expressionInput
	expressions *expressions
	capacity    *string
}

var (
	queryMembers = []expressionMember{projMember, filterMember, keyMember}
	scanMembers  = []expressionMember{projMember, filterMember}
	queryLegacy  = []string{"AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"}
	scanLegacy   = []string{"AttributesToGet", "ScanFilter", "ConditionalOperator"}
	selections   = []string{"SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"}
)

// readPageRequest decodes and checks what needs no table. more adds the checks
// of one operation to those on the shape of the request.
func readPageRequest(o object, d *decoder, members []expressionMember, more func(*constraints)) (*pageRequest, error) {
	name := d.string(o, "TableName")
	index := d.string(o, "IndexName")
	limit := d.integer(o, "Limit")
	selection := d.string(o, "Select")
	r := &pageRequest{
		start:      d.attributes(o, "ExclusiveStartKey"),
		consistent: d.flag(o, "ConsistentRead"),
		input:      d.readExpressions(o, members...),
		capacity:   d.string(o, "ReturnConsumedCapacity"),
	}
	if d.err != nil {
		return nil, d.err
	}
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	r.table = *name
	var c constraints
	if index != nil {
		r.index = *index
		c.name("indexName", r.index, 3)
	}
	c.enum("returnConsumedCapacity", r.capacity, capacityModes...)
	c.enum("select", selection, selections...)
	more(&c)
	if err := c.err(); err != nil {
		return nil, err
	}
	if limit != nil {
		r.limit = int(min(*limit, 1<<31))
	}
	if selection != nil {
		r.selection = *selection
		r.count = r.selection == "COUNT"
	}
	return r, nil
}

// check applies the rules on parameters and expressions.
func (r *pageRequest) check(o object, members []expressionMember, legacy []string) error {
	if err := r.input.checkParameters(o, members, legacy...); err != nil {
		return err
	}
	if r.start != nil && r.start.invalid != nil {
		return invalid("The provided starting key is invalid: %s", r.start.invalid.(*apiError).message)
	}
	if r.input.projection != nil {
		switch r.selection {
		case "COUNT":
			return invalid("Cannot specify the ProjectionExpression when choosing to get only the Count")
		case "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES":
			return invalid("Cannot specify the ProjectionExpression when choosing to get %s", r.selection)
		}
	} else if r.selection == "SPECIFIC_ATTRIBUTES" {
		return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	}
	if r.selection == "ALL_PROJECTED_ATTRIBUTES" && r.index == "" {
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	}
	var err error
	r.expressions, err = r.input.compile()
	return err
}

// source is the table or index that a page reads.
type source struct {
	table   *table
	index   *index // nil for the table itself
	schema  keySchema
	entries *ordered
}

// source finds the table or index that the request reads.
func (s *Server) source(r *pageRequest) (*source, error) {
	t, err := s.table(r.table)
	if err != nil {
		return nil, err
	}
	if r.index == "" {
		return &source{table: t, schema: t.schema, entries: &t.items}, nil
	}
	ix := t.index(r.index)
	if ix == nil {
		return nil, invalid("The table does not have the specified index: %s", r.index)
	}
	if r.consistent {
		return nil, invalid("Consistent reads are not supported on global secondary indexes")
	}
	return &source{table: t, index: ix, schema: ix.schema, entries: &ix.entries}, nil
}

// check refuses requests for what the source does not hold, and a query's filter
// on what its key condition is for.
func (src *source) check(r *pageRequest, query bool) error {
	if err := src.table.checkNested(r.expressions.projectionMentions); err != nil {
		return err
	}
	for _, a := range src.schema.attributes() {
		if query && r.expressions.filterMentions.heads[a.name] {
			return invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", a.name)
		}
	}
	if src.index != nil && src.index.keep != nil {
		name := src.index.spec.Name
		if r.selection == "ALL_ATTRIBUTES" {
			return invalidParameter("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", name)
		}
		for _, attribute := range sortedKeys(r.expressions.projectionMentions.heads) {
			if !src.index.keep[attribute] {
				return invalidParameter("Global secondary index %s does not project %s", name, attribute)
			}
		}
	}
	return src.table.checkNested(r.expressions.filterMentions)
}

// keyNames are the attributes of a LastEvaluatedKey: the primary key, and the
// index key when reading an index.
func (src *source) keyNames() map[string]kind {
	out := make(map[string]kind)
	for _, a := range append(src.table.schema.attributes(), src.schema.attributes()...) {
		out[a.name] = a.kind
	}
	return out
}

// startKey validates an ExclusiveStartKey, if there is one, and returns its
// ordering key.
func (src *source) startKey(a *attributes) (string, error) {
	if a == nil {
		return "", nil
	}
	names := src.keyNames()
	if len(a.doc) != len(names) {
		return "", invalid("The provided starting key is invalid")
	}
	for name := range names {
		if a.doc[name] == nil {
			return "", invalid("The provided starting key is invalid")
		}
	}
	if err := checkKey(src.schema, a.doc); err != nil {
		return "", err
	}
	key, _ := src.schema.orderingKey(a.doc)
	if src.index == nil {
		return string(key), nil
	}
	if err := checkKey(src.table.schema, a.doc); err != nil {
		return "", invalid("The provided starting key is invalid: %s", err.(*apiError).message)
	}
	primary, _ := src.table.schema.orderingKey(a.doc)
	return string(append(key, primary...)), nil
}

func (src *source) lastKey(item document) document {
	out := make(document)
	for name := range src.keyNames() {
		out[name] = item[name]
	}
	return out
}

// page reads entries in a range, up to the limits, and builds the answer.
func (src *source) page(r *pageRequest, in keyRange, backward bool, spent *spending) map[string]any {
	items := []document{}
	scanned, count, bytes := 0, 0, 0
	var last document
	visit := func(e entry) bool {
		size := itemSize(e.item)
		if scanned > 0 && bytes+size > maxPage {
			return false
		}
		bytes += size
		scanned++
		last = e.item
		if f := r.expressions.filter; f == nil || f.holds(e.item) {
			count++
			if !r.count {
				items = append(items, r.expressions.projection.project(e.item))
			}
		}
		return scanned != r.limit
	}
	complete := true
	step := func(e entry) bool {
		more := visit(e)
		complete = complete && more
		return more
	}
	if backward {
		src.entries.descend(in, step)
	} else {
		src.entries.ascend(in, step)
	}
	answer := map[string]any{"Count": count, "ScannedCount": scanned}
	if !r.count {
		answer["Items"] = items
	}
	if !complete {
		answer["LastEvaluatedKey"] = src.lastKey(last)
	}
	spent.read(r.table, r.index, bytes, readRate(r.consistent))
	return answer
}

func (s *Server) query(o object) (any, error) {
	var d decoder
	forward := d.bool(o, "ScanIndexForward")
	r, err := readPageRequest(o, &d, queryMembers, func(c *constraints) {
		if n := d.integer(o, "Limit"); n != nil && *n < 1 {
			c.violations = append(c.violations, "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1")
		}
	})
	if err != nil {
		return nil, err
	}
	if r.input.keyCondition == nil && o["KeyConditions"] == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	if err := r.check(o, queryMembers, queryLegacy); err != nil {
		return nil, err
	}
	tests, err := keyTests(r.expressions.keyCondition)
	if err != nil {
		return nil, err
	}
	return s.page(r, pageRange{
		of:       func(src *source) (keyRange, error) { return src.schema.rangeFor(tests) },
		tests:    tests,
		backward: forward != nil && !*forward,
		query:    true,
	})
}

// pageRange is where a page is read.
type pageRange struct {
	of       func(*source) (keyRange, error)
	tests    map[string]keyTest // those of a query
	backward bool
	query    bool // not a scan
}

// page answers a query or a scan with one page of a range.
func (s *Server) page(r *pageRequest, p pageRange) (any, error) {
	spent := newSpending(r.capacity)
	var answer map[string]any
	err := s.read(func() error {
		src, err := s.source(r)
		if err != nil {
			return err
		}
		startKey, err := src.startKey(r.start)
		if err != nil {
			return err
		}
		in, err := p.of(src)
		if err != nil {
			return err
		}
		if r.start != nil {
			if err := src.checkStart(in, startKey, r.start.doc, p.tests); err != nil {
				return err
			}
			in = in.resume(startKey, p.backward)
		}
		if err := src.check(r, p.query); err != nil {
			return err
		}
		answer = src.page(r, in, p.backward, spent)
		return nil
	})
	if err != nil {
		return nil, err
	}
	spent.record(&s.counts)
	spent.addTo(answer)
	return answer, nil
}

// checkStart refuses a start key that the query could not have returned.
func (src *source) checkStart(in keyRange, key string, start document, tests map[string]keyTest) error {
	sort, sorted := tests[src.schema.sort.name]
	if sorted && !sort.within(string(partitionPrefix(start[src.schema.partition.name]))).has(key) {
		return invalid("The provided starting key does not match the range key predicate")
	}
	switch {
	case in.has(key):
		return nil
	case sorted:
		return invalid("The query can return at most one row and cannot be restarted")
	}
	return invalid("The provided starting key is outside query boundaries based on provided conditions")
}

func (s *Server) scan(o object) (any, error) {
	var d decoder
	segment, total := d.integer(o, "Segment"), d.integer(o, "TotalSegments")
	r, err := readPageRequest(o, &d, scanMembers, func(c *constraints) {
		c.atLeast("limit", d.integer(o, "Limit"), 1)
		c.atLeast("segment", segment, 0)
		c.atLeast("totalSegments", total, 1)
		if total != nil && *total > 1_000_000 {
			c.add(fmt.Sprintf("'%d'", *total), "totalSegments", "Member must have value less than or equal to 1000000")
		}
	})
	if err != nil {
		return nil, err
	}
	if err := r.check(o, scanMembers, scanLegacy); err != nil {
		return nil, err
	}
	in, err := scanRange(segment, total)
	if err != nil {
		return nil, err
	}
	return s.page(r, pageRange{of: func(*source) (keyRange, error) { return in, nil }})
}

func scanRange(segment, total *int64) (keyRange, error) {
	switch {
	case segment == nil && total == nil:
		return keyRange{}, nil
	case total == nil:
		return keyRange{}, invalid("The TotalSegments parameter is required but was not present in the request when Segment parameter is present")
	case segment == nil:
		return keyRange{}, invalid("The Segment parameter is required but was not present in the request when parameter TotalSegments is present")
	case *segment >= *total:
		return keyRange{}, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", *segment, *total)
	}
	return segmentRange(uint64(*segment), uint64(*total)), nil
}
