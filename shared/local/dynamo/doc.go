// Package dynamo is a small DynamoDB for laptops and tests. It speaks the JSON
// 1.0 protocol, so the AWS SDK needs nothing but an endpoint:
//
//	server, err := dynamo.Open(dynamo.Options{Dir: ".local/dynamo"})
//	...
//	err = server.CreateTable(dynamo.TableSpec{
//		Name:         "files",
//		PartitionKey: dynamo.KeyAttribute{Name: "pk", Type: "S"},
//		SortKey:      dynamo.KeyAttribute{Name: "sk", Type: "S"},
//		TTLAttribute: "ttl",
//		StreamView:   "NEW_AND_OLD_IMAGES",
//	})
//	http.Serve(listener, server) // AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:...
//
// # Scope
//
// CreateTable, DescribeTable, ListTables, DeleteTable; GetItem, PutItem,
// UpdateItem, DeleteItem; Query and Scan on tables and global secondary
// indexes; BatchGetItem, BatchWriteItem; TransactWriteItems, TransactGetItems;
// UpdateTimeToLive, DescribeTimeToLive; and the DynamoDB Streams API. All
// expressions, with their limits and messages. Any other operation is answered
// with UnknownOperationException. Local secondary indexes and the parameters
// that expressions replaced (Expected, AttributeUpdates, KeyConditions and so
// on) are refused by name, never ignored. Credentials are not checked.
//
// # What is the same, and what is not
//
// The rules are those of Amazon's documentation: conditions, 38-digit numbers,
// item size and key size, paging, capacity units, cancellation reasons,
// ReturnValuesOnConditionCheckFailure, request tokens that protect a
// transaction for ten minutes. Messages are the service's own wording where it
// is known. Different are:
//
//   - Reads and indexes are always up to date; "eventually consistent" only
//     halves the price. Code that needs ConsistentRead will not be caught here.
//   - There is no throttling and no transaction ever conflicts, because writes
//     take turns. SetFaults makes both happen on request.
//   - A sum with more than 38 digits is an error.
//   - Tables are active at once. A stream has one shard.
//
// # How it works
//
// One lock guards all tables. A write is a plan: a parsed condition and a pure
// function from the old item to the new one. All plans of a request are checked
// first; then they become one line of the journal and are applied to memory.
// Items are never changed in place, so answers, indexes and stream records
// share them. See journal.go for what survives what.
//
// Items expire when the owner of the server calls Sweep; until then they are
// readable, as on DynamoDB. ReadStream and StreamNotify hand the stream to Go
// code in the form of Lambda events.
package dynamo
