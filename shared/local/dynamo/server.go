package dynamo

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const maxRequest = 16 << 20

// Options configure a Server. The zero value is a server in memory on the
// system clock.
type Options struct {
	// Dir is the folder for the data; it is made if need be and locked while
	// the server is open. Empty keeps everything in memory.
	Dir string
	// Now is the clock of stream records, creation dates and request tokens.
	Now func() time.Time
	// Faults is asked before every request what should go wrong with it; see
	// SetFaults.
	Faults func(op string, req []byte) Fault
	// Region and Account appear in ARNs and stream records. They default to
	// us-east-1 and 000000000000.
	Region  string
	Account string

	stream limits // of tests; zero means defaultLimits
}

// Server is a DynamoDB endpoint. It is an http.Handler for both the DynamoDB
// and the DynamoDB Streams API, and safe for concurrent use.
type Server struct {
	region  string
	account string
	now     func() time.Time
	faults  atomic.Pointer[func(op string, req []byte) Fault]
	counts  counters
	limits  limits

	// mu guards everything below. Every write holds it from checking its
	// conditions to applying its changes, which is what makes transactions
	// atomic and isolated.
	mu     sync.RWMutex
	closed bool
	tables map[string]*table
	tokens map[string]requestToken
	// forgotten is when tokens were last looked through.
	forgotten time.Time
	seq       int64 // sequence number of the latest stream record
	commits   int   // replayed from the journal
	journal   *journal
}

// Open starts a server on the data in opts.Dir. A torn last line of the journal
// is dropped: it belongs to a write that was never acknowledged.
func Open(opts Options) (*Server, error) {
	s := &Server{
		region:  opts.Region,
		account: opts.Account,
		now:     opts.Now,
		limits:  opts.stream,
		tables:  make(map[string]*table),
		tokens:  make(map[string]requestToken),
	}
	if s.region == "" {
		s.region = "us-east-1"
	}
	if s.account == "" {
		s.account = "000000000000"
	}
	if s.limits == (limits{}) {
		s.limits = defaultLimits
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.counts.reset()
	s.SetFaults(opts.Faults)
	if opts.Dir == "" {
		return s, nil
	}
	j, err := openJournal(opts.Dir, s.replay)
	if err != nil {
		return nil, err
	}
	s.journal = j
	s.forgetTokens(s.now())
	if s.commits > 0 {
		s.compact()
	}
	return s, nil
}

// Close ends the server: later requests are answered with an error. It returns
// the error of closing the journal, which has no buffered data.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.journal.close()
}

// Counters returns a copy of the request and capacity counters.
func (s *Server) Counters() Counters { return s.counts.snapshot() }

// ResetCounters sets all counters to zero.
func (s *Server) ResetCounters() { s.counts.reset() }

// operation performs one API call.
type operation struct {
	run func(s *Server, body object) (any, error)
	// conflict is the error that a collision with a transaction gives; nil for
	// operations that cannot collide.
	conflict func(body object) error
}

const (
	tablePrefix  = "DynamoDB_20120810."
	streamPrefix = "DynamoDBStreams_20120810."
)

var operations = map[string]operation{
	tablePrefix + "BatchGetItem":       {run: (*Server).batchGetItem},
	tablePrefix + "BatchWriteItem":     {run: (*Server).batchWriteItem, conflict: singleConflict},
	tablePrefix + "CreateTable":        {run: (*Server).createTable},
	tablePrefix + "DeleteItem":         {run: (*Server).deleteItem, conflict: singleConflict},
	tablePrefix + "DeleteTable":        {run: (*Server).deleteTable},
	tablePrefix + "DescribeTable":      {run: (*Server).describeTable},
	tablePrefix + "DescribeTimeToLive": {run: (*Server).describeTimeToLive},
	tablePrefix + "GetItem":            {run: (*Server).getItem},
	tablePrefix + "ListTables":         {run: (*Server).listTables},
	tablePrefix + "PutItem":            {run: (*Server).putItem, conflict: singleConflict},
	tablePrefix + "Query":              {run: (*Server).query},
	tablePrefix + "Scan":               {run: (*Server).scan},
	tablePrefix + "TransactGetItems":   {run: (*Server).transactGetItems, conflict: transactionConflict},
	tablePrefix + "TransactWriteItems": {run: (*Server).transactWriteItems, conflict: transactionConflict},
	tablePrefix + "UpdateItem":         {run: (*Server).updateItem, conflict: singleConflict},
	tablePrefix + "UpdateTimeToLive":   {run: (*Server).updateTimeToLive},
	streamPrefix + "DescribeStream":    {run: (*Server).describeStream},
	streamPrefix + "GetRecords":        {run: (*Server).getRecords},
	streamPrefix + "GetShardIterator":  {run: (*Server).getShardIterator},
	streamPrefix + "ListStreams":       {run: (*Server).listStreams},
}

// ServeHTTP answers one request of the JSON 1.0 protocol. Any signature is
// accepted, and none is asked for.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "healthy: dynamodb."+s.region+".local\n")
		return
	}
	answer, err := s.serve(w, r)
	if errors.Is(err, errLostReply) {
		cutConnection(w)
		return
	}
	respond(w, answer, err)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	target := r.Header.Get("X-Amz-Target")
	op, known := operations[target]
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost, target == "":
		return nil, clientError("UnknownOperationException", "POST a request with the header X-Amz-Target")
	case err != nil || mediaType != "application/x-amz-json-1.0":
		return nil, malformed("The Content-Type must be application/x-amz-json-1.0")
	case !known:
		return nil, clientError("UnknownOperationException", "%s is not an operation of this local server", target)
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, code: "RequestEntityTooLargeException",
			message: fmt.Sprintf("The request is larger than %d bytes", maxRequest)}
	case err != nil:
		return nil, malformed("The request body could not be read: %v", err)
	}
	return s.execute(target, op, raw)
}

// execute runs an operation with the fault it has drawn, if any.
func (s *Server) execute(target string, op operation, raw []byte) (any, error) {
	_, name, _ := strings.Cut(target, ".")
	s.counts.request(name)
	fault := s.drawFault(name, raw)
	body, err := parseBody(raw)
	if err != nil {
		return nil, err
	}
	if err := fault.before(name, op, body); err != nil {
		return nil, err
	}
	answer, err := op.run(s, body)
	if fault == FaultLostReply && err == nil {
		return nil, errLostReply
	}
	return answer, err
}

// respond writes an answer or an error.
func respond(w http.ResponseWriter, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		var e *apiError
		if !errors.As(err, &e) {
			e = internalError(err.Error())
		}
		status, answer = e.status, e.body()
	}
	body, err := json.Marshal(answer)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"__type":"InternalServerError"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", strings.ToUpper(rand.Text()))
	h.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(body) // The client has gone if this fails.
}

var errClosed = internalError("The local DynamoDB server has been closed")

// read runs f under the read lock.
func (s *Server) read(f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	return f()
}

// write runs f under the write lock.
func (s *Server) write(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return f()
}

// table finds a table that a request names.
func (s *Server) table(name string) (*table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, errTableNotFound()
}
