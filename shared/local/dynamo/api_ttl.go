package dynamo

import "time"

// maxTTLAge: DynamoDB takes a TTL more than five years in the past for a
// mistake and keeps the item.
const maxTTLAge = 5 * 365 * 24 * time.Hour

func (s *Server) updateTimeToLive(o object) (any, error) {
	var d decoder
	name := d.string(o, "TableName")
	spec := d.object(o, "TimeToLiveSpecification")
	attribute, enabled := d.string(spec, "AttributeName"), d.bool(spec, "Enabled")
	if d.err != nil {
		return nil, d.err
	}
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	var c constraints
	switch {
	case spec == nil:
		c.required("timeToLiveSpecification")
	case attribute == nil:
		c.required("timeToLiveSpecification.attributeName")
	case len(*attribute) < 1 || len(*attribute) > 255:
		c.add("'"+*attribute+"'", "timeToLiveSpecification.attributeName", "Member must have length greater than or equal to 1")
	}
	if spec != nil && enabled == nil {
		c.required("timeToLiveSpecification.enabled")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	err := s.write(func() error {
		t, err := s.table(*name)
		if err != nil {
			return err
		}
		next := *attribute
		switch current := t.spec.TTLAttribute; {
		case *enabled && current == *attribute:
			return invalid("TimeToLive is already enabled")
		case *enabled && current != "":
			return invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", current)
		case !*enabled && current == "":
			return invalid("TimeToLive is already disabled")
		case !*enabled && current != *attribute:
			return invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", current)
		case !*enabled:
			next = ""
		}
		if err := s.journal.append(&line{TTL: &lineTTL{Table: *name, Attribute: next}}); err != nil {
			return internalError(err.Error())
		}
		t.spec.TTLAttribute = next
		return nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"TimeToLiveSpecification": map[string]any{"AttributeName": *attribute, "Enabled": *enabled}}, nil
}

func (s *Server) describeTimeToLive(o object) (any, error) {
	var d decoder
	name := d.string(o, "TableName")
	if d.err != nil {
		return nil, d.err
	}
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	description := map[string]any{"TimeToLiveStatus": "DISABLED"}
	err := s.read(func() error {
		t, err := s.table(*name)
		if err == nil && t.spec.TTLAttribute != "" {
			description = map[string]any{"TimeToLiveStatus": "ENABLED", "AttributeName": t.spec.TTLAttribute}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"TimeToLiveDescription": description}, nil
}

// Sweep removes the items that have expired at now, as DynamoDB's background
// process would at some time after: those whose TTL attribute is a number of
// epoch seconds in the past, but not more than five years. Each removal is a
// commit of its own with a REMOVE record that names the service as its author.
// It returns how many items it removed, also with an error.
func (s *Server) Sweep(now time.Time) (removed int, err error) {
	err = s.write(func() error {
		for _, name := range sortedKeys(s.tables) {
			t := s.tables[name]
			if t.spec.TTLAttribute == "" {
				continue
			}
			for _, c := range t.expired(now) {
				if err := s.commit(commit{changes: []change{c}, expired: true}); err != nil {
					return err
				}
				removed++
			}
		}
		return nil
	})
	return removed, err
}

// expired lists the removals that are due.
func (t *table) expired(now time.Time) []change {
	var due []change
	newest, oldest := now.Unix(), now.Add(-maxTTLAge).Unix()
	t.items.ascend(keyRange{}, func(e entry) bool {
		if n, ok := e.item[t.spec.TTLAttribute].(decimal); ok {
			if at, ok := n.int64(); ok && at < newest && at > oldest {
				due = append(due, change{table: t, key: e.key, old: e.item})
			}
		}
		return true
	})
	return due
}
