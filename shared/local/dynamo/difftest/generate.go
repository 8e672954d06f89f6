package main

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// generator makes operations that are mostly valid and often nearly so. It
// draws from few keys, names and values, so that operations meet each other.
type generator struct {
	*rand.Rand
}

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0))}
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

type object = map[string]any

func newOperation(name string, body object) operation {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // the generator builds it from plain values
	}
	return operation{name: name, body: raw}
}

// The tables: strings and numbers as keys, indexes of each projection.
const (
	textTable   = "text"
	numberTable = "number"
)

func (g *generator) tables() []operation {
	key := func(names ...string) []object {
		out := []object{{"AttributeName": names[0], "KeyType": "HASH"}}
		if len(names) > 1 {
			out = append(out, object{"AttributeName": names[1], "KeyType": "RANGE"})
		}
		return out
	}
	define := func(pairs ...string) []object {
		var out []object
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, object{"AttributeName": pairs[i], "AttributeType": pairs[i+1]})
		}
		return out
	}
	index := func(name, projection string, keys []object, include ...string) object {
		p := object{"ProjectionType": projection}
		if len(include) > 0 {
			p["NonKeyAttributes"] = include
		}
		return object{"IndexName": name, "KeySchema": keys, "Projection": p}
	}
	return []operation{
		newOperation("CreateTable", object{
			"TableName": textTable, "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": define("pk", "S", "sk", "S", "a", "S", "b", "N"),
			"KeySchema":            key("pk", "sk"),
			"GlobalSecondaryIndexes": []object{
				index("by-a", "ALL", key("a", "b")),
				index("by-b", "KEYS_ONLY", key("b")),
				index("by-a-sk", "INCLUDE", key("a", "sk"), "c", "d"),
			},
		}),
		newOperation("CreateTable", object{
			"TableName": numberTable, "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": define("pk", "N", "sk", "N"),
			"KeySchema":            key("pk", "sk"),
		}),
	}
}

func (g *generator) next() operation {
	switch g.IntN(20) {
	case 0, 1, 2, 3:
		return g.put()
	case 4, 5, 6, 7, 8, 9:
		return g.update()
	case 10, 11:
		return g.delete()
	case 12, 13:
		return g.get()
	case 14, 15, 16:
		return g.query()
	case 17:
		return g.scan()
	case 18:
		return g.batchWrite()
	default:
		return g.batchGet()
	}
}

var numbers = []string{"0", "1", "2", "3", "-1", "10", "-10", "2.5", "-0.5", "100", "1e2", "007", "1.50", "-0",
	"0.00001", "-123456.789", "1e20"}

// extremes are only used as keys: dynalite has sums of any length.
var extremes = []string{"12345678901234567890123456789012345678", "-12345678901234567890123456789012345678",
	"9.9999999999999999999999999999999999999E125", "-9.9999999999999999999999999999999999999E125", "1E-130", "-1E-130"}

var badNumbers = []string{"", "abc", "1e126", "-1e126", "1e-131", "123456789012345678901234567890123456789", "1..2", "--1", "0x10"}

var texts = []string{"x", "y", "xy", "xyz", "yx", "a b", "é", "日本", "0", "00", "Z"}

func (g *generator) number() string { return numbers[g.IntN(len(numbers))] }
func (g *generator) keyNumber() string {
	if g.chance(3) {
		return extremes[g.IntN(len(extremes))]
	}
	return g.number()
}

// text is never empty: dynalite takes "" for absent in some places.
func (g *generator) text() string { return texts[g.IntN(len(texts))] }

func (g *generator) bytes() string {
	b := make([]byte, 1+g.IntN(3)) // dynalite takes empty binary for absent
	for i := range b {
		b[i] = byte(pick(g, 0, 1, 127, 128, 255))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// distinct draws up to n different texts.
func (g *generator) distinct(n int, draw func() string) []string {
	out := []string{draw()}
	for range g.IntN(n) {
		s := draw()
		same := false
		for _, o := range out {
			same = same || o == s
		}
		if !same {
			out = append(out, s)
		}
	}
	return out
}

func (g *generator) small() string { return strconv.Itoa(g.IntN(6)) }

func (g *generator) value(depth int) object {
	n := 10
	if depth <= 0 {
		n = 8
	}
	switch g.IntN(n) {
	case 0, 1:
		return object{"S": g.text()}
	case 2, 3:
		return object{"N": g.number()}
	case 4:
		return object{"B": g.bytes()}
	case 5:
		return pick(g, object{"BOOL": true}, object{"NULL": true}, object{"M": object{}}, object{"L": []object{}})
	case 6:
		return object{"SS": g.distinct(3, g.text)}
	case 7:
		if g.chance(2) {
			return object{"BS": g.distinct(3, g.bytes)}
		}
		return object{"NS": g.distinct(3, g.small)}
	case 8:
		l := []object{}
		for range g.IntN(4) {
			l = append(l, g.value(depth-1))
		}
		return object{"L": l}
	default:
		m := object{}
		for range g.IntN(4) {
			m[pick(g, "a", "b", "c", "x-y")] = g.value(depth - 1)
		}
		return object{"M": m}
	}
}

// badValue breaks a rule of attribute values.
func (g *generator) badValue() object {
	return pick(g,
		object{}, object{"SS": []string{}}, object{"NS": []string{}}, object{"BS": []string{}},
		object{"NULL": false}, object{"S": "x", "N": "1"}, object{"N": badNumbers[g.IntN(len(badNumbers))]},
		object{"SS": []string{"x", "x"}}, object{"BS": []string{"AA==", "AA=="}}, object{"NS": []string{"1", "1"}},
		object{"L": []object{{"N": "abc"}}}, object{"M": object{"a": object{"SS": []string{}}}})
}

func (g *generator) anyValue() object {
	if g.chance(40) {
		return g.badValue()
	}
	return g.value(2)
}

// table is sometimes one that does not exist, but never an invalid name: the
// servers disagree on what else to report with it.
func (g *generator) table() string {
	if g.chance(60) {
		return "nothing"
	}
	return pick(g, textTable, textTable, textTable, numberTable)
}

func (g *generator) key(table string) object {
	if g.chance(40) {
		return pick(g,
			object{}, object{"pk": object{"S": "x"}}, object{"pk": object{"S": ""}, "sk": object{"S": "x"}},
			object{"pk": object{"S": "x"}, "sk": object{"S": ""}}, object{"pk": object{"N": "1"}, "sk": object{"S": "x"}},
			object{"pk": object{"S": "x"}, "sk": object{"S": "x"}, "a": object{"S": "x"}})
	}
	if table == numberTable {
		return object{"pk": object{"N": pick(g, "1", "-1", "1.0", "2")}, "sk": object{"N": g.keyNumber()}}
	}
	return object{"pk": object{"S": pick(g, "p", "q")}, "sk": object{"S": g.text()}}
}

func (g *generator) item(table string) object {
	item := g.key(table)
	for range g.IntN(6) {
		switch name := pick(g, "a", "b", "c", "d", "l", "m", "n", "s"); name {
		case "a":
			item[name] = g.indexed(object{"S": g.text()})
		case "b":
			item[name] = g.indexed(object{"N": g.number()})
		case "n":
			item[name] = object{"N": g.number()}
		default:
			item[name] = g.anyValue()
		}
	}
	return item
}

// indexed is a value for an index key: rarely of the wrong type.
func (g *generator) indexed(right object) object {
	if g.chance(30) {
		return g.value(1)
	}
	return right
}

func (g *generator) put() operation {
	table := g.table()
	body := object{"TableName": table, "Item": g.item(table)}
	g.condition(body)
	g.options(body, "NONE", "ALL_OLD", "ALL_OLD", "ALL_NEW", "WRONG")
	return newOperation("PutItem", body)
}

// delete keeps to the ReturnValues that Amazon documents for DeleteItem; dynalite
// takes all of them.
func (g *generator) delete() operation {
	table := g.table()
	body := object{"TableName": table, "Key": g.key(table)}
	g.condition(body)
	g.options(body, "NONE", "ALL_OLD", "ALL_OLD", "WRONG")
	return newOperation("DeleteItem", body)
}

func (g *generator) get() operation {
	table := g.table()
	body := object{"TableName": table, "Key": g.key(table), "ConsistentRead": g.chance(2)}
	e := g.newExpression()
	if g.chance(2) {
		body["ProjectionExpression"] = e.projection()
	}
	e.addTo(body)
	g.options(body)
	return newOperation("GetItem", body)
}

func (g *generator) options(body object, returnValues ...string) {
	if len(returnValues) > 0 && g.chance(2) {
		rv := returnValues[g.IntN(len(returnValues))]
		if rv != "WRONG" || g.chance(10) {
			body["ReturnValues"] = rv
		}
	}
	// Dynalite leaves the indexes out of the total.
	if body["TableName"] == numberTable && g.chance(2) {
		body["ReturnConsumedCapacity"] = pick(g, "TOTAL", "NONE")
	}
}

func (g *generator) condition(body object) {
	e := g.newExpression()
	if g.chance(2) {
		body["ConditionExpression"] = e.condition(2)
	}
	e.addTo(body)
}

func (g *generator) update() operation {
	table := g.table()
	body := object{"TableName": table, "Key": g.key(table)}
	e := g.newExpression()
	if !g.chance(30) {
		body["UpdateExpression"] = e.update()
	}
	if g.chance(3) {
		body["ConditionExpression"] = e.condition(1)
	}
	e.addTo(body)
	g.options(body, "NONE", "ALL_OLD", "ALL_NEW", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW", "WRONG")
	return newOperation("UpdateItem", body)
}

// query keeps to indexes without ties, because equal keys have no order.
func (g *generator) query() operation {
	table := pick(g, textTable, textTable, textTable, numberTable)
	e := g.newExpression()
	body := object{"TableName": table, "ScanIndexForward": g.chance(2)}
	partition, sort, kind := "pk", "sk", "S"
	pk := object{"S": pick(g, "p", "q")}
	if table == numberTable {
		kind = "N"
		pk = object{"N": pick(g, "1", "-1", "2")}
	} else if g.chance(3) {
		body["IndexName"] = "by-a-sk"
		partition = "a"
		pk = object{"S": g.text()}
	}
	cond := e.name(partition) + " = " + e.bind(pk)
	if g.chance(2) {
		draw := func() string {
			if g.chance(40) {
				return e.bind(e.valueOf("S", "N", "B"))
			}
			if kind == "N" {
				return e.bind(object{"N": g.keyNumber()})
			}
			return e.bind(object{"S": g.text()})
		}
		name := e.name(sort)
		switch g.IntN(8) {
		case 0:
			cond += " AND begins_with(" + name + ", " + draw() + ")"
		case 1, 2:
			cond += " AND " + name + " BETWEEN " + draw() + " AND " + draw()
		case 3:
			cond = draw() + pick(g, " < ", " >= ") + name + " AND " + cond
		default:
			cond += " AND " + name + pick(g, " = ", " < ", " <= ", " > ", " >= ") + draw()
		}
	}
	if g.chance(25) {
		cond = e.condition(1)
	}
	body["KeyConditionExpression"] = cond
	if g.chance(3) {
		body["FilterExpression"] = e.condition(1)
	}
	g.page(body, e)
	return newOperation("Query", body)
}

func (g *generator) page(body object, e *expression) {
	if body["IndexName"] == nil {
		if g.chance(3) {
			body["ProjectionExpression"] = e.projection()
		} else if g.chance(4) {
			body["Select"] = pick(g, "COUNT", "ALL_ATTRIBUTES")
		}
		if body["KeyConditionExpression"] != nil {
			if g.chance(3) {
				body["Limit"] = 1 + g.IntN(4)
			}
			if g.chance(4) {
				body["ExclusiveStartKey"] = g.key(body["TableName"].(string))
			}
		}
	}
	e.addTo(body)
	g.options(body)
}

func (g *generator) scan() operation {
	body := object{"TableName": g.table()}
	e := g.newExpression()
	if body["TableName"] == textTable && g.chance(2) {
		body["IndexName"] = pick(g, "by-a", "by-b", "by-a-sk", "none", "x")
	}
	if g.chance(2) {
		body["FilterExpression"] = e.condition(1)
	}
	g.page(body, e)
	return newOperation("Scan", body)
}

func (g *generator) batchWrite() operation {
	table := g.table()
	var writes []object
	for range g.IntN(5) {
		if g.chance(3) {
			writes = append(writes, object{"DeleteRequest": object{"Key": g.key(table)}})
		} else {
			writes = append(writes, object{"PutRequest": object{"Item": g.item(table)}})
		}
	}
	if writes == nil {
		writes = []object{}
	}
	return newOperation("BatchWriteItem", object{"RequestItems": object{table: writes}})
}

func (g *generator) batchGet() operation {
	table := g.table()
	keys := []object{}
	for range 1 + g.IntN(5) {
		keys = append(keys, g.key(table))
	}
	e := g.newExpression()
	request := object{"Keys": keys, "ConsistentRead": g.chance(2)}
	if g.chance(3) {
		request["ProjectionExpression"] = e.projection()
	}
	e.addTo(request)
	return newOperation("BatchGetItem", object{"RequestItems": object{table: request}})
}
