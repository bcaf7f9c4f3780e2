package storage

import (
	"time"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// Limits bound what is read and made for one request.
type Limits struct {
	// Refused returns the answer to a request that cannot have the memory that it takes, or not its turn.
	Refused func(memory.Refusal) error

	Sent   document.Limits // of a document that a client sends
	Stored document.Limits // of a document that a backend gives: what was sent, and what was added to it
	Body   int64           // bytes of a body
	// Upload is the largest body that no file describes, in bytes; 0 is no bound.
	Upload int64
	// Timeouts bound the requests to the backend; a zero one is the backend's own.
	Timeouts upstream.RequestTimeouts
	// Timeout bounds the time to the end of the answer, AttemptTimeout that of each attempt to get one; 0 is no bound.
	Timeout, AttemptTimeout time.Duration
	// ContinuesWrites says that a write that was sent goes on when its client leaves, LastsCalls that calls of gRPC
	// may last.
	ContinuesWrites, LastsCalls bool
	// Retry says when a request is sent again; nil leaves it to the client of the backend.
	Retry *Retry
}

// A Retry says when a request is sent again, beside what an upstream.Client does by itself, and as far as it may
// arrive twice.
type Retry struct {
	// Codes are those of answers after which it is. It is after a failure to get an answer too.
	Codes []int
	// Attempts are how often it is sent again at most, Backoff how long the first pause lasts. Each further one lasts
	// twice as long.
	Attempts int
	Backoff  time.Duration
}

// Completed returns how many bytes the defaults may make of an object that was stored without them.
func (l *Limits) Completed() int { return int(min(2*l.Body, 1<<31-1)) }

// List returns the limits of a list that is read whole.
func (l *Limits) List() document.Limits {
	limits := l.Sent
	limits.Bytes *= 2
	limits.Nodes *= 2
	return limits
}

// A Backend is the server of a storage.
type Backend struct {
	Name   string
	Client *upstream.Client
	// URL is the scheme, host and port of its first server.
	URL string
	// Patience is how long an answer may take, up to the end of its head.
	Patience time.Duration
	// Failed is called for an answer that cannot be used although its HTTP is good.
	Failed func(*upstream.Error)
	// Measured is called for each exchange, with the code of its answer or why there is none; nil if not needed.
	Measured func(method []byte, code int, err error, took time.Duration)
	// Account is the gateway's own; nil if it has none by which it may read for clients.
	Account *Account
}
