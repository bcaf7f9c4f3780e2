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
	// Kubeconfig is a file that names the one backend for everything, and the gateway's account there, in the context
	// of the name Context or else its current one.
	Kubeconfig, Context string
	// Pod is the pod that the gateway runs in: the API server of its cluster is the backend if
	// nothing else names one.
	Pod Pod
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
	fail(f.server(c))
	if f.Dialect != "" {
		if d, ok := parseDialect(f.Dialect); !ok {
			fail("--dialect", notOneOf(f.Dialect, dialects))
		} else if len(c.Upstreams) != 1 {
			fail("--dialect", "must not be given where the file has several `upstreams` or none, each with a dialect of its own, unless --upstream is given too")
		} else if c.Upstreams[0].sayDialect(d); d == Kubernetes && c.saysUndescribed(&c.Upstreams[0]) {
			fail("--dialect", "must not be 'Kubernetes' where the file says `undescribed`: only an upstream of the dialect Plain has undescribed requests")
		} else if d == Kubernetes && c.Upstreams[0].BasePath() != "" {
			fail("--dialect", "must not be 'Kubernetes' where the backend's URL has a path")
		}
	}
	if len(f.Policies) > 0 {
		c.Policies.Paths = PolicyPaths(f.Policies...)
	}
	for _, p := range f.Policies {
		if p == "" {
			fail("--policies", "must name a file or directory")
		}
	}
	return errs
}

// server chooses the one backend for everything if the flags do; else, if the file names none, the
// API server of the pod. It returns what is wrong, and with which flag.
func (f *Flags) server(c *Configuration) (flag, problem string) {
	u := defaultUpstream()
	u.Name = DefaultUpstream
	switch {
	case f.Context != "" && f.Kubeconfig == "":
		return "--context", "must not be given without --kubeconfig"
	case f.Upstream != "" && f.Kubeconfig != "":
		return "--kubeconfig", "must not be given beside --upstream: it names a backend too"
	case f.Upstream != "":
		u.Endpoints = []string{f.Upstream}
		flag, problem = "--upstream", endpointProblem(f.Upstream)
	case f.Kubeconfig != "":
		u.Kubeconfig, u.KubeconfigContext = f.Kubeconfig, f.Context
		if err := u.readKubeconfig(); err != nil {
			flag, problem = "--kubeconfig", fmt.Sprintf("the file '%s' %s", f.Kubeconfig, err)
		}
	case len(c.Upstreams) == 0 && c.Kubernetes.Watch != nil:
		return "", "" // all routes may be those of the cluster
	case len(c.Upstreams) == 0:
		own, err := f.Pod.upstream()
		if err != nil {
			return "--upstream", fmt.Sprintf("Required value: name the backend; it is not the API server of this cluster, as the pod has no account for it: %s", err)
		}
		if own == nil {
			return "", ""
		}
		u = *own
	default:
		return "", ""
	}
	u.assumeDialect()
	c.Upstreams, c.Routes = []UpstreamSpec{u}, nil
	return flag, problem
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
