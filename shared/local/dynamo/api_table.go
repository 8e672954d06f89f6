package dynamo

import (
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
)

// CreateTable makes a table, or does nothing when it exists just like that. A
// table that exists otherwise is an error that says what differs.
func (s *Server) CreateTable(spec TableSpec) error {
	if err := spec.validate(); err != nil {
		return fmt.Errorf("creating table %s: %w", spec.Name, err)
	}
	spec = spec.normalized()
	return s.write(func() error {
		if t := s.tables[spec.Name]; t != nil {
			if reflect.DeepEqual(t.spec.normalized(), spec) {
				return nil
			}
			return fmt.Errorf("table %s exists as %+v, which differs from %+v: remove the data folder to start over, or give the table another name",
				spec.Name, t.spec, spec)
		}
		return s.addTable(spec)
	})
}

// addTable journals and adds a table; the caller holds the write lock.
func (s *Server) addTable(spec TableSpec) error {
	at := s.now()
	t := newTable(spec, strings.ToLower(rand.Text()), at, s.limits)
	l := &line{Create: &lineTable{Spec: spec, ID: t.id, Created: at.UnixNano()}}
	if err := s.journal.append(l); err != nil {
		return internalError(err.Error())
	}
	s.tables[spec.Name] = t
	return nil
}

func (s *Server) createTable(o object) (any, error) {
	r, err := readCreateTable(o)
	if err != nil {
		return nil, err
	}
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	var described map[string]any
	err = s.write(func() error {
		if s.tables[spec.Name] != nil {
			return clientError("ResourceInUseException", "Table already exists: %s", spec.Name)
		}
		if err := s.addTable(spec); err != nil {
			return err
		}
		described = s.describe(s.tables[spec.Name])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"TableDescription": described}, nil
}

// createRequest is a decoded CreateTable request.
type createRequest struct {
	name    string
	types   map[string]string // attribute definitions
	order   []string
	key     []keyElement
	indexes []createIndex
	view    string
}

type keyElement struct{ name, role string }

type createIndex struct {
	name       string
	key        []keyElement
	projection string
	include    []string
}

// readCreateTable decodes the request and checks its shape.
func readCreateTable(o object) (*createRequest, error) {
	var d decoder
	name := d.string(o, "TableName")
	r := &createRequest{types: make(map[string]string)}
	definitions := d.objects(o, "AttributeDefinitions")
	keySchema := d.objects(o, "KeySchema")
	indexes := d.objects(o, "GlobalSecondaryIndexes")
	mode := d.string(o, "BillingMode")
	streamSpec := d.object(o, "StreamSpecification")
	streaming, view := d.flag(streamSpec, "StreamEnabled"), d.string(streamSpec, "StreamViewType")
	var c, names constraints
	switch {
	case name == nil:
		if d.err == nil {
			d.err = invalid("The parameter 'TableName' is required but was not present in the request")
		}
	case *name == "":
		names.add("''", "tableName", "Member must have length greater than or equal to 1")
	default:
		r.name = *name
		names.name("tableName", r.name, 3)
	}
	if definitions == nil {
		c.required("attributeDefinitions")
	}
	for i, def := range definitions {
		attribute, kind := d.text(def, "AttributeName"), d.string(def, "AttributeType")
		c.enum(fmt.Sprintf("attributeDefinitions.%d.member.attributeType", i+1), kind, "B", "N", "S")
		if kind == nil {
			c.required(fmt.Sprintf("attributeDefinitions.%d.member.attributeType", i+1))
			continue
		}
		r.types[attribute] = *kind
		r.order = append(r.order, attribute)
	}
	r.key = readKeySchema(&d, &c, "keySchema", keySchema)
	c.enum("billingMode", mode, "PROVISIONED", "PAY_PER_REQUEST")
	for i, raw := range indexes {
		field := fmt.Sprintf("globalSecondaryIndexes.%d.member.", i+1)
		ix := createIndex{name: d.text(raw, "IndexName")}
		c.name(field+"indexName", ix.name, 3)
		ix.key = readKeySchema(&d, &c, field+"keySchema", d.objects(raw, "KeySchema"))
		projection := d.object(raw, "Projection")
		if projection == nil {
			c.required(field + "projection")
		}
		kind := d.string(projection, "ProjectionType")
		c.enum(field+"projection.projectionType", kind, projections...)
		if kind != nil {
			ix.projection = *kind
		}
		ix.include = d.strings(projection, "NonKeyAttributes")
		r.indexes = append(r.indexes, ix)
	}
	c.enum("streamSpecification.streamViewType", view, streamViews...)
	if d.err != nil {
		return nil, d.err
	}
	if err := names.err(); err != nil {
		return nil, err
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	if o["LocalSecondaryIndexes"] != nil {
		return nil, unsupported("LocalSecondaryIndexes")
	}
	switch {
	case streaming && view == nil:
		return nil, invalidParameter("StreamViewType is required when StreamEnabled is true")
	case streaming:
		r.view = *view
	case view != nil:
		return nil, invalidParameter("StreamViewType cannot be specified when StreamEnabled is false")
	}
	return r, checkBilling(o, mode, indexes)
}

// checkBilling: throughput has no effect here, but a template that would be
// refused should be refused.
func checkBilling(o object, mode *string, indexes []object) error {
	onDemand := mode != nil && *mode == "PAY_PER_REQUEST"
	given := o["ProvisionedThroughput"] != nil
	switch {
	case onDemand && given:
		return invalidParameter("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	case !onDemand && !given:
		return invalidParameter("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	for _, ix := range indexes {
		if onDemand && ix["ProvisionedThroughput"] != nil {
			return invalidParameter("ProvisionedThroughput should not be specified for index: %v when BillingMode is PAY_PER_REQUEST", ix["IndexName"])
		}
	}
	return nil
}

func readKeySchema(d *decoder, c *constraints, field string, raw []object) []keyElement {
	switch n := len(raw); {
	case raw == nil:
		c.required(field)
	case n == 0:
		c.add("'[]'", field, "Member must have length greater than or equal to 1")
	case n > 2:
		shown := make([]string, n)
		for i, e := range raw {
			shown[i] = fmt.Sprintf("KeySchemaElement(attributeName=%v, keyType=%v)", e["AttributeName"], e["KeyType"])
		}
		c.add("'["+strings.Join(shown, ", ")+"]'", field, "Member must have length less than or equal to 2")
	}
	var out []keyElement
	for i, e := range raw {
		role := d.string(e, "KeyType")
		if role == nil {
			c.required(fmt.Sprintf("%s.%d.member.keyType", field, i+1))
			continue
		}
		c.enum(fmt.Sprintf("%s.%d.member.keyType", field, i+1), role, "HASH", "RANGE")
		out = append(out, keyElement{d.text(e, "AttributeName"), *role})
	}
	return out
}

// spec checks how the parts of the request fit together.
func (r *createRequest) spec() (TableSpec, error) {
	spec := TableSpec{Name: r.name, StreamView: r.view}
	used := make(map[string]bool)
	var err error
	if spec.PartitionKey, spec.SortKey, err = r.keys(r.key, used); err != nil {
		return spec, err
	}
	names := make(map[string]bool)
	for _, ix := range r.indexes {
		if names[ix.name] {
			return spec, invalidParameter("Duplicate index name: %s", ix.name)
		}
		names[ix.name] = true
		out := IndexSpec{Name: ix.name, Projection: ix.projection, NonKeyAttributes: ix.include}
		if out.PartitionKey, out.SortKey, err = r.keys(ix.key, used); err != nil {
			return spec, err
		}
		switch {
		case ix.projection == "":
			return spec, invalidParameter("Unknown ProjectionType: null")
		case ix.projection != projectInclude && len(ix.include) > 0:
			return spec, invalidParameter("ProjectionType is %s, but NonKeyAttributes is specified", ix.projection)
		case ix.projection == projectInclude && len(ix.include) == 0:
			return spec, invalidParameter("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
		}
		spec.Indexes = append(spec.Indexes, out)
	}
	if len(spec.Indexes) > maxIndexes {
		return spec, invalidParameter("GlobalSecondaryIndex count exceeds the per-table limit of %d", maxIndexes)
	}
	if len(used) != len(r.types) || len(r.types) != len(r.order) {
		return spec, invalidParameter("Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return spec.normalized(), nil
}

// keys resolves a key schema against the attribute definitions.
func (r *createRequest) keys(elements []keyElement, used map[string]bool) (partition, sort KeyAttribute, err error) {
	distinct := make(map[string]bool)
	for _, e := range elements {
		if r.types[e.name] == "" || distinct[e.name] {
			return partition, sort, invalid("Invalid KeySchema: Some index key attribute have no definition")
		}
		distinct[e.name] = true
		used[e.name] = true
	}
	if elements[0].role != "HASH" {
		return partition, sort, invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	}
	partition = KeyAttribute{elements[0].name, r.types[elements[0].name]}
	if len(elements) == 2 {
		if elements[1].role != "RANGE" {
			return partition, sort, invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
		}
		sort = KeyAttribute{elements[1].name, r.types[elements[1].name]}
	}
	return partition, sort, nil
}

func (s *Server) deleteTable(o object) (any, error) {
	return s.onNamedTable(o, s.write, func(t *table) (any, error) {
		if err := s.journal.append(&line{Drop: t.spec.Name}); err != nil {
			return nil, internalError(err.Error())
		}
		delete(s.tables, t.spec.Name)
		if t.stream != nil {
			close(t.stream.changed) // wakes readers, who find no stream
		}
		d := s.describe(t)
		d["TableStatus"] = "DELETING"
		return map[string]any{"TableDescription": d}, nil
	})
}

func (s *Server) describeTable(o object) (any, error) {
	return s.onNamedTable(o, s.read, func(t *table) (any, error) {
		return map[string]any{"Table": s.describe(t)}, nil
	})
}

// onNamedTable runs f on the table that TableName names, under the lock that
// locked takes.
func (s *Server) onNamedTable(o object, locked func(func() error) error, f func(*table) (any, error)) (answer any, err error) {
	var d decoder
	name := d.string(o, "TableName")
	if d.err != nil {
		return nil, d.err
	}
	if name == nil {
		return nil, invalid("The parameter 'TableName' is required but was not present in the request")
	}
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	err = locked(func() error {
		t := s.tables[*name]
		if t == nil {
			return clientError("ResourceNotFoundException", "Requested resource not found: Table: %s not found", *name)
		}
		answer, err = f(t)
		return err
	})
	return answer, err
}

func (s *Server) listTables(o object) (any, error) {
	var d decoder
	after, limit := d.string(o, "ExclusiveStartTableName"), d.integer(o, "Limit")
	if d.err != nil {
		return nil, d.err
	}
	var c constraints
	if after != nil {
		c.name("exclusiveStartTableName", *after, 1)
	}
	c.atLeast("limit", limit, 1)
	if limit != nil && *limit > 100 {
		c.add(fmt.Sprintf("'%d'", *limit), "limit", "Member must have value less than or equal to 100")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	most := 100
	if limit != nil {
		most = int(*limit)
	}
	names := []string{}
	answer := make(map[string]any)
	err := s.read(func() error {
		for _, name := range sortedKeys(s.tables) {
			if after != nil && name <= *after {
				continue
			}
			if len(names) == most {
				answer["LastEvaluatedTableName"] = names[most-1]
				break
			}
			names = append(names, name)
		}
		return nil
	})
	answer["TableNames"] = names
	return answer, err
}

func (s *Server) tableARN(t *table) string {
	return fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", s.region, s.account, t.spec.Name)
}

func (s *Server) streamARN(t *table) string { return s.tableARN(t) + "/stream/" + t.stream.label }

func describeKeys(partition, sort KeyAttribute) []map[string]string {
	out := []map[string]string{{"AttributeName": partition.Name, "KeyType": "HASH"}}
	if sort.Name != "" {
		out = append(out, map[string]string{"AttributeName": sort.Name, "KeyType": "RANGE"})
	}
	return out
}

// describe is the TableDescription of a table. Tables are active at once.
func (s *Server) describe(t *table) map[string]any {
	types := make(map[string]string)
	note := func(keys ...KeyAttribute) {
		for _, k := range keys {
			if k.Name != "" {
				types[k.Name] = k.Type
			}
		}
	}
	note(t.spec.PartitionKey, t.spec.SortKey)
	throughput := map[string]any{"ReadCapacityUnits": 0, "WriteCapacityUnits": 0, "NumberOfDecreasesToday": 0}
	d := map[string]any{
		"TableName":                 t.spec.Name,
		"TableArn":                  s.tableARN(t),
		"TableId":                   t.id,
		"TableStatus":               "ACTIVE",
		"CreationDateTime":          float64(t.created.UnixMilli()) / 1000,
		"KeySchema":                 describeKeys(t.spec.PartitionKey, t.spec.SortKey),
		"ItemCount":                 t.items.count,
		"TableSizeBytes":            t.bytes,
		"BillingModeSummary":        map[string]any{"BillingMode": "PAY_PER_REQUEST"},
		"ProvisionedThroughput":     throughput,
		"DeletionProtectionEnabled": false,
	}
	var indexes []map[string]any
	for _, ix := range t.indexes {
		note(ix.spec.PartitionKey, ix.spec.SortKey)
		projection := map[string]any{"ProjectionType": ix.spec.Projection}
		if len(ix.spec.NonKeyAttributes) > 0 {
			projection["NonKeyAttributes"] = ix.spec.NonKeyAttributes
		}
		size := 0
		ix.entries.ascend(keyRange{}, func(e entry) bool {
			size += itemSize(e.item)
			return true
		})
		indexes = append(indexes, map[string]any{
			"IndexName":             ix.spec.Name,
			"IndexArn":              s.tableARN(t) + "/index/" + ix.spec.Name,
			"IndexStatus":           "ACTIVE",
			"KeySchema":             describeKeys(ix.spec.PartitionKey, ix.spec.SortKey),
			"Projection":            projection,
			"ItemCount":             ix.entries.count,
			"IndexSizeBytes":        size,
			"ProvisionedThroughput": throughput,
		})
	}
	if indexes != nil {
		d["GlobalSecondaryIndexes"] = indexes
	}
	var definitions []map[string]string
	for _, name := range sortedKeys(types) {
		definitions = append(definitions, map[string]string{"AttributeName": name, "AttributeType": types[name]})
	}
	d["AttributeDefinitions"] = definitions
	if t.stream != nil {
		d["StreamSpecification"] = map[string]any{"StreamEnabled": true, "StreamViewType": t.stream.view}
		d["LatestStreamArn"] = s.streamARN(t)
		d["LatestStreamLabel"] = t.stream.label
	}
	return d
}
