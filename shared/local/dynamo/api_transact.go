package dynamo

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	maxActions         = 100
	maxTransactionSize = 4 << 20
	reasonNone         = "None"
)

var checkShape = itemShape{keyMember: "Key", members: []expressionMember{condMember}}

// readActions decodes the elements of TransactItems. Each has exactly one of
// the members in shapes.
func readActions(o object, names []string, read func(name string, body object) error) error {
	var d decoder
	items := d.objects(o, "TransactItems")
	if d.err != nil {
		return d.err
	}
	var c constraints
	switch n := len(items); {
	case items == nil:
		c.required("transactItems")
	case n == 0:
		c.add("'[]'", "transactItems", "Member must have length greater than or equal to 1")
	case n > maxActions:
		c.add(fmt.Sprintf("'[%d actions]'", n), "transactItems", "Member must have length less than or equal to 100")
	}
	if err := c.err(); err != nil {
		return err
	}
	for _, item := range items {
		given := ""
		for _, name := range names {
			body := d.object(item, name)
			if d.err != nil {
				return d.err
			}
			if body == nil {
				continue
			}
			if given != "" {
				return invalid("TransactItems can only contain one of %v", names)
			}
			given = name
			if err := read(name, body); err != nil {
				return err
			}
		}
		if given == "" {
			return invalid("Invalid Request: TransactItems must contain one of %v in every element", names)
		}
	}
	return nil
}

func readWriteActions(o object) ([]plan, error) {
	var plans []plan
	names := []string{"ConditionCheck", "Put", "Delete", "Update"}
	err := readActions(o, names, func(name string, body object) error {
		shapes := map[string]itemShape{"ConditionCheck": checkShape, "Put": putShape, "Delete": deleteShape, "Update": updateShape}
		shape := shapes[name]
		shape.returnValues, shape.legacy = []string{"NONE"}, nil
		r, err := readItemRequest(body, shape)
		if err != nil {
			return err
		}
		var p plan
		switch name {
		case "ConditionCheck":
			if r.input.condition == nil {
				return invalid("1 validation error detected: Value null at 'transactItems.%d.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null", len(plans)+1)
			}
			p = planCheck(r)
		case "Put":
			p = planPut(r)
		case "Delete":
			p = planDelete(r)
		case "Update":
			if r.input.update == nil {
				return invalid("1 validation error detected: Value null at 'transactItems.%d.member.update.updateExpression' failed to satisfy constraint: Member must not be null", len(plans)+1)
			}
			p = planUpdate(r)
		}
		plans = append(plans, p)
		return nil
	})
	return plans, err
}

func (s *Server) transactWriteItems(o object) (any, error) {
	var d decoder
	mode, metrics := d.string(o, "ReturnConsumedCapacity"), d.string(o, "ReturnItemCollectionMetrics")
	name := d.string(o, "ClientRequestToken")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	c.enum("returnConsumedCapacity", mode, capacityModes...)
	c.enum("returnItemCollectionMetrics", metrics, metricsModes...)
	if name != nil && (len(*name) < 1 || len(*name) > 36) {
		c.add("'"+*name+"'", "clientRequestToken", "Member must have length less than or equal to 36, Member must have length greater than or equal to 1")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	plans, err := readWriteActions(o)
	if err != nil {
		return nil, err
	}
	planned := commit{}
	if name != nil {
		planned.token, planned.digest = *name, digest(o)
	}
	spent := newSpending(mode)
	err = s.write(func() error { return s.transact(plans, planned, spent) })
	// A cancelled transaction has cost what it looked at.
	spent.record(&s.counts)
	if err != nil {
		return nil, err
	}
	answer := make(map[string]any)
	spent.addAllTo(answer, true)
	return answer, nil
}

// digest identifies the parameters of a request, apart from those that do not
// change what it does.
func digest(o object) string {
	// Decoded JSON always encodes, and maps encode in key order.
	body, _ := json.Marshal(o["TransactItems"])
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// transact checks every action against the same state and then commits all of
// them, or none. The caller holds the write lock.
func (s *Server) transact(plans []plan, planned commit, spent *spending) error {
	if planned.token != "" {
		now := s.now()
		s.forgetTokens(now)
		if seen, ok := s.tokens[planned.token]; ok && seen.protects(now) {
			if seen.digest != planned.digest {
				return clientError("IdempotentParameterMismatchException",
					"The request parameters do not match those of the earlier request with the same ClientRequestToken")
			}
			return s.repeated(plans, spent)
		}
	}
	changes, err := s.resolveAll(len(plans), func(i int) (change, error) { return plans[i].resolve(s) })
	if err != nil {
		return err
	}
	reasons := make([]cancellationReason, len(plans))
	cancelled := false
	size := 0
	for i, p := range plans {
		c := &changes[i]
		if reasons[i] = reasonFor(p.settle(c)); reasons[i].Code != reasonNone {
			cancelled = true
		}
		size += max(itemSize(c.old), itemSize(c.new))
		spent.write(*c, 2)
	}
	if cancelled {
		return errCancelled(reasons)
	}
	if size > maxTransactionSize {
		return invalid("Transaction size has exceeded the maximum allowed size of 4 MB")
	}
	planned.changes = changes
	return s.commit(planned)
}

// repeated answers a transaction that its token says has been performed: it
// costs the reading of the items.
func (s *Server) repeated(plans []plan, spent *spending) error {
	for _, p := range plans {
		c, err := p.resolve(s)
		if err != nil {
			return err
		}
		spent.read(p.request.table, "", itemSize(c.old), 2)
	}
	return nil
}

// resolveAll finds the items of a transaction. Keys that do not fit their table
// cancel it; two actions on one item make the request invalid.
func (s *Server) resolveAll(n int, resolve func(i int) (change, error)) ([]change, error) {
	changes := make([]change, n)
	reasons := make([]cancellationReason, n)
	seen := make(map[string]bool, n)
	cancelled := false
	for i := range n {
		c, err := resolve(i)
		var e *apiError
		if errors.As(err, &e) && e.code != "ValidationException" {
			return nil, err
		}
		if reasons[i] = reasonFor(err); err != nil {
			cancelled = true
			continue
		}
		id := c.table.spec.Name + "\x00" + c.key
		if seen[id] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[id] = true
		changes[i] = c
	}
	if cancelled {
		return nil, errCancelled(reasons)
	}
	return changes, nil
}

// reasonFor is the cancellation reason of an action with this outcome.
func reasonFor(err error) cancellationReason {
	var e *apiError
	switch {
	case err == nil:
		return cancellationReason{Code: reasonNone}
	case !errors.As(err, &e):
		return cancellationReason{Code: "InternalServerError", Message: err.Error()}
	case e.code == "ConditionalCheckFailedException":
		return cancellationReason{Code: "ConditionalCheckFailed", Message: e.message, Item: e.item}
	}
	return cancellationReason{Code: "ValidationError", Message: e.message}
}

func (s *Server) transactGetItems(o object) (any, error) {
	var d decoder
	mode := d.string(o, "ReturnConsumedCapacity")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	c.enum("returnConsumedCapacity", mode, capacityModes...)
	if err := c.err(); err != nil {
		return nil, err
	}
	var gets []*itemRequest
	err := readActions(o, []string{"Get"}, func(_ string, body object) error {
		shape := getShape
		shape.legacy = nil
		r, err := readItemRequest(body, shape)
		gets = append(gets, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	spent := newSpending(mode)
	responses := make([]map[string]any, len(gets))
	err = s.read(func() error {
		found, err := s.resolveAll(len(gets), func(i int) (change, error) { return planDelete(gets[i]).resolve(s) })
		if err != nil {
			return err
		}
		size := 0
		for i, c := range found {
			size += itemSize(c.old)
			spent.read(gets[i].table, "", itemSize(c.old), 2)
			responses[i] = make(map[string]any)
			if c.old != nil {
				responses[i]["Item"] = gets[i].expressions.projection.project(c.old)
			}
		}
		if size > maxTransactionSize {
			return invalid("Transaction size has exceeded the maximum allowed size of 4 MB")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	spent.record(&s.counts)
	answer := map[string]any{"Responses": responses}
	spent.addAllTo(answer, true)
	return answer, nil
}
