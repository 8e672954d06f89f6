package queue

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// apiError is an error as SQS words it.
type apiError struct {
	code, message string
	query         string // the code of the older protocol, which SDKs report
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func invalid(message string) error {
	return &apiError{"com.amazonaws.sqs#InvalidParameterValue", message, "InvalidParameterValue"}
}

// wireAttribute is a message attribute as it travels.
type wireAttribute struct {
	DataType    string  `json:"DataType"`
	StringValue *string `json:"StringValue,omitempty"`
	BinaryValue []byte  `json:"BinaryValue,omitempty"`
}

// wireEntry is one message of a batch, or the only one of SendMessage.
type wireEntry struct {
	ID                string                   `json:"Id"`
	Body              string                   `json:"MessageBody"`
	DelaySeconds      *int                     `json:"DelaySeconds"`
	MessageAttributes map[string]wireAttribute `json:"MessageAttributes"`
	ReceiptHandle     string                   `json:"ReceiptHandle"`
	VisibilityTimeout *int                     `json:"VisibilityTimeout"`
}

// request has the fields of every operation served.
type request struct {
	wireEntry
	QueueURL                    string      `json:"QueueUrl"`
	QueueName                   string      `json:"QueueName"`
	QueueNamePrefix             string      `json:"QueueNamePrefix"`
	Entries                     []wireEntry `json:"Entries"`
	MaxNumberOfMessages         *int        `json:"MaxNumberOfMessages"`
	WaitTimeSeconds             int         `json:"WaitTimeSeconds"`
	AttributeNames              []string    `json:"AttributeNames"`
	MessageSystemAttributeNames []string    `json:"MessageSystemAttributeNames"`
	MessageAttributeNames       []string    `json:"MessageAttributeNames"`
	SourceARN                   string      `json:"SourceArn"`
	DestinationARN              string      `json:"DestinationArn"`
}

type object = map[string]any

// operations are the calls served; anything else is UnknownOperationException.
var operations = map[string]func(s *Server, r *http.Request, in *request) (any, error){
	"SendMessage":                (*Server).wireSend,
	"SendMessageBatch":           (*Server).wireSendBatch,
	"ReceiveMessage":             (*Server).wireReceive,
	"DeleteMessage":              (*Server).wireDelete,
	"DeleteMessageBatch":         (*Server).wireDeleteBatch,
	"ChangeMessageVisibility":    (*Server).wireVisibility,
	"GetQueueUrl":                (*Server).wireURL,
	"GetQueueAttributes":         (*Server).wireAttributes,
	"ListQueues":                 (*Server).wireList,
	"ListDeadLetterSourceQueues": (*Server).wireSources,
	"PurgeQueue":                 (*Server).wirePurge,
	"StartMessageMoveTask":       (*Server).wireMove,
}

// ServeHTTP serves the SQS protocol, AWS JSON 1.0. Signatures are not checked: the
// server listens on loopback.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	op, ok := operations[name]
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Requestid", newID())
	if !ok || r.Method != http.MethodPost {
		fail(w, &apiError{"com.amazon.coral.service#UnknownOperationException", "The local stack does not serve the SQS operation " + strconv.Quote(name) + ".", "InvalidAction"})
		return
	}
	var in request
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*MaxMessageBytes))
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		fail(w, &apiError{"com.amazon.coral.service#SerializationException", "The request is not JSON of the SQS protocol.", "MalformedInput"})
		return
	}
	out, err := op(s, r, &in)
	if err != nil {
		fail(w, err)
		return
	}
	json.NewEncoder(w).Encode(out)
}

func fail(w http.ResponseWriter, err error) {
	var e *apiError
	status := http.StatusBadRequest
	switch {
	case errors.As(err, &e):
	case errors.Is(err, ErrNoQueue):
		e = &apiError{"com.amazonaws.sqs#QueueDoesNotExist", "The specified queue does not exist.", "AWS.SimpleQueueService.NonExistentQueue"}
	case errors.Is(err, ErrNoReceipt):
		e = &apiError{"com.amazonaws.sqs#ReceiptHandleIsInvalid", "The input receipt handle is invalid.", "ReceiptHandleIsInvalid"}
	default:
		status = http.StatusInternalServerError
		e = &apiError{"com.amazonaws.sqs#InternalFailure", err.Error(), "InternalFailure"}
	}
	w.Header().Set("X-Amzn-Query-Error", e.query+";Sender")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"__type": e.code, "message": e.message})
}

func queueOf(in *request) string { return in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:] }

// seconds reads an optional duration; absent is -1, which means the queue's own.
func seconds(v *int, limit int, name string) (time.Duration, error) {
	if v == nil {
		return -1, nil
	}
	if *v < 0 || *v > limit {
		return 0, invalid("Value " + strconv.Itoa(*v) + " for parameter " + name + " is invalid. Reason: Must be between 0 and " + strconv.Itoa(limit) + ".")
	}
	return time.Duration(*v) * time.Second, nil
}

func (s *Server) sendEntry(queue string, e wireEntry) (object, error) {
	if e.Body == "" {
		return nil, &apiError{"com.amazonaws.sqs#MissingParameter", "The request must contain the parameter MessageBody.", "MissingParameter"}
	}
	if e.size() > MaxMessageBytes {
		return nil, invalid("One or more parameters are invalid. Reason: Message must be shorter than " + strconv.Itoa(MaxMessageBytes) + " bytes.")
	}
	delay, err := seconds(e.DelaySeconds, 900, "DelaySeconds")
	if err != nil {
		return nil, err
	}
	attributes := map[string]Attribute{}
	for name, a := range e.MessageAttributes {
		v := Attribute{DataType: a.DataType}
		if strings.HasPrefix(a.DataType, "Binary") {
			v.Value = base64.StdEncoding.EncodeToString(a.BinaryValue)
		} else if a.StringValue != nil {
			v.Value = *a.StringValue
		}
		if v.DataType == "" || v.Value == "" {
			return nil, invalid("The message attribute '" + name + "' must contain a type and a non-empty value.")
		}
		attributes[name] = v
	}
	id, err := s.Send(queue, e.Body, attributes, delay)
	if err != nil {
		return nil, err
	}
	out := object{"MessageId": id, "MD5OfMessageBody": md5Hex([]byte(e.Body))}
	if len(attributes) > 0 {
		out["MD5OfMessageAttributes"] = attributesMD5(attributes)
	}
	return out, nil
}

func (e wireEntry) size() int {
	n := len(e.Body)
	for name, a := range e.MessageAttributes {
		n += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			n += len(*a.StringValue)
		}
	}
	return n
}

func (s *Server) wireSend(_ *http.Request, in *request) (any, error) {
	return s.sendEntry(queueOf(in), in.wireEntry)
}

// batch runs one operation per entry, with the rules every batch call has.
func batch(in *request, one func(wireEntry) (object, error)) (any, error) {
	if len(in.Entries) == 0 {
		return nil, &apiError{"com.amazonaws.sqs#EmptyBatchRequest", "There should be at least one entry in the request.", "AWS.SimpleQueueService.EmptyBatchRequest"}
	}
	if len(in.Entries) > 10 {
		return nil, &apiError{"com.amazonaws.sqs#TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"}
	}
	seen, size := map[string]bool{}, 0
	for _, e := range in.Entries {
		if seen[e.ID] {
			return nil, &apiError{"com.amazonaws.sqs#BatchEntryIdsNotDistinct", "Id " + e.ID + " repeated.", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"}
		}
		seen[e.ID] = true
		size += e.size()
	}
	if size > MaxMessageBytes {
		return nil, &apiError{"com.amazonaws.sqs#BatchRequestTooLong", "Batch requests cannot be longer than " + strconv.Itoa(MaxMessageBytes) + " bytes.", "AWS.SimpleQueueService.BatchRequestTooLong"}
	}
	good, bad := []object{}, []object{}
	for _, e := range in.Entries {
		out, err := one(e)
		if errors.Is(err, ErrNoQueue) {
			return nil, err
		}
		if err != nil {
			code, message := "InternalFailure", err.Error()
			var known *apiError
			switch {
			case errors.As(err, &known):
				code, message = known.query, known.message
			case errors.Is(err, ErrNoReceipt):
				code, message = "ReceiptHandleIsInvalid", "The input receipt handle is invalid."
			}
			bad = append(bad, object{"Id": e.ID, "Code": code, "Message": message, "SenderFault": code != "InternalFailure"})
			continue
		}
		if out == nil {
			out = object{}
		}
		out["Id"] = e.ID
		good = append(good, out)
	}
	return object{"Successful": good, "Failed": bad}, nil
}

func (s *Server) wireSendBatch(_ *http.Request, in *request) (any, error) {
	if _, err := s.Spec(queueOf(in)); err != nil {
		return nil, err
	}
	return batch(in, func(e wireEntry) (object, error) { return s.sendEntry(queueOf(in), e) })
}

func (s *Server) wireReceive(r *http.Request, in *request) (any, error) {
	limit := 1
	if in.MaxNumberOfMessages != nil {
		limit = *in.MaxNumberOfMessages
	}
	if limit < 1 || limit > 10 {
		return nil, invalid("Value " + strconv.Itoa(limit) + " for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")
	}
	visibility, err := seconds(in.VisibilityTimeout, 43200, "VisibilityTimeout")
	if err != nil {
		return nil, err
	}
	wait, err := seconds(&in.WaitTimeSeconds, 20, "WaitTimeSeconds")
	if err != nil {
		return nil, err
	}
	messages, err := s.Receive(r.Context(), queueOf(in), limit, visibility, wait)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range append(in.AttributeNames, in.MessageSystemAttributeNames...) {
		wanted[name] = true
	}
	out := []object{}
	for _, m := range messages {
		v := object{"MessageId": m.ID, "ReceiptHandle": m.Receipt, "Body": m.Body, "MD5OfBody": md5Hex([]byte(m.Body))}
		system := map[string]string{}
		for name, value := range s.SystemAttributes(m) {
			if wanted["All"] || wanted[name] {
				system[name] = value
			}
		}
		if len(system) > 0 {
			v["Attributes"] = system
		}
		if chosen := choose(m.Attributes, in.MessageAttributeNames); len(chosen) > 0 {
			v["MessageAttributes"] = wireAttributes(chosen)
			v["MD5OfMessageAttributes"] = attributesMD5(chosen)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return object{}, nil
	}
	return object{"Messages": out}, nil
}

// SystemAttributes are the attributes that SQS itself gives a received message.
func (s *Server) SystemAttributes(m Message) map[string]string {
	out := map[string]string{
		"ApproximateReceiveCount":          strconv.Itoa(m.Receives),
		"SentTimestamp":                    strconv.FormatInt(m.Sent.UnixMilli(), 10),
		"SenderId":                         s.opt.AccountID,
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.FirstReceived.UnixMilli(), 10),
	}
	if m.Source != "" {
		out["DeadLetterQueueSourceArn"] = s.ARN(m.Source)
	}
	return out
}

// choose picks attributes by name, by prefix (`name.*`) or all of them.
func choose(all map[string]Attribute, names []string) map[string]Attribute {
	out := map[string]Attribute{}
	for name, a := range all {
		for _, want := range names {
			prefix, isPrefix := strings.CutSuffix(want, ".*")
			if want == "All" || want == name || isPrefix && strings.HasPrefix(name, prefix) {
				out[name] = a
			}
		}
	}
	return out
}

func wireAttributes(all map[string]Attribute) map[string]wireAttribute {
	out := map[string]wireAttribute{}
	for name, a := range all {
		v := wireAttribute{DataType: a.DataType}
		if strings.HasPrefix(a.DataType, "Binary") {
			v.BinaryValue, _ = base64.StdEncoding.DecodeString(a.Value) // encoded by sendEntry
		} else {
			v.StringValue = &a.Value
		}
		out[name] = v
	}
	return out
}

func (s *Server) wireDelete(_ *http.Request, in *request) (any, error) {
	return object{}, s.Delete(queueOf(in), in.ReceiptHandle)
}

func (s *Server) wireDeleteBatch(_ *http.Request, in *request) (any, error) {
	return batch(in, func(e wireEntry) (object, error) { return nil, s.Delete(queueOf(in), e.ReceiptHandle) })
}

func (s *Server) wireVisibility(_ *http.Request, in *request) (any, error) {
	d, err := seconds(in.VisibilityTimeout, 43200, "VisibilityTimeout")
	if err != nil {
		return nil, err
	}
	if d < 0 {
		return nil, &apiError{"com.amazonaws.sqs#MissingParameter", "The request must contain the parameter VisibilityTimeout.", "MissingParameter"}
	}
	return object{}, s.SetVisibility(queueOf(in), in.ReceiptHandle, d)
}

func (s *Server) wireURL(_ *http.Request, in *request) (any, error) {
	if _, err := s.Spec(in.QueueName); err != nil {
		return nil, err
	}
	return object{"QueueUrl": s.URL(in.QueueName)}, nil
}

func (s *Server) wireAttributes(_ *http.Request, in *request) (any, error) {
	name := queueOf(in)
	spec, err := s.Spec(name)
	if err != nil {
		return nil, err
	}
	counts, err := s.Counts(name)
	if err != nil {
		return nil, err
	}
	whole := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	all := map[string]string{
		"QueueArn":                              s.ARN(name),
		"ApproximateNumberOfMessages":           strconv.Itoa(counts.Visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(counts.InFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(counts.Delayed),
		"VisibilityTimeout":                     whole(spec.Visibility),
		"MessageRetentionPeriod":                whole(spec.Retention),
		"DelaySeconds":                          whole(spec.Delay),
		"MaximumMessageSize":                    strconv.Itoa(MaxMessageBytes),
		"ReceiveMessageWaitTimeSeconds":         "0",
	}
	if spec.DeadLetter != "" {
		policy, err := json.Marshal(object{"deadLetterTargetArn": s.ARN(spec.DeadLetter), "maxReceiveCount": spec.MaxReceives})
		if err != nil {
			return nil, err
		}
		all["RedrivePolicy"] = string(policy)
	}
	out := map[string]string{}
	for _, want := range in.AttributeNames {
		for name, value := range all {
			if want == "All" || want == name {
				out[name] = value
			}
		}
	}
	if len(out) == 0 {
		return object{}, nil
	}
	return object{"Attributes": out}, nil
}

func (s *Server) wireList(_ *http.Request, in *request) (any, error) {
	urls := []string{}
	for _, name := range s.Names() {
		if strings.HasPrefix(name, in.QueueNamePrefix) {
			urls = append(urls, s.URL(name))
		}
	}
	return object{"QueueUrls": urls}, nil
}

func (s *Server) wireSources(_ *http.Request, in *request) (any, error) {
	name := queueOf(in)
	if _, err := s.Spec(name); err != nil {
		return nil, err
	}
	urls := []string{}
	for _, other := range s.Names() {
		if spec, err := s.Spec(other); err == nil && spec.DeadLetter == name {
			urls = append(urls, s.URL(other))
		}
	}
	return object{"queueUrls": urls}, nil
}

func (s *Server) wirePurge(_ *http.Request, in *request) (any, error) {
	return object{}, s.Purge(queueOf(in))
}

// wireMove moves at once, where SQS starts a task: the handle it returns names
// work that is done.
func (s *Server) wireMove(_ *http.Request, in *request) (any, error) {
	last := func(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] }
	if _, err := s.Redrive(last(in.SourceARN), last(in.DestinationARN)); err != nil {
		if errors.Is(err, ErrNoQueue) {
			return nil, &apiError{"com.amazonaws.sqs#ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist.", "ResourceNotFoundException"}
		}
		return nil, err
	}
	return object{"TaskHandle": base64.StdEncoding.EncodeToString([]byte(newID()))}, nil
}

// BodyMD5 is the digest that SQS gives with each message.
func BodyMD5(body string) string { return md5Hex([]byte(body)) }

func md5Hex(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// attributesMD5 follows "Calculating the MD5 message digest for message
// attributes" of the SQS developer guide: by name, each of name, type and value
// with a 4-byte length in front, a transport byte (1 string, 2 binary) before the
// value.
func attributesMD5(all map[string]Attribute) string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	var b []byte
	add := func(v []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	for _, name := range names {
		a := all[name]
		add([]byte(name))
		add([]byte(a.DataType))
		if strings.HasPrefix(a.DataType, "Binary") {
			raw, _ := base64.StdEncoding.DecodeString(a.Value) // encoded by sendEntry
			b = append(b, 2)
			add(raw)
		} else {
			b = append(b, 1)
			add([]byte(a.Value))
		}
	}
	return md5Hex(b)
}
