package dynamo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// KeyAttribute names an attribute of a key and its type: "S", "N" or "B". The
// zero value means that there is no such key.
type KeyAttribute struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// IndexSpec describes a global secondary index.
type IndexSpec struct {
	Name         string       `json:"name"`
	PartitionKey KeyAttribute `json:"partition"`
	SortKey      KeyAttribute `json:"sort"`
	// Projection is "ALL" (also when empty), "KEYS_ONLY" or "INCLUDE"; the last
	// adds NonKeyAttributes to the keys.
	Projection       string   `json:"projection"`
	NonKeyAttributes []string `json:"include,omitempty"`
}

// TableSpec describes a table.
type TableSpec struct {
	Name         string       `json:"name"`
	PartitionKey KeyAttribute `json:"partition"`
	SortKey      KeyAttribute `json:"sort"`
	Indexes      []IndexSpec  `json:"indexes,omitempty"`
	// TTLAttribute is the attribute that Sweep reads, in epoch seconds; empty
	// means that items do not expire.
	TTLAttribute string `json:"ttl,omitempty"`
	// StreamView is "KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE" or
	// "NEW_AND_OLD_IMAGES"; empty means no stream.
	StreamView string `json:"stream,omitempty"`
}

const (
	projectAll     = "ALL"
	projectKeys    = "KEYS_ONLY"
	projectInclude = "INCLUDE"
	maxIndexes     = 20
)

var (
	projections = []string{projectAll, projectInclude, projectKeys}
	streamViews = []string{"NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"}
)

func (s TableSpec) schema() keySchema { return schemaOf(s.PartitionKey, s.SortKey) }

func schemaOf(partition, sort KeyAttribute) keySchema {
	return keySchema{
		partition: keyAttribute{partition.Name, kind(partition.Type)},
		sort:      keyAttribute{sort.Name, kind(sort.Type)},
	}
}

// normalized fills in the default projection and puts lists into one order, so
// that equal tables have equal specs.
func (s TableSpec) normalized() TableSpec {
	indexes := s.Indexes
	s.Indexes = nil
	for _, ix := range indexes {
		if ix.Projection == "" {
			ix.Projection = projectAll
		}
		ix.NonKeyAttributes = slices.Sorted(slices.Values(ix.NonKeyAttributes))
		s.Indexes = append(s.Indexes, ix)
	}
	slices.SortFunc(s.Indexes, func(a, b IndexSpec) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// validate checks a spec given in Go. Requests go through the API's own checks
// first, which have the service's wording.
func (s TableSpec) validate() error {
	var errs []error
	report := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	types := map[string]string{}
	check := func(where string, k KeyAttribute) {
		switch {
		case k.Name == "":
			report("%s has no name", where)
		case k.Type != "S" && k.Type != "N" && k.Type != "B":
			report("%s %q has type %q; want S, N or B", where, k.Name, k.Type)
		case types[k.Name] != "" && types[k.Name] != k.Type:
			report("%s %q is %s here and %s elsewhere", where, k.Name, k.Type, types[k.Name])
		}
		types[k.Name] = k.Type
	}
	var c constraints
	if !c.name("tableName", s.Name, 3) {
		report("the table name %q must have 3 to 255 of the characters a-z A-Z 0-9 _ . -", s.Name)
	}
	check("partition key", s.PartitionKey)
	if s.SortKey != (KeyAttribute{}) {
		check("sort key", s.SortKey)
	}
	seen := map[string]bool{}
	for _, ix := range s.Indexes {
		if !c.name("indexName", ix.Name, 3) || seen[ix.Name] {
			report("index name %q is invalid or used twice", ix.Name)
		}
		seen[ix.Name] = true
		check("partition key of index "+ix.Name, ix.PartitionKey)
		if ix.SortKey != (KeyAttribute{}) {
			check("sort key of index "+ix.Name, ix.SortKey)
		}
		if ix.Projection != "" && !slices.Contains(projections, ix.Projection) {
			report("index %s has projection %q; want ALL, KEYS_ONLY or INCLUDE", ix.Name, ix.Projection)
		}
		if (ix.Projection == projectInclude) != (len(ix.NonKeyAttributes) > 0) {
			report("index %s: NonKeyAttributes belong to projection INCLUDE, and it needs some", ix.Name)
		}
	}
	if len(s.Indexes) > maxIndexes {
		report("%d indexes; DynamoDB allows %d", len(s.Indexes), maxIndexes)
	}
	if s.StreamView != "" && !slices.Contains(streamViews, s.StreamView) {
		report("stream view %q is not one of %v", s.StreamView, streamViews)
	}
	return errors.Join(errs...)
}
