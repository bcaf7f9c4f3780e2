package scan

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy"
)

// Operation says as what objects are judged.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
)

// A Side is a policy set, and a gateway that has it in force.
type Side struct {
	Set     *policies.Set
	Gateway *proxy.Gateway
}

// Options say what is judged, by which policies and how.
type Options struct {
	// New judges. Old, if it is not nil, judges too, and the report says what differs.
	New, Old *Side
	// Upstream is the backend whose paths the objects have. BasePath is the path of its URL, which its resources' paths
	// begin with.
	Upstream, BasePath string
	// Files, AuditLogs and HARs are files; "-" is Input. Backend is read if there are none of them.
	Files, AuditLogs, HARs []string
	Backend                state.Backend
	Input                  io.Reader
	// Resources are the resources to read, PLURAL or PLURAL.GROUP; empty for all that policies match. Objects
	// without a kind are of the one that is named.
	Resources []string
	// Namespace is the only namespace that is read, and the one of objects that have none themselves; empty for all.
	Namespace string
	// As says how objects are judged; User sends them.
	As   Operation
	User identity.User
	// Workers judge at a time; 0 is one for each processor. Rate is how many requests a second the backend gets at
	// most; 0 is no bound.
	Workers int
	Rate    float64
	// GroupBy counts by "namespace" or "label=KEY" too; empty for neither.
	GroupBy string
	// List is how many findings are listed; the counts have all of them.
	List int
	// StateFile remembers how far the scan is, so that another one goes on; empty for none.
	StateFile string
	// Progress is called with the progress of the scan, from one goroutine; nil if not needed.
	Progress func(Progress)
}

// Progress says how far a scan is.
type Progress struct {
	// Source is the file or the resource that is read.
	Source string
	// Part is how much of all sources was read, from 0 to 1; less than 0 if unknown.
	Part float64
	// Objects were judged, Denied of them refused.
	Objects, Denied int64
}

// ErrInterrupted is the error of a scan that ended early and can go on from its state.
var ErrInterrupted = errors.New("the scan was interrupted")

// A UsageError is the error of options that cannot be used.
type UsageError struct{ Err error }

// Error implements error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e UsageError) Unwrap() error { return e.Err }

func usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// A scan is under way.
type scan struct {
	options  *Options
	group    group
	tally    *Tally
	listed   []Finding
	position position // up to which everything was judged
	saved    time.Time
	progress *Progress
	notes    notes
}
