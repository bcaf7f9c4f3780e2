// Package config reads the GatewayConfiguration file and the flags that override it into one checked value. It has
// no behaviour of its own.
package config

import (
	"net"
	"net/netip"

	"k8s.io/client-go/rest"
)

// APIVersion and Kind are the type of a configuration file.
const (
	APIVersion = "admission-gateway.io/v1alpha1"
	Kind       = "GatewayConfiguration"
)

// Dialect says how much of Kubernetes' conventions a backend keeps by itself.
type Dialect string

// The dialects.
const (
	// Kubernetes is a kube-apiserver or behaves like one: the gateway adds admission and limits.
	Kubernetes Dialect = "Kubernetes"
	// Plain is an ordinary JSON API: the gateway supplies the conventions that it lacks.
	Plain Dialect = "Plain"
)

// HTTPProtocol is the version of HTTP in which a backend is asked.
type HTTPProtocol string

// The protocols.
const (
	HTTP1Protocol HTTPProtocol = "HTTP1"
	// HTTP2Protocol is agreed on by ALPN if the endpoints have the scheme https, and known beforehand if not.
	HTTP2Protocol HTTPProtocol = "HTTP2"
	// AutoProtocol is what the server prefers by ALPN: HTTP/1.1 if the endpoints do not have the scheme https.
	AutoProtocol HTTPProtocol = "Auto"
)

// UnderscoreHeaders says what happens to request headers with '_' in their names, which some backends take for the
// same names with '-'.
type UnderscoreHeaders string

// The ways to deal with such headers.
const (
	Refuse UnderscoreHeaders = "Refuse"
	Drop   UnderscoreHeaders = "Drop"
	Pass   UnderscoreHeaders = "Pass"
)

// ForwardedHeader is the header in which trusted proxies name the client.
type ForwardedHeader string

// The headers, of which a proxy sends one and may pass on the other as its client sent it.
const (
	XForwardedFor ForwardedHeader = "XForwardedFor"
	Forwarded     ForwardedHeader = "Forwarded" // RFC 7239
)

// Configuration is a checked configuration: every field has its value, defaults included.
type Configuration struct {
	// Listen is the address, host and port, on which clients are served. It may be empty if there are Listeners.
	Listen string `json:"listen"`
	// TLS is how clients are served by TLS; nil is plain HTTP.
	TLS *ListenerTLS `json:"tls"`
	// Listeners are further ones, on other addresses or for some hosts alone.
	Listeners []Listener `json:"listeners"`
	// HTTP2 is how clients are served by HTTP/2.
	HTTP2 HTTP2 `json:"http2"`
	// Admin is the listener for health and metrics.
	Admin Admin `json:"admin"`
	// Upstreams are the backends, at least one.
	Upstreams []UpstreamSpec `json:"upstreams"`
	// Routes choose the upstream of a request: the longest PathPrefix of those whose Host fits, a named host
	// before any host. There is at least one.
	Routes []Route `json:"routes"`
	// Policies says where the policy files are.
	Policies Policies `json:"policies"`
	// Bundles are bundles of OPA that RegoPolicies name.
	Bundles []Bundle `json:"bundles"`
	// AdmitOn says which object the validating ones of them judge before Kubernetes backends.
	AdmitOn AdmitOn `json:"admitOn"`
	// Limits bound what a request may take.
	Limits Limits `json:"limits"`
	// Timeouts bound how long a client may take.
	Timeouts Timeouts `json:"timeouts"`
	// DrainSeconds is how long requests are still served after SIGTERM, while /readyz already fails.
	DrainSeconds Seconds `json:"drainSeconds"`
	// ShutdownDeadlineSeconds is how long requests in flight may take to finish after that.
	ShutdownDeadlineSeconds Seconds `json:"shutdownDeadlineSeconds"`
	// UpgradeDrainSeconds is how long upgraded connections, and logs that are followed, may go on after DrainSeconds.
	UpgradeDrainSeconds Seconds `json:"upgradeDrainSeconds"`
	// UnderscoreHeaders says what happens to headers with '_' in their names.
	UnderscoreHeaders UnderscoreHeaders `json:"underscoreHeaders"`
	// TrustedProxies are the peers, as addresses or CIDR blocks, that may name the client.
	TrustedProxies []Prefix `json:"trustedProxies"`
	// ForwardedHeader is the header in which they name the client.
	ForwardedHeader ForwardedHeader `json:"forwardedHeader"`
	// Identity says which credentials count; nil if none do.
	Identity *Identity `json:"identity"`
	// UnregisteredResources is how resources are treated that no policy file describes.
	UnregisteredResources UnregisteredResources `json:"unregisteredResources"`
	// Replicas is how many gateways with this configuration write to the same backends.
	Replicas int32 `json:"replicas"`
	// Telemetry says what is reported of requests.
	Telemetry Telemetry `json:"telemetry"`
	// Kubernetes says what the gateway does in a cluster beside what it does for the API server behind it.
	Kubernetes Cluster `json:"kubernetes"`
	// Redis keeps the limits that gateways share; if nil, no policy may ask for shared limits.
	Redis *Redis `json:"redis"`

	hash   string
	stated Limits // without what is derived from the machine
}

// Hash is the SHA-256 of the configuration with its defaults and flags, without the contents of the files that it
// names.
func (c *Configuration) Hash() string { return c.hash }

// BackendConnections returns how many connections there may be to all upstreams of the configuration.
func (c *Configuration) BackendConnections() int {
	n := 0
	for i := range c.Upstreams {
		n += int(c.Upstreams[i].MaxConnections)
	}
	return n
}

// TypeMeta is in every file.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Admin configures the admin listener.
type Admin struct {
	// Listen is its address, host and port.
	Listen string `json:"listen"`
	// Hosts are the names that it answers to, beside IP addresses, localhost and the host of Listen.
	Hosts []string `json:"hosts"`
	// TLS is how it speaks TLS; nil is plain HTTP.
	TLS *ListenerTLS `json:"tls"`
	// TokenFile is a file with the token that clients must show for anything but health; if empty,
	// none is asked for. It is read again when it changes. In a configuration file, a path is
	// relative to its directory.
	TokenFile string `json:"tokenFile"`
	// Profiling serves profiles of the process.
	Profiling bool `json:"profiling"`
}

// AllowedHosts are the names that the listener answers to beside IP addresses and localhost: Hosts, and the host of
// Listen.
func (a *Admin) AllowedHosts() []string {
	host, _, err := net.SplitHostPort(a.Listen)
	if err != nil || host == "" {
		return a.Hosts
	}
	return append(a.Hosts[:len(a.Hosts):len(a.Hosts)], host)
}

// UpstreamSpec has the settings of a backend.
type UpstreamSpec struct {
	// Name is by which routes name it.
	Name string `json:"name"`
	// Endpoints are the base URLs of the backend's servers, all of one scheme and path. The path is put before the path
	// of every request.
	Endpoints []string `json:"endpoints"`
	// Dialect says how much of Kubernetes' conventions the backend keeps: Kubernetes if a kubeconfig names the
	// backend, or if it is the API server of the pod's cluster; else Plain, unless the file or a flag says it.
	Dialect Dialect `json:"dialect"`
	// isAssumed says that neither the file nor a flag says the dialect of a backend that is named by its URL.
	isAssumed bool
	// Protocol is the version of HTTP in which the backend is asked: HTTP1, HTTP2, or Auto for what its servers prefer
	// behind TLS; empty is Auto for the dialect Kubernetes, else HTTP1.
	Protocol HTTPProtocol `json:"protocol"`
	// TokenFile is a file with the bearer token of what the gateway asks on its own account: the objects that policies
	// refer to, and what users may do. Empty means none. A path in a file is relative to its directory.
	TokenFile string `json:"tokenFile"`
	// TLS is how it is known, and what is shown to it, if its endpoints have the scheme https; nil
	// means the authorities of the system.
	TLS *UpstreamTLS `json:"tls"`
	// Kubeconfig is a file that gives Endpoints, TLS and TokenFile, in the context of the name
	// KubeconfigContext, or else its current one. A path in a file is relative to its directory.
	Kubeconfig        string       `json:"kubeconfig"`
	KubeconfigContext string       `json:"kubeconfigContext"`
	clientConfig      *rest.Config // of the kubeconfig
	// Credentials says how the user is passed to it.
	Credentials Credentials `json:"credentials"`
	// Upgrades are the subresources ('pods/exec', 'machines.example.com/console') and the prefixes of paths that are no
	// resources ('/live') on which clients may go on in another protocol: WebSocket or SPDY; nil is the default
	// of AllowedUpgrades.
	Upgrades []string `json:"upgrades"`
	// ErrorFormat says how the gateway itself refuses requests; empty is Status.
	ErrorFormat ErrorFormat `json:"errorFormat"`
	// ErrorTemplate is the name of the ErrorTemplate of the format Template.
	ErrorTemplate string `json:"errorTemplate"`
	// Events says whether refusals are recorded as Events of Kubernetes; empty means None.
	Events Events `json:"events"`
	// Undescribed says what happens to requests that no policy file describes; empty is Pass. Only an upstream
	// of the dialect Plain has such requests.
	Undescribed Undescribed `json:"undescribed"`
	// AbandonedWrites says what happens to a write that was sent when its client leaves; empty is Cancel.
	AbandonedWrites AbandonedWrites `json:"abandonedWrites"`
	// ConnectTimeoutSeconds bounds the making of a connection.
	ConnectTimeoutSeconds Seconds `json:"connectTimeoutSeconds"`
	// ResponseTimeoutSeconds bounds the time from the start of a request to the end of the answer's head.
	ResponseTimeoutSeconds Seconds `json:"responseTimeoutSeconds"`
	// BodyTimeoutSeconds bounds each pause within the body of an answer of known length.
	BodyTimeoutSeconds Seconds `json:"bodyTimeoutSeconds"`
	// StreamTimeoutSeconds bounds each pause within a body of unknown length, such as a watch; 0 means none.
	StreamTimeoutSeconds Seconds `json:"streamTimeoutSeconds"`
	// IdleTimeoutSeconds is how long an unused connection is kept.
	IdleTimeoutSeconds Seconds `json:"idleTimeoutSeconds"`
	// QueueTimeoutSeconds is how long a request waits for a connection when MaxConnections are in use.
	QueueTimeoutSeconds Seconds `json:"queueTimeoutSeconds"`
	// MaxConnections is the largest number of connections to the backend.
	MaxConnections int32 `json:"maxConnections"`
	// Balance configures backends with several servers, and with servers that fail.
	Balance `json:",inline"`
}

// Route sends requests to an upstream.
type Route struct {
	// Name is by which policy files name the route in their scopes; empty if none does.
	Name string `json:"name"`
	// Host is the host name of the requests, without a port and in lower case; empty means any.
	Host string `json:"host"`
	// PathPrefix is a path of whole segments: "/v2" is a prefix of "/v2" and "/v2/orders" but not of "/v20".
	PathPrefix string `json:"pathPrefix"`
	// Upstream is the name of the upstream.
	Upstream string `json:"upstream"`
	// StripPrefix takes PathPrefix off the paths that the backend gets. AddPrefix is put before them, after
	// the path of the endpoints.
	StripPrefix bool   `json:"stripPrefix"`
	AddPrefix   string `json:"addPrefix"`
	// BackendHost says which Host the backend gets; empty is Keep.
	BackendHost BackendHost `json:"backendHost"`
	// BodyBytes is limits.bodyBytes for the requests of this route, and bounds bodies too that no file describes; 0
	// leaves the former, and the latter unbounded.
	BodyBytes int64 `json:"bodyBytes"`
	// ResponseTimeoutSeconds and BodyTimeoutSeconds are the upstream's settings of these names for the requests of
	// this route; 0 leaves the upstream's.
	ResponseTimeoutSeconds Seconds `json:"responseTimeoutSeconds"`
	BodyTimeoutSeconds     Seconds `json:"bodyTimeoutSeconds"`
	// ErrorFormat is the upstream's setting of this name for the requests of this route; empty leaves it as it is.
	ErrorFormat ErrorFormat `json:"errorFormat"`
	// ErrorTemplate is the name of the ErrorTemplate of the route's own format Template.
	ErrorTemplate string `json:"errorTemplate"`
	// Undescribed is the upstream's setting of this name for the requests of this route; empty leaves the
	// upstream's.
	Undescribed Undescribed `json:"undescribed"`
	// AbandonedWrites is the upstream's setting of this name for the requests of this route; empty leaves the
	// upstream's.
	AbandonedWrites AbandonedWrites `json:"abandonedWrites"`
	// GRPC says that calls of gRPC may last: they are not subject to ResponseTimeoutSeconds and the like. By an
	// upstream of the protocol HTTP2 they always may.
	GRPC bool `json:"grpc"`
	// CORS says which scripts may read answers; nil leaves it to the backend.
	CORS *CORS `json:"cors"`
}

// Limits bound what a request may take.
type Limits struct {
	// BodyBytes is the size of the largest request body.
	BodyBytes int64 `json:"bodyBytes"`
	// BodiesInFlightBytes bounds what all requests together hold in memory: their bodies and what is made of them, such
	// as parsed documents, stored objects and what expressions make. 0 derives it from the memory that there is.
	BodiesInFlightBytes int64 `json:"bodiesInFlightBytes"`
	// HeavyRequests is how many requests that take much work are worked on at a time. 0 derives it from the processors
	// and the memory that there are.
	HeavyRequests int32 `json:"heavyRequests"`
	// HeaderBytes bounds a request's head, URIBytes its target, Headers the number of its header lines.
	HeaderBytes int32 `json:"headerBytes"`
	URIBytes    int32 `json:"uriBytes"`
	Headers     int32 `json:"headers"`
	// JSONDepth is how deep a document may be nested, JSONNodes how many values and members it may have.
	JSONDepth int32 `json:"jsonDepth"`
	JSONNodes int32 `json:"jsonNodes"`
	// Connections is the largest number of client connections.
	Connections int32 `json:"connections"`
	// DrainBytesPerSecond is how much of an answer a client must take in a second, on average, while there is something
	// to send; 0 is any.
	DrainBytesPerSecond int64 `json:"drainBytesPerSecond"`
}

// Timeouts bound how long a client may take.
type Timeouts struct {
	// HeaderDeadlineSeconds bounds the time from the first byte of a request's head to its last.
	HeaderDeadlineSeconds Seconds `json:"headerDeadlineSeconds"`
	// BodyDeadlineSeconds bounds the time in which the whole body must arrive.
	BodyDeadlineSeconds Seconds `json:"bodyDeadlineSeconds"`
	// IdleTimeoutSeconds is how long a connection may wait for its next request.
	IdleTimeoutSeconds Seconds `json:"idleTimeoutSeconds"`
	// WriteTimeoutSeconds is the time in which a client must take each part of an answer.
	WriteTimeoutSeconds Seconds `json:"writeTimeoutSeconds"`
	// UpgradeIdleTimeoutSeconds is how long an upgraded connection may be silent in both directions; 0 means for ever.
	UpgradeIdleTimeoutSeconds Seconds `json:"upgradeIdleTimeoutSeconds"`
}

// UnregisteredResources is how resources are treated that no policy file describes. Policies that match them apply
// in any case.
type UnregisteredResources struct {
	// ProtectStatus takes `status` out of what clients write to the main resource.
	ProtectStatus bool `json:"protectStatus"`
	// CheckNames refuses objects whose names Kubernetes would refuse.
	CheckNames bool `json:"checkNames"`
}

// Prefix is a block of addresses, written as CIDR or as a single address.
type Prefix struct{ netip.Prefix }

// UnmarshalText reads a block.
func (p *Prefix) UnmarshalText(text []byte) error {
	var err error
	if p.Prefix, err = parsePrefix(string(text)); err != nil {
		return err
	}
	return nil
}

// HTTP2 is how clients are served by HTTP/2, beside HTTP/1.1.
type HTTP2 struct {
	// Enabled offers HTTP/2: to a client that asks for it by TLS (ALPN), and without TLS to one that begins with it.
	Enabled bool `json:"enabled"`
	// MaxConcurrentStreams is how many requests a client may have on a connection at a time.
	MaxConcurrentStreams int32 `json:"maxConcurrentStreams"`
}

// Default is the configuration of an empty file. It lacks upstreams and routes.
func Default() *Configuration {
	return &Configuration{
		Listen: "127.0.0.1:8080",
		HTTP2:  HTTP2{Enabled: true, MaxConcurrentStreams: 128},
		Admin:  Admin{Listen: "127.0.0.1:8081"},
		Limits: Limits{
			BodyBytes:   3 << 20,
			HeaderBytes: 16 << 10,
			URIBytes:    8 << 10,
			Headers:     128,
			JSONDepth:   64,
			JSONNodes:   1 << 20,
			Connections: 64 << 10,

			DrainBytesPerSecond: 1 << 10,
		},
		Timeouts: Timeouts{
			HeaderDeadlineSeconds: 10,
			BodyDeadlineSeconds:   60,
			IdleTimeoutSeconds:    120,
			WriteTimeoutSeconds:   30,
			// As long as a kubelet's.
			UpgradeIdleTimeoutSeconds: 4 * 60 * 60,
		},
		Replicas:                1,
		DrainSeconds:            10,
		ShutdownDeadlineSeconds: 30,
		UnderscoreHeaders:       Refuse,
		ForwardedHeader:         XForwardedFor,
		AdmitOn:                 AdmitOnRequest,
		Telemetry:               defaultTelemetry(),
	}
}

func defaultUpstream() UpstreamSpec {
	return UpstreamSpec{
		Credentials:            PassCredentials,
		ConnectTimeoutSeconds:  5,
		ResponseTimeoutSeconds: 60,
		BodyTimeoutSeconds:     60,
		IdleTimeoutSeconds:     30,
		QueueTimeoutSeconds:    1,
		MaxConnections:         4096,
		Balance:                defaultBalance(),
	}
}

// SpokenProtocol is the Protocol or, if nothing is said, its default: HTTP/2 if an API server offers it, since a watch
// on a connection that carries nothing any more is noticed by that alone, and HTTP/1.1 for other backends.
func (u *UpstreamSpec) SpokenProtocol() HTTPProtocol {
	switch {
	case u.Protocol != "":
		return u.Protocol
	case u.Dialect == Kubernetes:
		return AutoProtocol
	}
	return HTTP1Protocol
}

// PlainUpstream returns the settings of an ordinary API of which nothing is known but the base URLs of its servers.
func PlainUpstream(name string, endpoints []string) *UpstreamSpec {
	u := defaultUpstream()
	u.Name, u.Endpoints, u.Dialect = name, endpoints, Plain
	return &u
}
