package dynamo

const (
	maxBatchGet   = 100
	maxBatchWrite = 25
	maxBatchReply = 16 << 20
)

// batchGet is the request on one table inside a BatchGetItem.
type batchGet struct {
	table       string
	raw         object
	keys        []*attributes
	rawKeys     []object
	consistent  bool
	input       expressionInput
	expressions *expressions
}

func (s *Server) batchGetItem(o object) (any, error) {
	gets, mode, err := readBatchGet(o)
	if err != nil {
		return nil, err
	}
	spent := newSpending(mode)
	responses := make(map[string][]document)
	unprocessed := make(map[string]any)
	err = s.read(func() error {
		bytes := 0
		for _, g := range gets {
			t, err := s.table(g.table)
			if err != nil {
				return err
			}
			keys, err := g.locate(t)
			if err != nil {
				return err
			}
			found := []document{}
			for i, key := range keys {
				item := t.items.get(key)
				if bytes += itemSize(item); bytes > maxBatchReply {
					unprocessed[g.table] = g.rest(i)
					break
				}
				spent.read(g.table, "", itemSize(item), readRate(g.consistent))
				if item != nil {
					found = append(found, g.expressions.projection.project(item))
				}
			}
			responses[g.table] = found
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spent.record(&s.counts)
	answer := map[string]any{"Responses": responses, "UnprocessedKeys": unprocessed}
	spent.addAllTo(answer, false)
	return answer, nil
}

// rest is the request for the keys from the i-th on.
func (g *batchGet) rest(i int) object {
	out := object{}
	for name, v := range g.raw {
		out[name] = v
	}
	out["Keys"] = g.rawKeys[i:]
	return out
}

// checkKeys refuses invalid values and repeated keys.
func (g *batchGet) checkKeys() error {
	seen := make(map[string]bool, len(g.keys))
	for _, k := range g.keys {
		if k.invalid != nil {
			return k.invalid
		}
		key := string(appendDocument(nil, k.doc))
		if seen[key] {
			return invalid("Provided list of item keys contains duplicates")
		}
		seen[key] = true
	}
	return nil
}

func (g *batchGet) locate(t *table) ([]string, error) {
	keys := make([]string, 0, len(g.keys))
	for _, k := range g.keys {
		key, err := t.lookup(k.doc)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, t.checkNested(g.expressions.projectionMentions)
}

func readBatchGet(o object) ([]*batchGet, *string, error) {
	var d decoder
	mode := d.string(o, "ReturnConsumedCapacity")
	requests := d.object(o, "RequestItems")
	var gets []*batchGet
	members := []expressionMember{projMember}
	for _, name := range sortedKeys(requests) {
		raw, ok := requests[name].(map[string]any)
		if !ok {
			d.fail(malformed("Unexpected value type in payload"))
			break
		}
		g := &batchGet{
			table: name, raw: raw,
			rawKeys:    d.objects(raw, "Keys"),
			consistent: d.flag(raw, "ConsistentRead"),
			input:      d.readExpressions(raw, members...),
		}
		for _, k := range g.rawKeys {
			g.keys = append(g.keys, d.attributeMap(k))
		}
		gets = append(gets, g)
	}
	if d.err != nil {
		return nil, nil, d.err
	}
	if len(gets) == 0 {
		return nil, nil, invalid("The requestItems parameter is required for BatchGetItem")
	}
	var c constraints
	c.enum("returnConsumedCapacity", mode, capacityModes...)
	c.tableKeys(sortedKeys(requests))
	total := 0
	for _, g := range gets {
		field := "RequestItems." + g.table + ".member.Keys"
		switch n := len(g.keys); {
		case n == 0:
			c.violations = append(c.violations, "Value at '"+field+"' failed to satisfy constraint: Member must have length greater than or equal to 1")
		case n > maxBatchGet:
			c.violations = append(c.violations, "Value at '"+field+"' failed to satisfy constraint: Member must have length less than or equal to 100")
		}
		total += len(g.keys)
	}
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	if total > maxBatchGet {
		return nil, nil, invalid("Too many items requested for the BatchGetItem call")
	}
	for _, g := range gets {
		if err := g.input.checkParameters(g.raw, members, "AttributesToGet"); err != nil {
			return nil, nil, err
		}
		var err error
		if g.expressions, err = g.input.compile(); err != nil {
			return nil, nil, err
		}
		if err := g.checkKeys(); err != nil {
			return nil, nil, err
		}
	}
	return gets, mode, nil
}

func (s *Server) batchWriteItem(o object) (any, error) {
	plans, mode, err := readBatchWrite(o)
	if err != nil {
		return nil, err
	}
	spent := newSpending(mode)
	err = s.write(func() error {
		changes := make([]change, 0, len(plans))
		seen := make(map[string]bool, len(plans))
		for _, p := range plans {
			c, err := p.resolve(s)
			if err != nil {
				return err
			}
			if id := p.request.table + "\x00" + c.key; seen[id] {
				return invalid("Provided list of item keys contains duplicates")
			} else {
				seen[id] = true
			}
			if err := p.settle(&c); err != nil {
				return err
			}
			changes = append(changes, c)
		}
		// The writes of a batch are separate on DynamoDB: each is a commit of its
		// own, and a failure leaves the earlier ones in place.
		for _, c := range changes {
			if err := s.commit(commit{changes: []change{c}}); err != nil {
				return err
			}
			spent.write(c, 1)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spent.record(&s.counts)
	answer := map[string]any{"UnprocessedItems": map[string]any{}}
	spent.addAllTo(answer, false)
	return answer, nil
}

func readBatchWrite(o object) ([]plan, *string, error) {
	var d decoder
	mode, metrics := d.string(o, "ReturnConsumedCapacity"), d.string(o, "ReturnItemCollectionMetrics")
	requests := d.object(o, "RequestItems")
	var plans []plan
	var c constraints
	c.enum("returnConsumedCapacity", mode, capacityModes...)
	c.enum("returnItemCollectionMetrics", metrics, metricsModes...)
	tables := sortedKeys(requests)
	c.tableKeys(tables)
	empty := false
	for _, name := range tables {
		writes := d.objects(requests, name)
		if len(writes) == 0 || len(writes) > maxBatchWrite {
			c.add("'{"+name+"=[...]}'", "requestItems",
				"Map value must satisfy constraint: [Member must have length less than or equal to 25, Member must have length greater than or equal to 1]")
		}
		for _, w := range writes {
			put, del := d.object(w, "PutRequest"), d.object(w, "DeleteRequest")
			empty = empty || (put == nil) == (del == nil)
			r := &itemRequest{table: name, expressions: new(expressions)}
			if put != nil {
				if r.key = d.attributes(put, "Item"); r.key == nil {
					c.required("requestItems." + name + ".member.putRequest.item")
				}
				plans = append(plans, planBatchPut(orEmpty(r)))
			} else if del != nil {
				if r.key = d.attributes(del, "Key"); r.key == nil {
					c.required("requestItems." + name + ".member.deleteRequest.key")
				}
				plans = append(plans, planDelete(orEmpty(r)))
			}
		}
	}
	if d.err != nil {
		return nil, nil, d.err
	}
	if len(tables) == 0 {
		return nil, nil, invalid("The requestItems parameter is required for BatchWriteItem")
	}
	if err := c.err(); err != nil {
		return nil, nil, err
	}
	if empty {
		return nil, nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	if len(plans) > maxBatchWrite {
		return nil, nil, invalid("Too many items requested for the BatchWriteItem call")
	}
	for _, p := range plans {
		if p.request.key.invalid != nil {
			return nil, nil, p.request.key.invalid
		}
		if itemSize(p.request.key.doc) > maxItemSize {
			return nil, nil, invalid("Item size has exceeded the maximum allowed size")
		}
	}
	return plans, mode, nil
}

// planBatchPut is planPut, except that a batch reports wrong keys as it would for
// a deletion.
func planBatchPut(r *itemRequest) plan {
	p := planPut(r)
	p.locate = func(t *table) (string, error) {
		key := make(document)
		for _, a := range t.schema.attributes() {
			if v, ok := r.key.doc[a.name]; ok {
				key[a.name] = v
			}
		}
		id, err := t.lookup(key)
		if err != nil {
			return "", err
		}
		return id, t.checkIndexKeys(r.key.doc)
	}
	return p
}

// orEmpty lets a request without attributes be planned; it is refused before
// the plan is used.
func orEmpty(r *itemRequest) *itemRequest {
	if r.key == nil {
		r.key = &attributes{}
	}
	return r
}
