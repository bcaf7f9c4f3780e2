package config

import "fmt"

// Undescribed says what happens to the requests to an ordinary API that no policy file describes.
type Undescribed string

// The ways to deal with such requests.
const (
	// PassUndescribed forwards them as they came.
	PassUndescribed Undescribed = "Pass"
	// DenyWrites forwards GET, HEAD and OPTIONS only.
	DenyWrites Undescribed = "DenyWrites"
	// DenyUndescribed forwards none.
	DenyUndescribed Undescribed = "Deny"
)

var undescribedWays = []Undescribed{PassUndescribed, DenyWrites, DenyUndescribed}

// UndescribedOn returns what happens to the undescribed requests of a route to the upstream: the route's
// own word, else the upstream's, else Pass.
func (u *UpstreamSpec) UndescribedOn(r *Route) Undescribed {
	switch {
	case r.Undescribed != "":
		return r.Undescribed
	case u.Undescribed != "":
		return u.Undescribed
	}
	return PassUndescribed
}

// undescribed checks the settings of upstreams and routes. On an upstream of the dialect Kubernetes
// they would be without effect, and their author would rely on them.
func (v *validator) undescribed(path string, value Undescribed, u *UpstreamSpec) {
	if value == "" {
		return
	}
	for _, known := range undescribedWays {
		if value == known {
			if u != nil && u.Dialect == Kubernetes {
				v.check(path, fmt.Sprintf("must not be set for the upstream '%s', whose dialect is Kubernetes: "+
					"only an upstream of the dialect Plain has undescribed requests", u.Name))
			}
			return
		}
	}
	v.check(path, notOneOf(string(value), undescribedWays))
}

// saysUndescribed reports whether the file says what happens to the undescribed requests to an upstream.
func (c *Configuration) saysUndescribed(u *UpstreamSpec) bool {
	if u.Undescribed != "" {
		return true
	}
	for i := range c.Routes {
		if c.Routes[i].Upstream == u.Name && c.Routes[i].Undescribed != "" {
			return true
		}
	}
	return false
}

// upstreamOf returns the upstream of a route; nil if none has the name.
func (c *Configuration) upstreamOf(r *Route) *UpstreamSpec {
	for i := range c.Upstreams {
		if c.Upstreams[i].Name == r.Upstream {
			return &c.Upstreams[i]
		}
	}
	return nil
}
