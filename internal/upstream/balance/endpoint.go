package balance

import "time"

// An Origin is one base URL of a backend. Several endpoints stand for it if its name has several addresses.
type Origin struct {
	Position  int    // among the base URLs
	Authority string // host and port
	IsFixed   bool   // one endpoint stands for it for ever
	Asked     bool   // its first lookup is over: a later one finds servers that are new
}

// An Endpoint is one address of a backend. Its user keeps a C for it: its connections.
type Endpoint[C any] struct {
	Addr   string // to dial
	Origin *Origin
	Conns  C
	// Busy is the number of its exchanges, streams included.
	Busy int

	removed   bool // from the set
	ejected   bool
	unhealthy bool // by health checks

	returns bool      // it starts slowly when it is ready: it was passed over until now, or is new
	since   time.Time // when its slow start began; zero if it is not in one
	weight  int       // of fullWeight

	heard     time.Time // when it answered last
	failures  int       // in a row
	ejections int       // in a row, more or less: see eject
	until     time.Time // the end of the last ejection
	checks    checks
}

// IsRemoved reports whether the endpoint is no longer one of the backend's: its connections end with their exchanges.
func (e *Endpoint[C]) IsRemoved() bool { return e.removed }

// EndpointStatus says whether an endpoint is asked.
type EndpointStatus uint8

// The statuses of endpoints.
const (
	EndpointReady EndpointStatus = iota
	EndpointEjected
	EndpointUnhealthy
)

// String returns the name of the status, as used in metrics.
func (s EndpointStatus) String() string { return [...]string{"Ready", "Ejected", "Unhealthy"}[s] }

// Status returns whether the endpoint is asked, and the end of an ejection.
func (e *Endpoint[C]) Status() (s EndpointStatus, until time.Time) {
	switch {
	case e.unhealthy:
		return EndpointUnhealthy, time.Time{}
	case e.ejected:
		return EndpointEjected, e.until
	}
	return EndpointReady, time.Time{}
}

// Failures returns the number of exchanges that failed in a row.
func (e *Endpoint[C]) Failures() int { return e.failures }

// Heard returns when the endpoint answered a request or passed a health check last; zero if it never did.
func (e *Endpoint[C]) Heard() time.Time { return e.heard }

// IsWell reports whether the last health check was passed.
func (e *Endpoint[C]) IsWell() bool { return e.checks.known && e.checks.cause == "" }

// Cause says why its health checks fail, or failed last if it is unhealthy still.
func (e *Endpoint[C]) Cause() string { return e.checks.cause }

// checks are the results of the health checks of an endpoint.
type checks struct {
	known          bool
	passed, failed int // in a row
	cause          string
}
