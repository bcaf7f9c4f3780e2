package main

import (
	"cmp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/playground"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
)

// newAdmin makes the listener for operators.
func (n *node) newAdmin(lostLines func() uint64) (*admin.Server, error) {
	c := &n.config.Load().Admin
	o := admin.Options{
		Ready: []admin.Check{
			{Name: "configuration", Probe: n.configurationHealth},
			{Name: "policies", Probe: n.policiesReady},
			{Name: "bundles", Probe: n.bundlesReady, Age: func() time.Duration { return oldest(n.bundles.Ages()) }},
			{Name: "state", Probe: n.statesReady, Age: func() time.Duration { return oldest(n.states.Ages()) }},
			{Name: "dialects", Probe: n.dialectsDecided},
			{Name: "upstreams", Probe: n.upstreamsReady},
			{Name: "listener", Probe: n.listenerReady},
			{Name: "log", Probe: n.logHealth},
		},
		Metrics:   n.metrics.Handler(),
		Policies:  n.describePolicies,
		Forecast:  n.forecast,
		Status:    func() admin.Status { return n.describe(lostLines()) },
		Upstreams: n.describeUpstreams,
		Hosts:     c.AllowedHosts(),
		Profiling: c.Profiling,
		Logger:    n.log,
	}
	play := playground.New(playground.Options{Memory: n.memory, InForce: n.inForce, Log: n.log})
	o.Playground = &admin.Playground{Ask: play.Ask, Examples: func() (any, error) { return playground.Examples() }}
	if n.config.Load().Kubernetes.Watch != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "cluster", Probe: n.clusterReady, Age: n.clusterAge})
	}
	if n.config.Load().Telemetry.Audit != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "audit", Probe: n.auditHealth})
	}
	if n.config.Load().Telemetry.DecisionLogs != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "decision-logs", Probe: n.decisionsHealth})
	}
	if n.tracer != nil || n.metrics.Push() != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "telemetry", Probe: n.telemetryHealth})
	}
	if n.config.Load().Redis != nil {
		o.Ready = append(o.Ready, admin.Check{Name: "redis", Probe: n.redisHealth})
	}
	if c.TokenFile != "" {
		token, err := credentials.WatchToken(n.files, "the token of the admin listener", c.TokenFile)
		if err != nil {
			return nil, usageError("admin.tokenFile: %w", err)
		}
		o.Token = token.Get
	}
	return admin.New(o), nil
}

// inForce returns the policies in force, and the gateway that has them; nil: there are none yet.
func (n *node) inForce() (*policies.Set, policytest.Service) {
	m := n.manager.Load()
	if m == nil {
		return nil, policytest.Service{}
	}
	c := n.config.Load()
	return m.Current(), policytest.Service{Config: c, Gateway: asked(c)}
}

// started is when the process started, as far as it knows.
var started = time.Now()

// describe shows operators everything.
func (n *node) describe(lostLines uint64) admin.Status {
	totals := n.metrics.Totals()
	s := admin.Status{
		Version: version(), GoVersion: runtime.Version(), StartTime: started.UTC().Truncate(time.Second),
		UptimeSeconds: int64(time.Since(started).Seconds()),
		Configuration: *n.reloads.shown.Load(),
		Policies:      n.describePolicies(), Upstreams: n.describeUpstreams().Upstreams,
		Verdicts: tallies(totals.Verdicts), Limits: tallies(totals.Limits),
		Requests:   admin.InUse{InFlight: totals.InFlight, BodyBytesLimit: n.config.Load().Limits.BodiesInFlightBytes},
		RateLimits: n.describeLimits(), RequestLimits: requestLimits(&n.config.Load().Limits),
		Rollouts:     []admin.Rollout{},
		Exceptions:   []admin.Exception{},
		Listeners:    []admin.Listener{},
		States:       []admin.State{},
		Certificates: []admin.Certificate{},
		Lost: admin.Lost{
			LogLines: lostLines, AuditEvents: []admin.Audit{}, Spans: n.tracer.Delivery().Lost(),
			MetricPushes: n.metrics.Push().Lost(),
		},
	}
	if n.listening.Load() {
		s.Requests.BodyBytes = n.gateway.Load().BodyBytesInFlight()
		s.Listeners = n.describeListeners()
	}
	n.describeActivity(&s)
	n.describeTerms(&s, time.Now())
	n.describeOperations(&s)
	s.Idle = n.describeIdle()
	for path, age := range n.states.Ages() {
		s.States = append(s.States, admin.State{Path: path, AgeSeconds: int64(age.Seconds())})
	}
	slices.SortFunc(s.States, func(a, b admin.State) int { return cmp.Compare(a.Path, b.Path) })
	for name, at := range n.files.Expiries() {
		s.Certificates = append(s.Certificates, admin.Certificate{Name: name, ExpireTime: at.UTC()})
	}
	slices.SortFunc(s.Certificates, func(a, b admin.Certificate) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range totals.LostEvents {
		s.Lost.AuditEvents = append(s.Lost.AuditEvents, admin.Audit{Sink: t.Name, Events: t.Count})
	}
	for _, t := range totals.LostDecisions {
		s.Lost.Decisions = append(s.Lost.Decisions, admin.LostDecisions{Sink: t.Name, Reason: t.What, Events: t.Count})
	}
	return s
}

// statesReady fails until each collection was read, or could not be.
func (n *node) statesReady() error {
	if err := n.states.Synced(); err != nil {
		return err
	}
	return warning(n.states.Overdue())
}

// warning returns an error as one that lets a check pass; nil for nil.
func warning(err error) error {
	if err == nil {
		return nil
	}
	return admin.Warning{Err: err}
}

// oldest is the greatest of ages.
func oldest(ages map[string]time.Duration) (age time.Duration) {
	for _, one := range ages {
		age = max(age, one)
	}
	return age
}

// describeListeners shows operators where requests come from.
func (n *node) describeListeners() []admin.Listener {
	var closed map[string]error
	if c := n.sockets.closed.Load(); c != nil {
		closed = *c
	}
	all := []admin.Listener{}
	for _, l := range n.gateway.Load().Listeners(closed) {
		one := admin.Listener{
			Name: l.Name, Addresses: l.Addresses, Protocol: "HTTP", Hosts: append([]string{}, l.Hosts...),
			AsksClients:   l.AsksClients,
			ProxyProtocol: l.HasProxyProtocol, RedirectsToHTTPS: l.Redirects, StrictTransport: l.StrictTransport,
			Routes: l.Routes, Problem: l.Problem,
		}
		if l.HasTLS {
			one.Protocol = "HTTPS"
		}
		all = append(all, one)
	}
	return all
}

// measureListeners counts the listeners by state.
func (n *node) measureListeners() map[string]int {
	counts := map[string]int{"Serving": 0, "Failed": 0}
	if n.listening.Load() {
		counts["Failed"] = len(n.unserved())
		counts["Serving"] = n.gateway.Load().ListenerCount() - counts["Failed"]
	}
	return counts
}

// describeLimits shows operators the limits of the set in force.
func (n *node) describeLimits() []admin.RateLimit {
	all := []admin.RateLimit{}
	m := n.manager.Load()
	if m == nil {
		return all
	}
	for _, l := range m.Current().Limits().List() {
		one := admin.RateLimit{
			Name: l.Name, Mode: cmp.Or(string(l.Mode), string(ratelimit.Enforce)), Key: string(l.Key),
			HeaderName: l.HeaderName,
			Verbs:      l.Verbs, APIGroups: l.APIGroups, Resources: l.Resources, Namespaces: l.Namespaces,
			Requests: int64(l.Requests), PeriodSeconds: int64(l.Period.Seconds()), Burst: int64(l.Burst),
			MaxInFlight: int64(l.InFlight.PerKey), MaxInFlightTotal: int64(l.InFlight.Total),
			QueueLength: int64(l.InFlight.QueueLength),
		}
		if s := l.Sharing; s != nil {
			one.Sharing = &admin.LimitSharing{WhenStoreUnavailable: string(s.WhenUnavailable),
				LeaseSize: int64(s.Lease)}
		}
		all = append(all, one)
	}
	return all
}

// requestLimits shows operators what the configuration says of each request.
func requestLimits(l *config.Limits) admin.RequestLimits {
	return admin.RequestLimits{
		BodyBytes: l.BodyBytes, HeaderBytes: int64(l.HeaderBytes), URIBytes: int64(l.URIBytes),
		Headers:   int64(l.Headers),
		JSONDepth: int64(l.JSONDepth), JSONNodes: int64(l.JSONNodes), Connections: int64(l.Connections),
		HeavyRequests: int64(l.HeavyRequests),
	}
}

// describeOperations shows what the files in force describe of APIs.
func (n *node) describeOperations(s *admin.Status) {
	m := n.manager.Load()
	if m == nil {
		return
	}
	gateway := asked(n.config.Load())
	for _, one := range m.Current().DescribedOperations(gateway.LocalLocks) {
		for _, upstream := range one.Upstreams(gateway.Routes) {
			if p, ok := n.proofOf(upstream, one.Described, one.Method); ok {
				one.Preconditions += "; now, at " + upstream + ", " + p.String()
			}
		}
		s.Operations = append(s.Operations, admin.Operation{
			Method: one.Method, Path: one.Path, Resource: one.Resource,
			Routes: append([]string{}, one.Routes(gateway.Routes)...), Holds: one.Holds(),
		})
	}
}

// proofOf returns who compares preconditions now; see [proxy.Gateway.ProofOf].
func (n *node) proofOf(upstream string, r *resource.Resource, method string) (p plain.Proof, ok bool) {
	if !n.listening.Load() {
		return p, false
	}
	return n.gateway.Load().ProofOf(upstream, r, method)
}

// describeTerms shows rollouts and exceptions as they are at a time.
func (n *node) describeTerms(s *admin.Status, at time.Time) {
	m := n.manager.Load()
	if m == nil {
		return
	}
	terms := m.Current().Terms()
	for _, p := range terms.Rollouts {
		count := p.Count().Numbers()
		one := admin.Rollout{Policy: p.Policy(), Enforced: p.In(at), Would: count.Would, Tried: count.Tried,
			Since: count.Since.UTC().Truncate(time.Second)}
		for _, o := range p.Count().Operations() {
			shown := admin.RolloutOperation{Operation: strings.TrimSpace(o.Method + " " + o.Path), Would: o.Would,
				Tried: o.Tried, Unjudged: o.Unjudged}
			for _, e := range o.Examples {
				shown.Examples = append(shown.Examples,
					admin.RolloutExample{Code: e.Code, Reason: e.Reason, Fields: e.Fields, Count: e.Count,
						Last: e.Last.UTC().Truncate(time.Second)})
			}
			one.Operations = append(one.Operations, shown)
		}
		s.Rollouts = append(s.Rollouts, one)
	}
	slices.SortFunc(s.Rollouts, func(a, b admin.Rollout) int { return cmp.Compare(a.Policy, b.Policy) })
	for _, e := range terms.Exceptions {
		one := admin.Exception{Name: e.Name(), Policies: e.Policies(), Reason: e.Reason(), IsExpired: e.IsOver(at),
			Used: e.Used()}
		one.Folder, one.Owner = m.Current().OriginOf("PolicyException", e.Name())
		if end := e.Expires().UTC(); !e.Expires().IsZero() {
			one.ExpireTime = &end
		}
		s.Exceptions = append(s.Exceptions, one)
	}
}

func tallies(from []telemetry.Tally) []admin.Tally {
	all := make([]admin.Tally, len(from))
	for i, t := range from {
		all[i] = admin.Tally{Policy: t.Name, Verdict: t.What, Count: t.Count}
	}
	return all
}

// forecast shows operators what becomes of a request.
func (n *node) forecast(request string) admin.Forecast {
	shown := admin.Forecast{Request: request, Policies: []admin.Applicability{}, Limits: []admin.Applicability{}}
	if !n.listening.Load() {
		shown.Refusal = "the gateway does not serve requests yet"
		return shown
	}
	f := n.gateway.Load().Forecast(request)
	if f.Refusal != nil {
		shown.Refusal = f.Refusal.Error()
	}
	if p := &f.Place; p.Upstream != "" || p.Route != "" {
		shown.Route = &admin.Route{Name: p.Route, Host: p.Host, PathPrefix: cmp.Or(f.PathPrefix, "/"),
			Upstream: p.Upstream, Rule: p.Rule}
		if p.Gateway != "" {
			shown.Route.Listener = p.Gateway + "/" + p.Listener
		}
	}
	if i := &f.Info; i.Path != "" {
		shown.About = &admin.RequestResource{
			Verb: i.VerbName(), Group: i.Group, Version: i.Version, Resource: i.Resource, Subresource: i.Subresource,
			Namespace: i.Namespace, Name: i.Name, Path: i.Path, IsDescribed: f.IsDescribed,
		}
	}
	shown.Stages = f.Stages
	if p := f.Proof; p != nil {
		shown.Preconditions = &admin.Preconditions{ComparedBy: "Gateway", Because: p.Because}
		if p.ByBackend {
			shown.Preconditions.ComparedBy = "Backend"
		}
		if !p.Since.IsZero() {
			shown.Preconditions.Since = &p.Since
		}
	}
	set := n.manager.Load().Current()
	add := func(to []admin.Applicability, phase string, from []resource.Applicability) []admin.Applicability {
		all := applicabilities(phase, from)
		for i := range all {
			all[i].Folder, all[i].Owner = set.OriginOf(all[i].Kind, all[i].Name)
		}
		return append(to, all...)
	}
	shown.Policies = add(shown.Policies, "Mutating", f.Applicability.Mutating)
	shown.Policies = add(shown.Policies, "Conventions", f.Applicability.Conventions)
	shown.Policies = add(shown.Policies, "Validating", f.Applicability.Validating)
	shown.Policies = add(shown.Policies, "None", f.Applicability.Unbound)
	shown.Limits = add(shown.Limits, "", f.Applicability.Limits)
	return shown
}

func applicabilities(phase string, from []resource.Applicability) (all []admin.Applicability) {
	for _, o := range from {
		all = append(all, admin.Applicability{
			Phase: phase, Kind: o.Kind, Name: o.Name, Applies: string(o.Applies), Because: o.Because,
			Bindings: applicabilities("", o.Bindings),
		})
	}
	return all
}

// describePolicies shows operators the set in force.
func (n *node) describePolicies() admin.Policies {
	m := n.manager.Load()
	if m == nil {
		return admin.Policies{Files: []admin.PolicyFile{}, LastFailure: n.shown.refused.Load()}
	}
	set := m.Current()
	p := admin.Policies{Generation: set.Generation(), Hash: set.Hash(), Files: []admin.PolicyFile{},
		LastFailure: n.shown.refused.Load(), Bundles: n.describeBundles()}
	if at := n.shown.loaded.Load(); at != nil {
		p.LoadTime = at.UTC()
	}
	if r := m.LastReading(); r != nil {
		p.LastReload = &admin.Reload{Time: r.At.UTC(), Outcome: string(r.Outcome), Findings: lines(r.Found)}
	}
	p.Folders = describeFolders(m.Folders())
	for _, f := range set.Files() {
		file := admin.PolicyFile{Path: f.Name, Owner: f.Owner, Objects: []admin.PolicyObject{}}
		for _, o := range f.Objects {
			file.Objects = append(file.Objects, admin.PolicyObject(o))
		}
		p.Files = append(p.Files, file)
	}
	return p
}
