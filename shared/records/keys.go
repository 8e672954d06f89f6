package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"claimcheck.dev/claimcheck/shared/access"
	"claimcheck.dev/claimcheck/shared/files"
)

func keyKey(id string) item { return key("key#"+id, "key") }

func keysOf(account string) string { return "keys#" + account }

// PutKey implements access.Keys.
func (t *Table) PutKey(ctx context.Context, k access.Key) error {
	token := files.RandomText(tokenLength)
	row := keyKey(k.ID)
	row["list_pk"] = text(keysOf(k.Account))
	row["list_sk"] = text(stamp(k.CreatedAt) + "#" + k.ID)
	row["write"] = text(token)
	row["account"] = text(k.Account)
	row["actor"] = text(k.Actor)
	row["scopes"] = scopeList(k.Scopes)
	row["secret_hash"] = binary(k.SecretHash)
	row["created_at"] = epoch(k.CreatedAt)
	row.setTime("expires_at", k.ExpiresAt)
	row.setTime("revoked_at", k.RevokedAt)
	condition := "attribute_not_exists(#pk)"
	_, err := t.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &t.name,
		Item:                                row,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names(condition),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var exists *types.ConditionalCheckFailedException
	if errors.As(err, &exists) {
		if wrote(exists.Item, token) {
			return nil
		}
		return fmt.Errorf("storing key %s: there is a key with this id", k.ID)
	}
	return explain("storing key "+k.ID, err)
}

// Key implements access.KeyReader, with strong consistency.
func (t *Table) Key(ctx context.Context, id string) (access.Key, error) {
	row, err := t.get(ctx, keyKey(id))
	if err != nil {
		return access.Key{}, explain("reading key "+id, err)
	}
	if row == nil {
		return access.Key{}, access.ErrKeyNotFound
	}
	return decodeKey(row)
}

// ListKeys implements access.Keys. It reads an index, which follows the table within moments.
func (t *Table) ListKeys(ctx context.Context, account string) ([]access.Key, error) {
	condition := "#list_pk = :pk"
	keys := []access.Key{}
	err := t.query(ctx, dynamodb.QueryInput{
		IndexName:                 aws.String(byAccount),
		KeyConditionExpression:    &condition,
		ExpressionAttributeNames:  names(condition),
		ExpressionAttributeValues: item{":pk": text(keysOf(account))},
		ScanIndexForward:          aws.Bool(false),
	}, func(row item) (bool, error) {
		k, err := decodeKey(row)
		keys = append(keys, k)
		return true, err
	})
	if err != nil {
		return nil, explain("listing the keys of "+account, err)
	}
	return keys, nil
}

// RevokeKey implements access.Keys.
func (t *Table) RevokeKey(ctx context.Context, account, id string, now time.Time) error {
	change := "SET #revoked_at = if_not_exists(#revoked_at, :now)"
	condition := "#account = :account"
	_, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &t.name,
		Key:                       keyKey(id),
		UpdateExpression:          &change,
		ConditionExpression:       &condition,
		ExpressionAttributeNames:  names(change, condition),
		ExpressionAttributeValues: item{":now": epoch(now), ":account": text(account)},
	})
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return access.ErrKeyNotFound
	}
	return explain("revoking key "+id, err)
}

func scopeList(scopes []files.Scope) types.AttributeValue {
	list := make([]types.AttributeValue, len(scopes))
	for i, s := range scopes {
		list[i] = text(string(s))
	}
	return &types.AttributeValueMemberL{Value: list}
}

func decodeKey(row item) (access.Key, error) {
	r := reader{row: row}
	k := access.Key{
		ID:         strings.TrimPrefix(r.text("pk"), "key#"),
		Account:    r.text("account"),
		Actor:      r.text("actor"),
		Scopes:     r.scopes("scopes"),
		SecretHash: r.binary("secret_hash"),
		CreatedAt:  r.time("created_at"),
		ExpiresAt:  r.maybeTime("expires_at"),
		RevokedAt:  r.maybeTime("revoked_at"),
	}
	if r.err != nil {
		return access.Key{}, fmt.Errorf("decoding the row of key %s: %w", k.ID, r.err)
	}
	return k, nil
}

func (r *reader) scopes(name string) []files.Scope {
	v, ok := r.row[name].(*types.AttributeValueMemberL)
	if !ok {
		r.fail(name, "a list")
		return nil
	}
	out := make([]files.Scope, len(v.Value))
	for i, e := range v.Value {
		s, ok := e.(*types.AttributeValueMemberS)
		if !ok {
			r.fail(name, "a list of texts")
			return nil
		}
		out[i] = files.Scope(s.Value)
	}
	return out
}
