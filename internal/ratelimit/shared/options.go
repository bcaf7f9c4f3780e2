package shared

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/admission-gateway/gateway/internal/memory"
)

// Mode is how Redis is deployed.
type Mode string

// The modes.
const (
	// Single is one server.
	Single Mode = "Single"
	// Sentinel is a server and its replicas, among which sentinels choose.
	Sentinel Mode = "Sentinel"
	// Cluster is a Redis Cluster.
	Cluster Mode = "Cluster"
)

// Options say where Redis is, and what it may cost.
type Options struct {
	// Mode is how Redis is deployed; Addresses are, as host and port, the address of the server, of
	// the sentinels, or of some servers of the cluster. MasterName is the name that the sentinels
	// have for the server.
	Mode       Mode
	Addresses  []string
	MasterName string
	// Database is the number of the database; a cluster has 0 alone.
	Database int
	// Credentials returns the user, which may be empty, and the password; it is called for each
	// connection. Nil if not used.
	Credentials func() (user, password string)
	// SentinelUser and SentinelPassword are for the sentinels.
	SentinelUser, SentinelPassword string
	// TLS returns the configuration of a connection, and is called for each. Nil is a connection without TLS.
	TLS func() *tls.Config
	// Prefix begins the names of all keys. Gateways with one prefix count together.
	Prefix string
	// Timeout is the longest time that a decision takes, ConnectTimeout the longest to connect.
	Timeout, ConnectTimeout time.Duration
	// stall is another time than the constant; 0 for that one.
	stall time.Duration
	// Connections is the largest number of connections to each server.
	Connections int
	// Memory grants what answers take; if nil, only the bounds on each answer apply.
	Memory *memory.Budget
	// Metrics may be nil.
	Metrics Metrics
	// Log receives a message when a server fails, and when it is back. Nil is no log.
	Log *slog.Logger
}

// Metrics count what happens.
type Metrics interface {
	// SharedLimitDecided is called for each decision with its outcome, one of the constants, and the time that it took.
	SharedLimitDecided(outcome string, took time.Duration)
	// SharedLimitStore is called when a server of Redis becomes available or unavailable, with how many are not.
	SharedLimitStore(unavailable int)
}

// The outcomes of decisions.
const (
	OutcomeAdmitted = "Admitted" // by Redis
	OutcomeRefused  = "Refused"  // by Redis
	OutcomeLeased   = "Leased"   // admitted without asking Redis
	OutcomeKnown    = "Known"    // refused without asking Redis
	OutcomeTimeout  = "Timeout"  // Redis did not answer in time
	OutcomeOpen     = "Open"     // Redis was not asked: it failed just before
	OutcomeError    = "Error"    // Redis, or the connection to it, failed
)

type noMetrics struct{}

func (noMetrics) SharedLimitDecided(string, time.Duration) {}
func (noMetrics) SharedLimitStore(int)                     {}
