package records

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"claimcheck.dev/claimcheck/shared/awsenv"
)

// Warm opens the connection that later calls use. Meant for init, before the first request.
func (t *Table) Warm(ctx context.Context) error {
	_, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.name,
		Key:       key("warm", "warm"), // no such row: the cheapest request there is
	})
	return explain("opening the connection to the table", err)
}

// Rehearsal returns a table that does all the work of a call up to sending it, and then takes it as done: every write
// succeeds and no row is ever found. Nothing reaches DynamoDB. It is for going through a request before the first one
// comes, see startup.Warm.
func (t *Table) Rehearsal() *Table {
	options := t.client.Options()
	options.HTTPClient = awsenv.Rehearsal{}
	return New(dynamodb.New(options), t.name, Options{Sleep: t.sleep})
}
