// Package routing has listeners, routes and backends as the data plane takes them, whatever they were written as:
// objects of Gateway API, an Ingress, or the short form of the configuration. It has values alone, which nothing
// changes once they are made.
package routing

import (
	"net/netip"
	"time"
)

// A Table is all that decides where requests go.
type Table struct {
	Listeners []Listener
	// Routes are in the order in which the first of two equal matches counts: the oldest first.
	Routes []Route
	// Backends are what routes name by their index.
	Backends []Backend
}

// A Listener takes the requests for a host on a port.
type Listener struct {
	// Gateway and Section name it to operators: the namespace and name of its Gateway, and its own name in there,
	// behind the namespace and name of its ListenerSet if it has one. Of Ingresses they are "Ingress", and host and
	// port.
	Gateway, Section string
	Port             int32
	// Addresses are what it listens on; none is all of the machine's.
	Addresses []netip.Addr
	// Host is a host in lower case, "*." before the end of hosts, or "" for any.
	Host string
	// TLS is nil for plain HTTP.
	TLS *ListenerTLS
}

// Name identifies the listener among those of its table.
func (l *Listener) Name() string { return l.Gateway + "/" + l.Section }

// ListenerTLS is how a listener speaks TLS.
type ListenerTLS struct {
	// Certificates are PEM. The first is the default.
	Certificates []Certificate
	// ClientCAs are PEM: the authorities of clients' certificates. None asks for no certificate.
	ClientCAs []byte
	// LetsStrangersIn lets clients in whose certificate none of ClientCAs signed, or that show none.
	LetsStrangersIn bool
}

// A Certificate is a chain and its key, in PEM.
type Certificate struct{ Chain, Key []byte }

// A Route is one rule: which requests it takes, and what becomes of them.
type Route struct {
	// Kind, Namespace and Name are of the object that has the rule. Rule is its name in there, or its index.
	Kind, Namespace, Name, Rule string
	// Attachments are where it takes requests from.
	Attachments []Attachment
	// Matches are the requests that it takes: any of them is enough.
	Matches []Match
	// Filters change requests and answers, in this order.
	Filters []Filter
	// Backends share the requests by their weights. None, and none with a weight, is an error to the client.
	Backends []WeightedBackend
	// Timeout bounds the time to the end of the answer, AttemptTimeout that of one attempt at a backend. 0 leaves what
	// the backend has: a bound for the head of the answer, and none for the rest. Unbounded is none for either.
	Timeout, AttemptTimeout time.Duration
	Retry                   *Retry
}

// Unbounded is a timeout that never passes.
const Unbounded = 365 * 24 * time.Hour

// An Attachment is a listener's requests for a host.
type Attachment struct {
	// Listener is an index of Table.Listeners.
	Listener int
	// Host is a host in lower case, "*." before the end of hosts, or "" for any. It is not wider than the listener's.
	Host string
}

// A Match takes the requests that have all that it names.
type Match struct {
	Path    PathMatch
	Method  string // "" is any
	Headers []ValueMatch
	Query   []ValueMatch
}

// PathMatch is what the path of a request must be.
type PathMatch struct {
	Kind  PathKind
	Value string
}

// PathKind says how paths are compared.
type PathKind uint8

// The kinds of PathMatch.
const (
	// PathPrefix compares whole segments: "/v2" is a prefix of "/v2" and "/v2/orders" but not of "/v20".
	PathPrefix PathKind = iota
	// PathExact is the path itself.
	PathExact
	// PathExpression is a regular expression of RE2, for the whole path.
	PathExpression
)

// A ValueMatch is what a header or a parameter of the query must be.
type ValueMatch struct {
	// Name is compared without case if it is a header's.
	Name string
	// Value is compared as a whole. It is a regular expression of RE2 if IsExpression is set.
	Value        string
	IsExpression bool
}

// A Filter changes the requests of a route, or their answers. One field is set.
type Filter struct {
	Request, Answer *HeaderEdits
	Redirect        *Redirect
	Rewrite         *Rewrite
	Mirror          *Mirror
	CORS            *CORS
	// Unknown is set if the filter cannot be carried out, so that the request must not go on. It is the reason.
	Unknown string
}

// HeaderEdits change header lines: Set replaces, Add adds, Remove takes out.
type HeaderEdits struct {
	Set, Add []Header
	Remove   []string
}

// A Header is a header line.
type Header struct{ Name, Value string }

// A Redirect answers with another URL. An empty field leaves what the request has.
type Redirect struct {
	Scheme, Host string
	Path         *PathEdit
	Port         int32 // 0: that of Scheme if it is set, else the listener's
	Code         int   // 301, 302, 303, 307, 308
}

// A Rewrite changes what the backend gets.
type Rewrite struct {
	Host string // "" keeps the client's
	Path *PathEdit
}

// A PathEdit puts Value in place of a path, or of the prefix by which the route took the request.
type PathEdit struct {
	IsPrefix bool
	Value    string
}

// A Mirror sends copies of requests to a backend whose answers nothing waits for: Numerator of Denominator requests.
type Mirror struct {
	Backend                int // an index of Table.Backends
	Numerator, Denominator int32
}

// CORS says which scripts may read answers. "*" in a list is all; an origin may have "*" in its host.
type CORS struct {
	Origins, Methods, Headers, Exposed []string
	HasCredentials                     bool
	MaxAge                             time.Duration
}

// A WeightedBackend is a backend's share of a route.
type WeightedBackend struct {
	Backend int // an index of Table.Backends
	Weight  int32
	Filters []Filter
}

// Retry says when a request is sent again.
type Retry struct {
	Codes    []int // of answers after which another attempt is made, beside connections that fail
	Attempts int   // beside the first
	Backoff  time.Duration
}

// A Backend is the servers of a Service, or why there are none.
type Backend struct {
	// Name is its namespace, name and port, for logs and metrics.
	Name string
	// Upstream is the upstream of the configuration that a route names instead of servers; "" for servers.
	Upstream string
	// Servers are hosts and ports: the endpoints that are ready, or one name that DNS resolves. None answers 503.
	Servers []string
	// IsHTTP2 is set if they are spoken to in HTTP/2 by prior knowledge, or by ALPN behind TLS.
	IsHTTP2 bool
	TLS     *BackendTLS // nil for plain HTTP
	// Fault is set if the reference cannot be followed: requests are answered 500. It is the reason, for operators.
	Fault string
}

// BackendTLS is how servers are known, and how the gateway is known to them.
type BackendTLS struct {
	// ServerName is asked for by SNI, and has to be in the certificate unless Names are given.
	ServerName string
	// CAs are PEM; none is the system's.
	CAs []byte
	// Names are DNS names and URIs of which the certificate must have one.
	Names []string
	// Client is what the gateway shows; nil is nothing.
	Client *Certificate
}
