package admin

import "strings"

// Listener takes requests.
type Listener struct {
	// Name is the one of the configuration, or GATEWAY-NAMESPACE/GATEWAY/LISTENER.
	Name string `json:"name"`
	// Addresses are those on which it listens. Listeners may share one.
	Addresses []string `json:"addresses"`
	// Protocol is HTTP or HTTPS.
	Protocol string `json:"protocol"`
	// Hosts are those whose requests it takes; none is all that no other listener of its addresses takes.
	Hosts []string `json:"hosts"`
	// AsksClients says that it asks clients for certificates, ProxyProtocol that load balancers begin its connections
	// with the PROXY protocol, RedirectsToHTTPS that it sends clients elsewhere.
	AsksClients      bool `json:"asksClients,omitempty"`
	ProxyProtocol    bool `json:"proxyProtocol,omitempty"`
	RedirectsToHTTPS bool `json:"redirectsToHTTPS,omitempty"`
	// StrictTransport is the value of Strict-Transport-Security in its answers.
	StrictTransport string `json:"strictTransport,omitempty"`
	// Routes counts the HTTPRoutes, GRPCRoutes and Ingresses that take requests from it, or the routes of the
	// configuration.
	Routes int `json:"routes"`
	// Problem is why it takes no requests, or not on all of its addresses; empty if it does.
	Problem string `json:"problem,omitempty"`
}

// HostsText has the hosts in one line.
func (l *Listener) HostsText() string {
	if len(l.Hosts) == 0 {
		return "*"
	}
	return strings.Join(l.Hosts, ", ")
}

// ProtocolText has the protocol with what is particular to the listener.
func (l *Listener) ProtocolText() string {
	text := l.Protocol
	for _, one := range []struct {
		is   bool
		says string
	}{
		{l.AsksClients, ", client certificates"},
		{l.ProxyProtocol, ", PROXY protocol"},
		{l.RedirectsToHTTPS, ", redirects to https"},
		{l.StrictTransport != "", ", HSTS"},
	} {
		if one.is {
			text += one.says
		}
	}
	return text
}

// State is Serving, or why the listener is not.
func (l *Listener) State() string {
	if l.Problem != "" {
		return "FAILED: " + l.Problem
	}
	return "Serving"
}
