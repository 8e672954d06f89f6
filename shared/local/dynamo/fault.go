package dynamo

import (
	"errors"
	"net/http"
)

// Fault is something that a test wants to go wrong with one request.
type Fault int

// The faults. Except for FaultLostReply nothing is performed.
const (
	FaultNone Fault = iota
	// FaultConflict is a collision with another transaction:
	// TransactionCanceledException with TransactionConflict for transactions,
	// TransactionConflictException for single and batch writes. Other
	// operations cannot collide and answer it with an internal error that says
	// so.
	FaultConflict
	// FaultThrottle is ProvisionedThroughputExceededException.
	FaultThrottle
	// FaultInternal is a status 500.
	FaultInternal
	// FaultLostReply performs the operation and then cuts the connection; over a
	// connection that cannot be cut it is a status 500. A request that fails by
	// itself is answered as usual.
	FaultLostReply
)

var errLostReply = errors.New("the reply is to be lost")

// SetFaults replaces the fault hook; nil removes it. The hook gets the name of
// the operation ("TransactWriteItems") and the body of the request, which it
// must not keep, and may be called from several goroutines at once.
func (s *Server) SetFaults(hook func(op string, req []byte) Fault) {
	if hook == nil {
		s.faults.Store(nil)
		return
	}
	s.faults.Store(&hook)
}

func (s *Server) drawFault(op string, raw []byte) Fault {
	if hook := s.faults.Load(); hook != nil {
		return (*hook)(op, raw)
	}
	return FaultNone
}

// before is the error that the fault gives instead of performing the operation.
func (f Fault) before(name string, op operation, body object) error {
	switch f {
	case FaultConflict:
		if op.conflict == nil {
			return internalError("FaultConflict was injected into " + name + ", which cannot conflict with a transaction")
		}
		return op.conflict(body)
	case FaultThrottle:
		return clientError("ProvisionedThroughputExceededException",
			"The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.")
	case FaultInternal:
		return internalError("Internal server error")
	}
	return nil
}

func singleConflict(object) error {
	return clientError("TransactionConflictException", "Transaction is ongoing for the item")
}

// transactionConflict blames the first action.
func transactionConflict(body object) error {
	actions, _ := body["TransactItems"].([]any)
	reasons := make([]cancellationReason, max(1, len(actions)))
	for i := range reasons {
		reasons[i].Code = reasonNone
	}
	reasons[0] = cancellationReason{Code: "TransactionConflict", Message: "Transaction is ongoing for the item"}
	return errCancelled(reasons)
}

// cutConnection closes the connection without an answer.
func cutConnection(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close() // The point is that it breaks.
		return
	}
	respond(w, nil, internalError("Internal server error"))
}
