package config

import (
	"fmt"
	"strings"
)

// Flags are the command line's settings; empty ones leave the file's.
type Flags struct {
	// Listen and Admin are addresses.
	Listen, Admin string
	// Upstream is the URL of the one backend for everything; the file's upstreams and routes do not count then.
	Upstream string
	// Dialect is the dialect of the one upstream, in any case of letters.
	Dialect string
	// Policies replace the file's; they are relative to the working directory.
	Policies []string
}

// DefaultUpstream is the name of the upstream that --upstream makes.
const DefaultUpstream = "default"

// apply lays the flags over c.
func (f *Flags) apply(c *Configuration) []error {
	var errs []error
	fail := func(flag, message string) {
		if message != "" {
			errs = append(errs, fmt.Errorf("%s: %s", flag, message))
		}
	}
	if f.Listen != "" {
		fail("--listen", addressProblem(f.Listen))
		c.Listen = f.Listen
	}
	if f.Admin != "" {
		fail("--admin", addressProblem(f.Admin))
		c.Admin.Listen = f.Admin
	}
	if f.Upstream != "" {
		fail("--upstream", endpointProblem(f.Upstream))
		u := defaultUpstream()
		u.Name, u.Endpoints = DefaultUpstream, []string{f.Upstream}
		c.Upstreams, c.Routes = []Upstream{u}, nil
	}
	if f.Dialect != "" {
		if d, ok := parseDialect(f.Dialect); !ok {
			fail("--dialect", notOneOf(f.Dialect, dialects))
		} else if len(c.Upstreams) != 1 {
			fail("--dialect", "must not be given where the file has several `upstreams` or none, each with a dialect of its own, unless --upstream is given too")
		} else {
			c.Upstreams[0].Dialect = d
		}
	}
	if len(f.Policies) > 0 {
		c.Policies = f.Policies
	}
	for _, p := range f.Policies {
		if p == "" {
			fail("--policies", "must name a file or directory")
		}
	}
	return errs
}

// parseDialect reads a dialect as people type it.
func parseDialect(text string) (Dialect, bool) {
	for _, d := range dialects {
		if strings.EqualFold(text, string(d)) {
			return d, true
		}
	}
	return "", false
}
