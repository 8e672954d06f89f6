package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sendBatch is how many messages SQS takes in one request.
const sendBatch = 10

// message is what delete-objects reads.
type message struct {
	ID string `json:"id"`
}

// sender puts file ids on the deletion queue.
type sender struct {
	client *sqs.Client
	url    string
}

// Send queues up to sendBatch ids with one request and returns the ones that were not taken.
func (s sender) Send(ctx context.Context, ids []string) (failed []string, _ error) {
	entries := make([]types.SendMessageBatchRequestEntry, len(ids))
	for i, id := range ids {
		body, err := json.Marshal(message{id})
		if err != nil {
			return nil, err
		}
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))}
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &s.url, Entries: entries})
	if err != nil {
		return nil, fmt.Errorf("sending to the deletion queue: %w", err)
	}
	for _, f := range out.Failed {
		i, err := strconv.Atoi(aws.ToString(f.Id))
		if err != nil || i < 0 || i >= len(ids) {
			return nil, fmt.Errorf("the deletion queue refused an unknown entry %q", aws.ToString(f.Id))
		}
		failed = append(failed, ids[i])
	}
	return failed, nil
}
