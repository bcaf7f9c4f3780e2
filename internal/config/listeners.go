package config

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FirstListener is the name of the listener that Listen and TLS of a Configuration describe.
const FirstListener = "listen"

// A Listener serves clients beside the one that Listen and TLS of a Configuration describe, by the same routes.
type Listener struct {
	// Name is the name of the listener in logs and messages.
	Name string `json:"name"`
	// Listen is the address, host and port, on which clients are served. Listeners may share it: TLS and
	// ProxyProtocol are then the same in all of them or in none, and requests go by their host.
	Listen string `json:"listen"`
	// Hosts are the hosts whose requests are taken, '*.' before the end of names with any labels in its place. Empty is
	// all that no other listener of the address takes.
	Hosts []string `json:"hosts"`
	// TLS is how clients are served by TLS; nil is plain HTTP.
	TLS *ListenerTLS `json:"tls"`
	// RedirectToHTTPS sends clients of plain HTTP to the same URL by https. Requests of ACME, below
	// '/.well-known/acme-challenge/', are served.
	RedirectToHTTPS *RedirectToHTTPS `json:"redirectToHTTPS"`
	// HSTS has browsers use https alone, by the header Strict-Transport-Security of each answer.
	HSTS *HSTS `json:"hsts"`
	// ProxyProtocol is for load balancers that say by the PROXY protocol, version 1 or 2, who the client is.
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol"`
	// HalfClose says whether a client that closes its end of a connection of HTTP/1.1 has left; empty is Abandon.
	// Listeners that share an address have the same.
	HalfClose HalfClose `json:"halfClose"`
}

// RedirectToHTTPS sends clients elsewhere.
type RedirectToHTTPS struct {
	// Code is that of the answer: 308, or 301, after which clients may change the method to GET.
	Code int32 `json:"code"`
	// Port is where https is served.
	Port int32 `json:"port"`
}

// HSTS has browsers use https alone (RFC 6797).
type HSTS struct {
	// MaxAgeSeconds is how long a browser keeps to it; 0 has it forget.
	MaxAgeSeconds int32 `json:"maxAgeSeconds"`
	// IncludeSubDomains is for all hosts below the one that was asked too.
	IncludeSubDomains bool `json:"includeSubDomains"`
	// Preload lets browsers know of it before the first request, if the host is on their list.
	Preload bool `json:"preload"`
}

// ProxyProtocol says who begins connections with the PROXY protocol.
type ProxyProtocol struct {
	// From are the peers, as addresses or CIDR blocks, that must begin each connection by it. No other peer may.
	From []Prefix `json:"from"`
}

// leastPreload is the least age, of a year, with which the list of browsers takes a host.
const leastPreload = 365 * 24 * 60 * 60

func defaultRedirect() RedirectToHTTPS {
	return RedirectToHTTPS{Code: http.StatusPermanentRedirect, Port: 443}
}

func defaultHSTS() HSTS { return HSTS{MaxAgeSeconds: leastPreload} }

// Value is that of the header.
func (h *HSTS) Value() string {
	value := fmt.Sprintf("max-age=%d", h.MaxAgeSeconds)
	if h.IncludeSubDomains {
		value += "; includeSubDomains"
	}
	if h.Preload {
		value += "; preload"
	}
	return value
}

// AllListeners are those of the configuration. The first is that of Listen and TLS, unless Listen is empty.
func (c *Configuration) AllListeners() []Listener {
	if c.Listen == "" {
		return c.Listeners
	}
	return append([]Listener{{Name: FirstListener, Listen: c.Listen, TLS: c.TLS}}, c.Listeners...)
}

// listeners checks where clients are served.
func (v *validator) listeners(c *Configuration) {
	if c.Listen != "" || len(c.Listeners) == 0 {
		v.check("listen", addressProblem(c.Listen))
	} else if c.TLS != nil {
		v.check("tls", "must not be set where `listen` is empty")
	}
	v.listenerTLS("tls", c.TLS)
	for i := range c.Listeners {
		v.listener(fmt.Sprintf("listeners[%d]", i), c, i)
	}
}

func (v *validator) listener(path string, c *Configuration, i int) {
	l := &c.Listeners[i]
	switch {
	case l.Name == "":
		v.check(path+".name", "Required value")
	case len(validation.IsDNS1123Label(l.Name)) > 0:
		v.check(path+".name", fmt.Sprintf("must be at most 63 lower-case letters, digits and '-', with a letter or digit at both ends, not '%s'", l.Name))
	case l.Name == FirstListener:
		v.check(path+".name", fmt.Sprintf("must not be '%s', which is the listener of `listen` and `tls`", l.Name))
	}
	v.check(path+".listen", addressProblem(l.Listen))
	for j, host := range l.Hosts {
		v.check(fmt.Sprintf("%s.hosts[%d]", path, j), takenHostProblem(host))
	}
	v.listenerTLS(path+".tls", l.TLS)
	if l.HalfClose != "" && !slices.Contains(halfCloses, l.HalfClose) {
		v.check(path+".halfClose", notOneOf(string(l.HalfClose), halfCloses))
	}
	if r := l.RedirectToHTTPS; r != nil {
		if l.TLS != nil {
			v.check(path+".redirectToHTTPS", fmt.Sprintf("must not be set where `%s.tls` is", path))
		}
		if r.Code != http.StatusMovedPermanently && r.Code != http.StatusPermanentRedirect {
			v.check(path+".redirectToHTTPS.code", fmt.Sprintf("must be 301 or 308, not %d", r.Code))
		}
		between(v, path+".redirectToHTTPS.port", r.Port, 1, 1<<16-1)
	}
	if h := l.HSTS; h != nil {
		if l.TLS == nil {
			v.check(path+".hsts",
				fmt.Sprintf("must not be set without `%s.tls`: browsers do not believe it by plain HTTP", path))
		}
		between(v, path+".hsts.maxAgeSeconds", h.MaxAgeSeconds, 0, 1<<31-1)
		if h.Preload && (!h.IncludeSubDomains || h.MaxAgeSeconds < leastPreload) {
			v.check(path+".hsts.preload", fmt.Sprintf("must not be true unless `%s.hsts.includeSubDomains` is, and `%s.hsts.maxAgeSeconds` is at least %d: the list of browsers asks for both", path, path, leastPreload))
		}
	}
	if p := l.ProxyProtocol; p != nil && len(p.From) == 0 {
		v.check(path+".proxyProtocol.from", "Required value: must name the peers that begin connections with the PROXY protocol")
	}
	v.beside(path, c, i)
}

// beside checks a listener against those before it.
func (v *validator) beside(path string, c *Configuration, i int) {
	l, all := &c.Listeners[i], c.AllListeners()
	for j := range all[:len(all)-len(c.Listeners)+i] {
		other := &all[j]
		if other.Name == l.Name && l.Name != "" && l.Name != FirstListener {
			v.check(path+".name", fmt.Sprintf("must be unique; another listener is '%s' too", l.Name))
		}
		if other.Listen != l.Listen {
			continue
		}
		switch {
		case (other.TLS == nil) != (l.TLS == nil):
			v.check(path+".tls", fmt.Sprintf("must be set, or not, as in the listener '%s', which has the same address",
				other.Name))
		case !reflect.DeepEqual(other.ProxyProtocol, l.ProxyProtocol):
			v.check(path+".proxyProtocol",
				fmt.Sprintf("must be the same as in the listener '%s', which has the same address", other.Name))
		case other.ServesHalfClosed() != l.ServesHalfClosed():
			v.check(path+".halfClose",
				fmt.Sprintf("must be the same as in the listener '%s', which has the same address", other.Name))
		case len(l.Hosts) == 0 && len(other.Hosts) == 0:
			v.check(path+".hosts",
				fmt.Sprintf("Required value: the listener '%s' takes all other requests to the address", other.Name))
		}
		for k, host := range l.Hosts {
			if slices.Contains(other.Hosts, host) {
				v.check(fmt.Sprintf("%s.hosts[%d]", path, k),
					fmt.Sprintf("must not be '%s', which the listener '%s' takes on the same address", host,
						other.Name))
			}
		}
	}
}

// takenHostProblem says what is wrong with a host whose requests a listener takes.
func takenHostProblem(host string) string {
	end, isWildcard := strings.CutPrefix(host, "*.")
	switch {
	case end == "" || isWildcard && strings.Trim(end, "0123456789.:") == "":
		return "must name a host"
	case hostProblem(end) != "":
		return fmt.Sprintf("must be a host name in lower case without a port, or '*.' before the end of names, not '%s'", host)
	}
	return ""
}
