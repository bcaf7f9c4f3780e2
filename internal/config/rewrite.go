package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// BackendHost says which Host a backend gets. It is Keep, Replace, or a name.
type BackendHost string

// The ways that are no names.
const (
	// KeepHost sends the client's Host on.
	KeepHost BackendHost = "Keep"
	// ReplaceHost sends the host and port of the upstream's first endpoint.
	ReplaceHost BackendHost = "Replace"
)

// BasePath returns the path of the endpoints' URLs, without a slash at the end.
func (u *UpstreamSpec) BasePath() string {
	if len(u.Endpoints) == 0 {
		return ""
	}
	return basePath(u.Endpoints[0])
}

func basePath(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// Servers returns the endpoints without the base path.
func (u *UpstreamSpec) Servers() []string {
	base := u.BasePath()
	servers := make([]string, len(u.Endpoints))
	for i, e := range u.Endpoints {
		servers[i] = strings.TrimSuffix(strings.TrimSuffix(e, "/"), base)
	}
	return servers
}

// Authority returns the host and port of the first endpoint.
func (u *UpstreamSpec) Authority() string {
	_, authority, _ := strings.Cut(u.Servers()[0], "://")
	return authority
}

// Authorities returns the hosts and ports of the endpoints.
func (u *UpstreamSpec) Authorities() []string {
	all := u.Servers()
	for i, server := range all {
		_, all[i], _ = strings.Cut(server, "://")
	}
	return all
}

// Prefixes returns the prefix of the paths that clients ask for by a route, and what the backend gets in its place;
// "" is the root.
func (u *UpstreamSpec) Prefixes(r *Route) (from, to string) {
	from = strings.TrimSuffix(r.PathPrefix, "/")
	to = u.BasePath() + strings.TrimSuffix(r.AddPrefix, "/")
	if !r.StripPrefix {
		to += from
	}
	return from, to
}

// HostOn returns the Host that the backend gets of requests by a route; empty is the client's own.
func (u *UpstreamSpec) HostOn(r *Route) string {
	switch r.BackendHost {
	case "", KeepHost:
		return ""
	case ReplaceHost:
		return u.Authority()
	}
	return string(r.BackendHost)
}

// basePaths checks the paths of an upstream's endpoints.
func (v *validator) basePaths(path string, u *UpstreamSpec) {
	for i, e := range u.Endpoints {
		base, at := basePath(e), fmt.Sprintf("%s.endpoints[%d]", path, i)
		switch {
		case endpointProblem(e) != "" || endpointProblem(u.Endpoints[0]) != "":
		case base != "" && u.Dialect == Kubernetes:
			v.check(at, fmt.Sprintf("must end after the host and port for the dialect Kubernetes, not '%s'", e))
		case base != u.BasePath():
			v.check(at, fmt.Sprintf("must have the path '%s' of `%s.endpoints[0]`, not '%s'", u.BasePath(), path, base))
		}
	}
}

// rewrites checks what a route changes of requests.
func (v *validator) rewrites(path string, r *Route) {
	if r.AddPrefix != "" {
		v.check(path+".addPrefix", pathPrefixProblem(r.AddPrefix))
	}
	if r.StripPrefix && (r.PathPrefix == "/" || r.PathPrefix == "") {
		v.check(path+".stripPrefix", "must not be set without a `pathPrefix`, the part that is stripped")
	}
	if problem := backendHostProblem(r.BackendHost); problem != "" {
		v.check(path+".backendHost", problem)
	}
}

// backendHostProblem says what is wrong with the Host for a backend; empty means nothing.
func backendHostProblem(h BackendHost) string {
	if h == "" || h == KeepHost || h == ReplaceHost {
		return ""
	}
	u, err := url.Parse("http://" + string(h))
	if err != nil || u.Host != string(h) || u.Port() == "" && strings.HasSuffix(u.Host, ":") || !isHost(u.Hostname()) ||
		strings.ToLower(u.Host) != u.Host {
		return fmt.Sprintf("must be 'Keep', 'Replace' or a host name in lower case with or without a port, not '%s'", h)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.Zone() != "" {
		return "must not have a zone"
	}
	return ""
}
