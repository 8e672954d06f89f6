package dynamo

import "slices"

var (
	capacityModes = []string{"INDEXES", "TOTAL", "NONE"}
	metricsModes  = []string{"SIZE", "NONE"}
	// In the order in which messages list them.
	allReturnValues = []string{"ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"}
)

// itemRequest is what GetItem, PutItem, UpdateItem, DeleteItem and the actions
// of transactions have in common.
type itemRequest struct {
	table        string
	key          *attributes // or the whole item, for a put
	input        expressionInput
	expressions  *expressions
	returnValues *string
	onFailure    *string
	capacity     *string
	consistent   bool
}

// itemShape says which parameters an operation has.
type itemShape struct {
	keyMember    string // Key or Item
	members      []expressionMember
	legacy       []string
	returnValues []string // values of ReturnValues; nil when there is none
	updates      bool     // this is UpdateItem
}

var (
	getShape = itemShape{"Key", []expressionMember{projMember}, []string{"AttributesToGet"}, nil, false}
	putShape = itemShape{"Item", []expressionMember{condMember}, []string{"Expected", "ConditionalOperator"},
		allReturnValues, false}
	deleteShape = itemShape{"Key", []expressionMember{condMember}, []string{"Expected", "ConditionalOperator"},
		allReturnValues, false}
	updateShape = itemShape{"Key", []expressionMember{updateMember, condMember},
		[]string{"AttributeUpdates", "Expected", "ConditionalOperator"},
		allReturnValues, true}
)

// readItemRequest decodes and checks everything that can be checked without the
// table, in the order in which DynamoDB does.
func readItemRequest(o object, shape itemShape) (*itemRequest, error) {
	var d decoder
	name := d.string(o, "TableName")
	r := &itemRequest{
		key:          d.attributes(o, shape.keyMember),
		input:        d.readExpressions(o, shape.members...),
		returnValues: d.string(o, "ReturnValues"),
		onFailure:    d.string(o, "ReturnValuesOnConditionCheckFailure"),
		capacity:     d.string(o, "ReturnConsumedCapacity"),
		consistent:   d.flag(o, "ConsistentRead"),
	}
	metrics := d.string(o, "ReturnItemCollectionMetrics")
	if d.err != nil {
		return nil, d.err
	}
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	r.table = *name
	var c constraints
	c.enum("returnConsumedCapacity", r.capacity, capacityModes...)
	c.enum("returnItemCollectionMetrics", metrics, metricsModes...)
	if shape.returnValues != nil {
		c.enum("returnValues", r.returnValues, shape.returnValues...)
		c.enum("returnValuesOnConditionCheckFailure", r.onFailure, "ALL_OLD", "NONE")
	}
	if r.key == nil {
		c.required(lowerFirst(shape.keyMember))
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return r, r.check(o, shape)
}

// check applies the rules on values and expressions.
func (r *itemRequest) check(o object, shape itemShape) error {
	if err := r.input.checkParameters(o, shape.members, shape.legacy...); err != nil {
		return err
	}
	if r.key.invalid != nil {
		return r.key.invalid
	}
	if err := r.onlyAllOld(shape); err != nil {
		return err
	}
	if shape.keyMember == "Item" && itemSize(r.key.doc) > maxItemSize {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	var err error
	r.expressions, err = r.input.compile()
	return err
}

func (r *itemRequest) wants(returnValues string) bool {
	return r.returnValues != nil && *r.returnValues == returnValues
}

func (r *itemRequest) wantsOldOnFailure() bool {
	return r.onFailure != nil && *r.onFailure == "ALL_OLD"
}

func checkTableName(name *string) error {
	var c constraints
	if name == nil {
		c.required("tableName")
	} else {
		c.name("tableName", *name, 1)
	}
	return c.err()
}

func lowerFirst(s string) string { return string(s[0]|0x20) + s[1:] }

func (s *Server) getItem(o object) (any, error) {
	r, err := readItemRequest(o, getShape)
	if err != nil {
		return nil, err
	}
	spent := newSpending(r.capacity)
	answer := make(map[string]any)
	err = s.read(func() error {
		t, err := s.table(r.table)
		if err != nil {
			return err
		}
		key, err := t.lookup(r.key.doc)
		if err != nil {
			return err
		}
		if err := t.checkNested(r.expressions.projectionMentions); err != nil {
			return err
		}
		item := t.items.get(key)
		spent.read(r.table, "", itemSize(item), readRate(r.consistent))
		if item != nil {
			answer["Item"] = r.expressions.projection.project(item)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spent.record(&s.counts)
	spent.addTo(answer)
	return answer, nil
}

// readRate is the units per 4 KB of a read.
func readRate(consistent bool) float64 {
	if consistent {
		return 1
	}
	return 0.5
}

// plan is one intended write: what must hold, and a pure function from the old
// item to the new one.
type plan struct {
	request *itemRequest
	locate  func(t *table) (key string, err error)
	next    func(t *table, old document) (document, error)
}

// resolve finds the table and the present item, without checking the condition.
func (p plan) resolve(s *Server) (change, error) {
	t, err := s.table(p.request.table)
	if err != nil {
		return change{}, err
	}
	key, err := p.locate(t)
	if err != nil {
		return change{}, err
	}
	old := t.items.get(key)
	return change{table: t, key: key, old: old, new: old}, nil
}

// settle checks the condition and computes the new item.
func (p plan) settle(c *change) error {
	if cond := p.request.expressions.condition; cond != nil && !cond.holds(c.old) {
		return errConditionFailed(c.old, p.request.wantsOldOnFailure())
	}
	next, err := p.next(c.table, c.old)
	if err != nil {
		return err
	}
	c.new = next
	return nil
}

func planPut(r *itemRequest) plan {
	item := r.key.doc
	return plan{
		request: r,
		locate: func(t *table) (string, error) {
			key, err := t.locate(item)
			if err != nil {
				return "", err
			}
			return key, t.checkIndexKeys(item)
		},
		next: func(*table, document) (document, error) { return item, nil },
	}
}

func planDelete(r *itemRequest) plan {
	return plan{
		request: r,
		locate:  func(t *table) (string, error) { return t.lookup(r.key.doc) },
		next:    func(*table, document) (document, error) { return nil, nil },
	}
}

// planCheck is a ConditionCheck: it leaves the item as it is.
func planCheck(r *itemRequest) plan {
	p := planDelete(r)
	p.next = func(_ *table, old document) (document, error) { return old, nil }
	return p
}

func planUpdate(r *itemRequest) plan {
	u := r.expressions.update
	return plan{
		request: r,
		locate: func(t *table) (string, error) {
			key, err := t.lookup(r.key.doc)
			if err != nil || u == nil {
				return key, err
			}
			return key, t.checkUpdate(u)
		},
		next: func(t *table, old document) (document, error) {
			if old == nil {
				old = r.key.doc // an update of an absent item starts from its key
			}
			if u == nil {
				return old, nil
			}
			item, err := u.apply(old, t.indexKeys)
			if err != nil {
				return nil, err
			}
			return item, t.checkUpdated(item)
		},
	}
}

// checkUpdate applies the rules on keys that need no item.
func (t *table) checkUpdate(u *updateExpression) error {
	for _, a := range t.schema.attributes() {
		if u.writes[a.name] {
			return invalidParameter("Cannot update attribute %s. This attribute is part of the key", a.name)
		}
	}
	for _, ix := range t.indexes {
		for _, a := range ix.schema.attributes() {
			for _, action := range u.actions {
				if action.value == nil || len(action.path) > 1 || action.path[0].name != a.name {
					continue
				}
				if k := action.value.staticKind(); k != "" && k != a.kind {
					return invalidParameter("Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s",
						a.name, a.kind, k, ix.spec.Name)
				}
			}
		}
	}
	return t.checkNested(u.mentions)
}

// checkUpdated applies the rules on items to the outcome of an update.
func (t *table) checkUpdated(item document) error {
	if err := t.checkIndexKeys(item); err != nil {
		return err
	}
	if itemSize(item) > maxItemSize {
		return invalid("Item size to update has exceeded the maximum allowed size")
	}
	return nil
}

// writeItem performs one plan and returns the change.
func (s *Server) writeItem(p plan, spent *spending) (change, error) {
	var c change
	err := s.write(func() error {
		var err error
		if c, err = p.resolve(s); err != nil {
			return err
		}
		err = p.settle(&c)
		if e, ok := err.(*apiError); ok && e.code == "ConditionalCheckFailedException" {
			spent.write(c, 1) // a refused write costs the item it looked at
			spent.record(&s.counts)
		}
		if err != nil {
			return err
		}
		spent.write(c, 1)
		return s.commit(commit{changes: []change{c}})
	})
	if err != nil {
		return c, err
	}
	spent.record(&s.counts)
	return c, nil
}

// onlyAllOld refuses ReturnValues that PutItem and DeleteItem do not have. Only
// an update has new values that its request does not show.
func (r *itemRequest) onlyAllOld(shape itemShape) error {
	if !shape.updates && r.returnValues != nil && !slices.Contains([]string{"ALL_OLD", "NONE"}, *r.returnValues) {
		return invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return nil
}

func (s *Server) putItem(o object) (any, error) {
	return s.replaceItem(o, putShape, planPut)
}

func (s *Server) deleteItem(o object) (any, error) {
	return s.replaceItem(o, deleteShape, planDelete)
}

func (s *Server) replaceItem(o object, shape itemShape, planFor func(*itemRequest) plan) (any, error) {
	r, err := readItemRequest(o, shape)
	if err != nil {
		return nil, err
	}
	spent := newSpending(r.capacity)
	c, err := s.writeItem(planFor(r), spent)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]any)
	if r.wants("ALL_OLD") && c.old != nil {
		answer["Attributes"] = c.old
	}
	spent.addTo(answer)
	return answer, nil
}

func (s *Server) updateItem(o object) (any, error) {
	r, err := readItemRequest(o, updateShape)
	if err != nil {
		return nil, err
	}
	spent := newSpending(r.capacity)
	c, err := s.writeItem(planUpdate(r), spent)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]any)
	if d := r.returned(c); len(d) > 0 {
		answer["Attributes"] = d
	}
	spent.addTo(answer)
	return answer, nil
}

// returned is the Attributes of an UpdateItem answer.
func (r *itemRequest) returned(c change) document {
	touched := func(item document) document {
		if u := r.expressions.update; u != nil && item != nil {
			return u.tree.project(item)
		}
		return nil
	}
	switch {
	case r.wants("ALL_OLD"):
		return c.old
	case r.wants("ALL_NEW"):
		return c.new
	case r.wants("UPDATED_OLD"):
		return touched(c.old)
	case r.wants("UPDATED_NEW"):
		return touched(c.new)
	}
	return nil
}
