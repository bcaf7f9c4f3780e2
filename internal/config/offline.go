package config

import (
	"net/netip"
	"slices"
)

// Offline returns the configuration of a gateway that treats requests as one of c does, but asks the servers at
// addresses, a host and a port for each upstream, in place of the upstreams' own. It has one listener, and reads no
// certificates and tokens. If c identifies users, the headers X-Remote-* of requests from this machine name them.
func (c *Configuration) Offline(addresses []string) *Configuration {
	o := *c
	o.Listen, o.TLS, o.Listeners = Default().Listen, nil, nil
	o.Upstreams, o.Routes = slices.Clone(c.Upstreams), slices.Clone(c.Routes)
	for i := range o.Routes {
		r := &o.Routes[i]
		at := slices.IndexFunc(c.Upstreams, func(u UpstreamSpec) bool { return u.Name == r.Upstream })
		if at >= 0 && r.BackendHost == ReplaceHost {
			r.BackendHost = BackendHost(c.Upstreams[at].Authority())
		}
	}
	for i := range o.Upstreams {
		u := defaultUpstream()
		is := &c.Upstreams[i]
		u.Name, u.Dialect, u.Credentials, u.Upgrades = is.Name, is.Dialect, is.Credentials, is.Upgrades
		u.ErrorFormat, u.ErrorTemplate, u.Undescribed = is.ErrorFormat, is.ErrorTemplate, is.Undescribed
		u.Endpoints = []string{"http://" + addresses[i] + is.BasePath()}
		o.Upstreams[i] = u
	}
	if c.Identity != nil {
		o.Identity = &Identity{Anonymous: c.Identity.Anonymous, Tokens: c.Identity.Tokens}
		if c.Identity.Knows() {
			o.Identity.Authenticators = []Authenticator{LoopbackHeaders()}
		}
	}
	return &o
}

// LoopbackHeaders returns the authenticator that believes the headers X-Remote-* of this machine.
func LoopbackHeaders() Authenticator {
	loopback := Prefix{Prefix: netip.MustParsePrefix("127.0.0.0/8")}
	return Authenticator{RequestHeader: &RequestHeader{Addresses: []Prefix{loopback}}}
}
