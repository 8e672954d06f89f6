package queue

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// client is the SDK's client on a fresh server.
func client(t *testing.T) (*sqs.Client, *fixture) {
	f := open(t)
	server := httptest.NewServer(f.Server)
	t.Cleanup(server.Close)
	return sqs.New(sqs.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL),
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
	}), f
}

// TestSDK drives every operation with the SDK, which checks the MD5 sums itself.
func TestSDK(t *testing.T) {
	t.Parallel()
	c, f := client(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("work")})
	must(err)
	url := found.QueueUrl
	if *url != "http://127.0.0.1:1/123456789012/work" {
		t.Errorf("the URL is %s", *url)
	}
	_, err = c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("one"), MessageAttributes: map[string]types.MessageAttributeValue{
		"s": {DataType: aws.String("String"), StringValue: aws.String("é")},
		"b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
	}})
	must(err)
	batch, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: []types.SendMessageBatchRequestEntry{
		{Id: aws.String("x"), MessageBody: aws.String("two")},
		{Id: aws.String("y"), MessageBody: aws.String("three"), DelaySeconds: 5},
		{Id: aws.String("z"), MessageBody: aws.String("four"), DelaySeconds: 901},
	}})
	must(err)
	if len(batch.Successful) != 2 || len(batch.Failed) != 1 || *batch.Failed[0].Id != "z" || *batch.Failed[0].Code != "InvalidParameterValue" {
		t.Errorf("the batch gave %+v", batch)
	}
	list, err := c.ListQueues(ctx, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("w")})
	must(err)
	if len(list.QueueUrls) != 1 || list.QueueUrls[0] != *url {
		t.Errorf("queues %v", list.QueueUrls)
	}
	got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	must(err)
	if len(got.Messages) != 2 || *got.Messages[0].Body != "one" || string(got.Messages[0].MessageAttributes["b"].BinaryValue) != "\x00\xff" ||
		*got.Messages[0].MessageAttributes["s"].StringValue != "é" || got.Messages[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("received %+v", got.Messages)
	}
	attributes, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{"All"}})
	must(err)
	for name, want := range map[string]string{
		"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "1",
		"VisibilityTimeout": "30", "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:work",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dead","maxReceiveCount":2}`,
	} {
		if attributes.Attributes[name] != want {
			t.Errorf("%s is %q, want %q", name, attributes.Attributes[name], want)
		}
	}
	_, err = c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: got.Messages[1].ReceiptHandle, VisibilityTimeout: 0})
	must(err)
	_, err = c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: got.Messages[0].ReceiptHandle})
	must(err)
	f.counts("work", Counts{Visible: 1, Delayed: 1})
	deleted, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("x"), ReceiptHandle: got.Messages[1].ReceiptHandle}, {Id: aws.String("y"), ReceiptHandle: aws.String("bad")}}})
	must(err)
	if len(deleted.Successful) != 1 || len(deleted.Failed) != 1 || *deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("deleting gave %+v", deleted)
	}
	_, err = c.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: url})
	must(err)
	f.counts("work", Counts{})

	dead := aws.String(strings.Replace(*url, "work", "dead", 1))
	sources, err := c.ListDeadLetterSourceQueues(ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: dead})
	must(err)
	if len(sources.QueueUrls) != 1 || sources.QueueUrls[0] != *url {
		t.Errorf("dead letters come from %v", sources.QueueUrls)
	}
	f.send("dead", "again")
	task, err := c.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{
		SourceArn: aws.String("arn:aws:sqs:eu-west-1:123456789012:dead"), DestinationArn: aws.String("arn:aws:sqs:eu-west-1:123456789012:work")})
	must(err)
	if task.TaskHandle == nil || *task.TaskHandle == "" {
		t.Error("the task has no handle")
	}
	f.want("moved", f.receive("work", 1), "again")
}

func TestSDKErrors(t *testing.T) {
	t.Parallel()
	c, _ := client(t)
	ctx := t.Context()
	work := aws.String("http://127.0.0.1:1/123456789012/work")
	entries := func(n int, id func(int) string) []types.SendMessageBatchRequestEntry {
		out := []types.SendMessageBatchRequestEntry{}
		for i := range n {
			out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(id(i)), MessageBody: aws.String("b")})
		}
		return out
	}
	letter := func(i int) string { return string(rune('a' + i)) }
	tests := []struct {
		code string
		call func() error
	}{
		{"AWS.SimpleQueueService.NonExistentQueue", func() error {
			_, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
			var typed *types.QueueDoesNotExist
			if !errors.As(err, &typed) {
				t.Errorf("%v is no QueueDoesNotExist", err)
			}
			return err
		}},
		{"ReceiptHandleIsInvalid", func() error {
			_, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: work, ReceiptHandle: aws.String("x")})
			return err
		}},
		{"InvalidParameterValue", func() error {
			_, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: work, MaxNumberOfMessages: 11})
			return err
		}},
		{"InvalidParameterValue", func() error {
			_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: work, MessageBody: aws.String(strings.Repeat("x", MaxMessageBytes+1))})
			return err
		}},
		{"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", func() error {
			_, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: work, Entries: entries(11, letter)})
			return err
		}},
		{"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", func() error {
			_, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: work, Entries: entries(2, func(int) string { return "a" })})
			return err
		}},
		{"AWS.SimpleQueueService.EmptyBatchRequest", func() error {
			_, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: work, Entries: entries(0, letter)})
			return err
		}},
		{"InvalidAction", func() error {
			_, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("new")})
			return err
		}},
	}
	for _, test := range tests {
		err := test.call()
		var e smithy.APIError
		if !errors.As(err, &e) || e.ErrorCode() != test.code {
			t.Errorf("got %v, want %s", err, test.code)
		}
	}
}

// TestAttributesMD5 is the example of the SQS developer guide's algorithm, worked
// out by hand: 4-byte lengths, names in order, a transport byte before values.
func TestAttributesMD5(t *testing.T) {
	t.Parallel()
	plain := "\x00\x00\x00\x01a\x00\x00\x00\x06Binary\x02\x00\x00\x00\x02\x00\xff" +
		"\x00\x00\x00\x01b\x00\x00\x00\x06String\x01\x00\x00\x00\x01x"
	got := attributesMD5(map[string]Attribute{"b": {"String", "x"}, "a": {"Binary", "AP8="}})
	if want := md5Hex([]byte(plain)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNotTheProtocol(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", "/", nil),
		httptest.NewRequest("POST", "/", strings.NewReader("Action=SendMessage")),
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if w.Code != 400 {
			t.Errorf("%s got %d", r.Method, w.Code)
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader("{"))
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "SerializationException") {
		t.Errorf("broken JSON got %d %s", w.Code, w.Body)
	}
}
