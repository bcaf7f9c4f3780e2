// Package config reads the GatewayConfiguration file and the flags that override it into one checked value. It has
// no behaviour of its own.
package config

import (
	"net/netip"
	"time"

	"k8s.io/client-go/rest"
)

// APIVersion and Kind are what a configuration file must say.
const (
	APIVersion = "admission-gateway.io/v1alpha1"
	Kind       = "GatewayConfiguration"
)

// Seconds is a duration in whole seconds.
type Seconds int32

// Duration converts s.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// Dialect says how much of Kubernetes' conventions a backend keeps by itself.
type Dialect string

// The dialects.
const (
	// Kubernetes is a kube-apiserver or behaves like one: the gateway adds admission and limits.
	Kubernetes Dialect = "Kubernetes"
	// Plain is an ordinary JSON API: the gateway supplies the conventions that it lacks.
	Plain Dialect = "Plain"
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

// Configuration is a checked configuration: every field has its value, defaults included.
type Configuration struct {
	TypeMeta `json:",inline"`

	// Listen is the address, host and port, on which clients are served.
	Listen string `json:"listen"`
	// TLS is how clients are served by TLS; nil is plain HTTP.
	TLS *ListenerTLS `json:"tls"`
	// Admin is the listener for health and metrics.
	Admin Admin `json:"admin"`
	// Upstreams are the backends, at least one.
	Upstreams []Upstream `json:"upstreams"`
	// Routes choose the upstream of a request: the longest PathPrefix of those whose Host fits, a named host
	// before any host. There is at least one.
	Routes []Route `json:"routes"`
	// Policies are files and directories with policies. Those of a file are relative to its directory.
	Policies []string `json:"policies"`
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
	// UnderscoreHeaders says what happens to headers with '_' in their names.
	UnderscoreHeaders UnderscoreHeaders `json:"underscoreHeaders"`
	// TrustedProxies are the peers, as addresses or CIDR blocks, whose word on who the client is counts.
	TrustedProxies []Prefix `json:"trustedProxies"`
	// Identity says whose credentials count; nil is nobody's.
	Identity *Identity `json:"identity"`
	// UnregisteredResources is how resources are treated that no policy file describes.
	UnregisteredResources UnregisteredResources `json:"unregisteredResources"`
	// Redis is where limits are kept that gateways share; nil is nowhere, and no policy may ask for it.
	Redis *Redis `json:"redis"`
}

// TypeMeta is what every file has.
type TypeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// Admin configures the admin listener.
type Admin struct {
	// Listen is its address, host and port.
	Listen string `json:"listen"`
	// TLS is how it speaks TLS; nil is plain HTTP.
	TLS *ListenerTLS `json:"tls"`
}

// Upstream is a backend.
type Upstream struct {
	// Name is by which routes name it.
	Name string `json:"name"`
	// Endpoints are the base URLs (scheme, host and port) of the backend's servers, all of one scheme.
	Endpoints []string `json:"endpoints"`
	// Dialect says how much of Kubernetes' conventions the backend keeps.
	Dialect Dialect `json:"dialect"`
	// TokenFile is a file with the bearer token of what the gateway asks on its own account: the objects that policies
	// refer to, and what users may do. Empty means none. That of a file is relative to its directory.
	TokenFile string `json:"tokenFile"`
	// TLS is how it is known, and what is shown to it, where its endpoints have the scheme https; nil means the
	// authorities of the system.
	TLS *UpstreamTLS `json:"tls"`
	// Kubeconfig is a file that says of Endpoints, TLS and TokenFile what there is to say, in the context of the name
	// KubeconfigContext, or else its current one. That of a file is relative to its directory.
	Kubeconfig        string       `json:"kubeconfig"`
	KubeconfigContext string       `json:"kubeconfigContext"`
	account           *rest.Config // of the kubeconfig
	// Credentials says how it is told who asks.
	Credentials Credentials `json:"credentials"`
	// Upgrades are the subresources ('pods/exec', 'machines.example.com/console') and the prefixes of paths that are no
	// resources ('/live') on which clients may go on in another protocol: WebSocket or SPDY; nil is the default
	// of AllowedUpgrades.
	Upgrades []string `json:"upgrades"`
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
	// Balance is about backends with several servers, and with servers that fail.
	Balance `json:",inline"`
}

// Route sends requests to an upstream.
type Route struct {
	// Host is the host name of the requests, without a port and in lower case; empty means any.
	Host string `json:"host"`
	// PathPrefix is a path of whole segments: "/v2" is a prefix of "/v2" and "/v2/orders" but not of "/v20".
	PathPrefix string `json:"pathPrefix"`
	// Upstream is the name of the upstream.
	Upstream string `json:"upstream"`
}

// Limits bound what a request may take.
type Limits struct {
	// BodyBytes is the size of the largest request body.
	BodyBytes int64 `json:"bodyBytes"`
	// BodiesInFlightBytes bounds all request bodies in memory together.
	BodiesInFlightBytes int64 `json:"bodiesInFlightBytes"`
	// HeaderBytes bounds a request's head, URIBytes its target, Headers the number of its header lines.
	HeaderBytes int32 `json:"headerBytes"`
	URIBytes    int32 `json:"uriBytes"`
	Headers     int32 `json:"headers"`
	// JSONDepth is how deep a document may be nested, JSONNodes how many values and members it may have.
	JSONDepth int32 `json:"jsonDepth"`
	JSONNodes int32 `json:"jsonNodes"`
	// Connections is the largest number of client connections.
	Connections int32 `json:"connections"`
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

// Default is the configuration of an empty file. It lacks upstreams and routes.
func Default() *Configuration {
	return &Configuration{
		TypeMeta: TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Listen:   "127.0.0.1:8080",
		Admin:    Admin{Listen: "127.0.0.1:8081"},
		Limits: Limits{
			BodyBytes:           3 << 20,
			BodiesInFlightBytes: 256 << 20,
			HeaderBytes:         16 << 10,
			URIBytes:            8 << 10,
			Headers:             128,
			JSONDepth:           64,
			JSONNodes:           1 << 20,
			Connections:         64 << 10,
		},
		Timeouts: Timeouts{
			HeaderDeadlineSeconds: 10,
			BodyDeadlineSeconds:   60,
			IdleTimeoutSeconds:    120,
			WriteTimeoutSeconds:   30,
			// As long as a kubelet's.
			UpgradeIdleTimeoutSeconds: 4 * 60 * 60,
		},
		DrainSeconds:            10,
		ShutdownDeadlineSeconds: 30,
		UnderscoreHeaders:       Refuse,
		AdmitOn:                 AdmitOnRequest,
	}
}

func defaultUpstream() Upstream {
	return Upstream{
		Dialect:                Kubernetes,
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
