package admin

import (
	"errors"
	"fmt"
	"time"
)

// Status is the answer of /status: everything that operators look at first.
type Status struct {
	Version   string    `json:"version"`
	GoVersion string    `json:"goVersion"`
	StartTime time.Time `json:"startTime"`
	// UptimeSeconds is the time since then.
	UptimeSeconds int64 `json:"uptimeSeconds"`
	// Ready are the checks of /readyz.
	Ready         []Readiness   `json:"ready"`
	Configuration Configuration `json:"configuration"`
	Policies      Policies      `json:"policies"`
	// Verdicts are counted since the start. So are the decisions of rate limits, by their names.
	Verdicts []Tally `json:"verdicts"`
	Limits   []Tally `json:"limits"`
	// Rollouts are the policies that may not be enforced everywhere, and Exceptions are the requests
	// about which policies are not asked.
	Rollouts   []Rollout   `json:"rollouts"`
	Exceptions []Exception `json:"exceptions"`
	Requests   InUse       `json:"requests"`
	// RateLimits are the limits of the RateLimitPolicies in force, RequestLimits the ones of each request.
	RateLimits    []RateLimit   `json:"rateLimits"`
	RequestLimits RequestLimits `json:"requestLimits"`
	// Resources are those that the files describe; Answers counts what came of their requests.
	Resources []Resource      `json:"resources"`
	Answers   []RequestCounts `json:"answers"`
	// Refusals are the last requests that were refused, the newest first.
	Refusals []Refusal `json:"refusals"`
	// Operations are what the files describe of APIs.
	Operations []Operation `json:"operations,omitempty"`
	// Idle are the places of the policy files that apply to no request.
	Idle []Idle `json:"idle"`
	// Listeners are where requests come from.
	Listeners []Listener `json:"listeners"`
	// Upstreams are as in /upstreams.
	Upstreams []Upstream `json:"upstreams"`
	// States are the collections that policies read.
	States       []State       `json:"states"`
	Certificates []Certificate `json:"certificates"`
	Lost         Lost          `json:"lost"`
}

// Configuration is the configuration in force.
type Configuration struct {
	// Hash of its settings, defaults included, without the contents of the files that it names.
	Hash string `json:"hash"`
	// LoadTime is when it came into force.
	LoadTime time.Time `json:"loadTime"`
	// NeedsRestart are the keys whose values in the file differ from those in force until the gateway is started anew.
	NeedsRestart []string `json:"needsRestart,omitempty"`
	// LastFailure is set while the file is refused.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// Readiness is a check of health.
type Readiness struct {
	Name string `json:"name"`
	// Failure says what is wrong; empty if all is well.
	Failure string `json:"failure,omitempty"`
	// Warning says what is wrong although requests are served; empty if nothing is.
	Warning string `json:"warning,omitempty"`
}

// Idle is a place of the policy files that applies to no request.
type Idle struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Reason is Unused if it can never apply and that is meant, else NoResource, NoKind or NoNamespace.
	Reason string `json:"reason"`
	// Place is the file, the line and the column, and Field the field there.
	Place   string `json:"place"`
	Field   string `json:"field"`
	Message string `json:"message"`
	// Rule is the id of the check that found it.
	Rule string `json:"rule"`
}

// Because says why, with the field and the id of the check.
func (i *Idle) Because() string {
	why := i.Message + " [" + i.Rule + "]"
	if i.Field == "" {
		return why
	}
	return i.Field + ": " + why
}

// Operation is a method of a path that files describe.
type Operation struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	// Resource is the name by which policies match it; empty if it is no verb of a resource.
	Resource string `json:"resource,omitempty"`
	// Routes are the routes by which its requests come, and the upstreams that they lead to.
	Routes []string `json:"routes"`
	// Holds says what is checked of requests, and what is done with them.
	Holds string `json:"holds"`
}

// Tally counts the decisions of a policy or a limit.
type Tally struct {
	Policy  string `json:"policy"`
	Verdict string `json:"verdict"`
	Count   int64  `json:"count"`
}

// errored is the verdict of policies that fail.
const errored = "Error"

// Failing says which policies failed, which is not a decision of theirs.
func (s *Status) Failing() (all []string) {
	for _, t := range s.Verdicts {
		if t.Verdict == errored {
			all = append(all, fmt.Sprintf("the policy '%s' failed for %d requests, which are refused unless it is only tried: its log lines and 'gateway explain' say why", t.Policy, t.Count))
		}
	}
	return all
}

// InUse is the room that requests take now.
type InUse struct {
	InFlight int64 `json:"inFlight"`
	// BodyBytes is the memory that they hold, of BodyBytesLimit.
	BodyBytes      int64 `json:"bodyBytes"`
	BodyBytesLimit int64 `json:"bodyBytesLimit"`
}

// State is a collection that policies read of a backend.
type State struct {
	Path string `json:"path"`
	// AgeSeconds is how long ago it was last known to be right; 0 while it is watched.
	AgeSeconds int64 `json:"ageSeconds"`
}

// Certificate is one that the gateway shows, or an authority that it trusts.
type Certificate struct {
	Name       string    `json:"name"`
	ExpireTime time.Time `json:"expireTime"`
}

// Lost counts the lines of the log and the events of the audit log and the decision log that were
// lost.
type Lost struct {
	LogLines    uint64          `json:"logLines"`
	AuditEvents []Audit         `json:"auditEvents"`
	Decisions   []LostDecisions `json:"decisions,omitempty"`
	// Spans will never be at the collector. MetricPushes are times at which metrics could not be sent.
	Spans        uint64 `json:"spans,omitempty"`
	MetricPushes uint64 `json:"metricPushes,omitempty"`
}

// LostDecisions counts the events that a sink of the decision log has lost, for a reason.
type LostDecisions struct {
	Sink   string `json:"sink"`
	Reason string `json:"reason"`
	Events int64  `json:"events"`
}

// Audit counts the events that a sink of the audit log has lost.
type Audit struct {
	Sink   string `json:"sink"`
	Events int64  `json:"events"`
}

// IsReady reports whether all checks are well.
func (s *Status) IsReady() bool {
	for _, one := range s.Ready {
		if one.Failure != "" {
			return false
		}
	}
	return true
}

// IsNewest reports whether the newest files are in force: the configuration's and those of policies.
func (s *Status) IsNewest() bool {
	for i := range s.Policies.Folders {
		if s.Policies.Folders[i].LastFailure != nil {
			return false
		}
	}
	return s.Configuration.LastFailure == nil && s.Policies.LastFailure == nil
}

// report runs the checks of readiness.
func (c checks) report() []Readiness {
	all := make([]Readiness, len(c.all))
	for i, one := range c.all {
		all[i].Name = one.Name
		var warning Warning
		switch err := one.Probe(); {
		case errors.As(err, &warning):
			all[i].Warning = warning.Error()
		case err != nil:
			all[i].Failure = err.Error()
		}
	}
	return all
}
