// Command typ does the work of reserve-upload as one would write it with the AWS SDK for Go and no thought of start-up
// time: the default configuration, one client per service, default build flags. Its rows have the names that
// Claimcheck's have, so that both can be asked the same questions.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

var (
	db        *dynamodb.Client
	presigner *s3.PresignClient

	table           = os.Getenv("TABLE_NAME")
	bucket          = os.Getenv("BUCKET_NAME")
	urlSeconds      = number("UPLOAD_URL_SECONDS")
	fileSeconds     = number("FILE_TTL_SECONDS")
	maxBytes        = number("ACCOUNT_MAX_LIVE_BYTES")
	maxReservations = number("ACTOR_MAX_RESERVATIONS")
)

func number(name string) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		log.Fatalf("%s must be a number", name)
	}
	return n
}

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	db = dynamodb.NewFromConfig(cfg)

	role := cfg.Copy()
	role.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), os.Getenv("PRESIGN_ROLE_ARN"),
		func(o *stscreds.AssumeRoleOptions) { o.Duration = time.Hour }))
	// By itself the SDK fetches a session when it first needs one.
	if os.Getenv("SESSION") == "early" {
		if _, err := role.Credentials.Retrieve(ctx); err != nil {
			log.Fatal(err)
		}
	}
	presigner = s3.NewPresignClient(s3.NewFromConfig(role))
	lambda.Start(handle)
}

type draft struct {
	Filename    string            `json:"filename"`
	ContentType string            `json:"content_type"`
	Size        int64             `json:"size_bytes"`
	Metadata    map[string]string `json:"metadata"`
}

type upload struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

type reservation struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Upload upload `json:"upload"`
}

func handle(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	account, actor, err := caller(ctx, event.Headers["authorization"])
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	if account == "" {
		return answer(401, map[string]string{"message": "no valid key"})
	}
	var d draft
	if err := json.Unmarshal([]byte(event.Body), &d); err != nil {
		return answer(400, map[string]string{"message": "the body must be JSON"})
	}
	if d.Filename == "" || d.ContentType == "" || d.Size < 1 {
		return answer(400, map[string]string{"message": "filename, content_type and size_bytes are required"})
	}
	id := "f_" + randomHex(13)
	if err := reserve(ctx, id, account, actor, d); err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	signed, err := presigner.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket:        &bucket,
		Key:           aws.String("staging/" + id),
		ContentType:   &d.ContentType,
		ContentLength: &d.Size,
		IfNoneMatch:   aws.String("*"),
	}, s3.WithPresignExpires(time.Duration(urlSeconds)*time.Second))
	if err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	headers := map[string]string{}
	for name := range signed.SignedHeader {
		if name != "Host" {
			headers[name] = signed.SignedHeader.Get(name)
		}
	}
	return answer(201, reservation{id, "reserved", upload{signed.Method, signed.URL, headers}})
}

func answer(status int, body any) (events.APIGatewayV2HTTPResponse, error) {
	text, err := json.Marshal(body)
	return events.APIGatewayV2HTTPResponse{
		StatusCode: status, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(text),
	}, err
}

var bearer = regexp.MustCompile(`^Bearer ck_([a-z0-9]{16})_([a-z0-9]{40})$`)

// caller returns the account and actor of a key that may write files, "" for any other.
func caller(ctx context.Context, authorization string) (account, actor string, _ error) {
	parts := bearer.FindStringSubmatch(authorization)
	if parts == nil {
		return "", "", nil
	}
	out, err := db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: row{"pk": s("key#" + parts[1]), "sk": s("key")}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", "", err
	}
	if out.Item == nil || out.Item["revoked_at"] != nil {
		return "", "", nil
	}
	hash := sha256.Sum256([]byte(parts[2]))
	if subtle.ConstantTimeCompare(hash[:], out.Item["secret_hash"].(*types.AttributeValueMemberB).Value) != 1 {
		return "", "", nil
	}
	for _, scope := range out.Item["scopes"].(*types.AttributeValueMemberL).Value {
		if scope.(*types.AttributeValueMemberS).Value == "files:write" {
			return out.Item["account"].(*types.AttributeValueMemberS).Value, out.Item["actor"].(*types.AttributeValueMemberS).Value, nil
		}
	}
	return "", "", nil
}

type row = map[string]types.AttributeValue

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func n(i int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(i, 10)}
}

func reserve(ctx context.Context, id, account, actor string, d draft) error {
	now := time.Now().Unix()
	expires := now + fileSeconds
	metadata := row{}
	for k, v := range d.Metadata {
		metadata[k] = s(v)
	}
	_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		ClientRequestToken: aws.String(randomHex(16)),
		TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName:           &table,
				ConditionExpression: aws.String("attribute_not_exists(pk)"),
				Item: row{
					"pk": s(id), "sk": s("file"), "account": s(account), "actor": s(actor), "state": s("reserved"),
					"filename": s(d.Filename), "content_type": s(d.ContentType), "size": n(d.Size), "metadata": &types.AttributeValueMemberM{Value: metadata},
					"list_pk": s("files#" + account), "list_sk": s(fmt.Sprintf("%012d#%s", now, id)),
					"created_at": n(now), "expires_at": n(expires), "ttl": n(expires + 48*3600),
				},
			}},
			{Put: &types.Put{
				TableName: &table,
				Item: row{
					"pk": s("hold#" + account), "sk": s(fmt.Sprintf("%012d#%s", expires, id)), "due_pk": s(strconv.FormatInt(expires/60, 10)),
					"bytes": n(d.Size), "actor": s(actor),
				},
			}},
			{Update: &types.Update{
				TableName:                 &table,
				Key:                       row{"pk": s("account#" + account), "sk": s("usage")},
				UpdateExpression:          aws.String("ADD #bytes :n, files :one"),
				ConditionExpression:       aws.String("attribute_not_exists(#bytes) OR #bytes <= :room"),
				ExpressionAttributeNames:  map[string]string{"#bytes": "bytes"},
				ExpressionAttributeValues: row{":n": n(d.Size), ":one": n(1), ":room": n(maxBytes - d.Size)},
			}},
			{Update: &types.Update{
				TableName:                 &table,
				Key:                       row{"pk": s("account#" + account), "sk": s("actor#" + actor)},
				UpdateExpression:          aws.String("ADD reservations :one"),
				ConditionExpression:       aws.String("attribute_not_exists(reservations) OR reservations < :max"),
				ExpressionAttributeValues: row{":one": n(1), ":max": n(maxReservations)},
			}},
		},
	})
	return err
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}
