package main

import (
	"fmt"
	"slices"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lint"
	"github.com/admission-gateway/gateway/policies/source"
)

// check checks files, against a configuration if there is one. It returns the paths that were
// checked. timed is called with the times of the stages; it may be nil.
func check(paths []string, file string, timed func([]policies.StageTime)) ([]finding.Finding, []string) {
	if file == "" {
		return examine(source.Read(paths, &source.Progress{}), nil, timed), paths
	}
	c, err := loadForCheck(file)
	if err != nil {
		return misconfigured(file, err), paths
	}
	if len(paths) == 0 {
		paths = c.Policies.Names()
	}
	files := readFor(paths, c)
	found := append(examine(files, c, timed), accountless(c, files)...)
	if shortage := c.Limits.Shortage(); shortage != "" {
		found = append(found, finding.Finding{File: policies.Configuration, Field: "limits", Message: shortage,
			Severity: finding.Warning})
	}
	return placed(file, found), paths
}

// misconfigured returns what is wrong with a configuration that cannot be used. Policy files are not checked against
// it.
func misconfigured(file string, err error) (found []finding.Finding) {
	for _, p := range config.Problems(file, err) {
		found = append(found, finding.Finding{File: p.File, Line: p.Line, Column: p.Column, Field: p.Field,
			Message: p.Message})
	}
	return finding.Sort(found)
}

// placed gives the findings about a configuration their places in its file.
func placed(file string, found []finding.Finding) []finding.Finding {
	where := config.Places(file)
	return policies.Place(found, func(path string) (string, int, int) {
		at := where(path)
		return at.File, at.Line, at.Column
	})
}

// loadForCheck reads a configuration. It may be meant for a pod, in which it needs no upstream.
func loadForCheck(file string) (*config.Configuration, error) {
	return config.Load(file, config.Flags{Pod: config.Pod{Host: "kubernetes.default.svc", Port: "443"}})
}

// examine compiles files as the gateway does, and reviews them; c and timed may be nil.
func examine(files *source.Source, c *config.Configuration, timed func([]policies.StageTime)) []finding.Finding {
	defer memory.Spare()()
	var found []finding.Finding
	if c == nil {
		_, found = policies.CompileTimed(files, timed)
	} else {
		gateway := asked(c)
		gateway.Timed, gateway.DescribesRoutes, gateway.Reviews = timed, true, true
		var broken []finding.Finding
		gateway.Bundles, broken = bundlesForCheck(c)
		_, found = policies.CompileFor(files, gateway)
		found = append(found, broken...)
	}
	found = lint.Refine(finding.Sort(found), files.Files)
	noteOwners(found, files)
	return found
}

// asked says what policy files may ask of a gateway with the configuration.
func asked(c *config.Configuration) policies.Gateway {
	g := policies.Gateway{Upstreams: []string{}, SharedLimits: c.Redis != nil, NoIdentity: c.Identity == nil}
	g.LocalLocks, g.MayLoseUpdates = c.LocksLocally()
	g.AuditSinks = c.Telemetry.Audit.Sinks()
	byName := map[string]config.UpstreamSpec{}
	for _, u := range c.Upstreams {
		g.Upstreams = append(g.Upstreams, u.Name)
		byName[u.Name] = u
	}
	if w := c.Kubernetes.Watch; w != nil {
		g.Controller, g.Watches = w.ControllerName, true
	}
	g.Offers = offers(c)
	for i, r := range c.Routes {
		u := byName[r.Upstream]
		_, target := u.Prefixes(&r)
		g.Routes = append(g.Routes, applicability.Route{
			ErrorTemplate: u.ErrorTemplateOn(&r), ErrorTemplateAt: templateAt(c, i),
			Target: target + "/", Name: r.Name, Host: r.Host, PathPrefix: r.PathPrefix, Upstream: r.Upstream,
			Kubernetes: u.Dialect == config.Kubernetes, IsAnonymous: !u.HasAccount(),
			IsClosed: u.UndescribedOn(&r) == config.DenyUndescribed,
		})
	}
	return g
}

// templateAt returns the path of the name of the ErrorTemplate of a route.
func templateAt(c *config.Configuration, route int) string {
	r := &c.Routes[route]
	if r.ErrorFormat != "" {
		return fmt.Sprintf("routes[%d].errorTemplate", route)
	}
	at := slices.IndexFunc(c.Upstreams, func(u config.UpstreamSpec) bool { return u.Name == r.Upstream })
	return fmt.Sprintf("upstreams[%d].errorTemplate", at)
}

// offers returns what of the configuration has an effect only if policy files name it. What policies refer to may be at
// any upstream that is an API server.
func offers(c *config.Configuration) policies.Offers {
	o := policies.Offers{Upstreams: map[string]string{}, Bundles: map[string]string{},
		DecisionLogs: c.Telemetry.DecisionLogs != nil}
	for i, u := range c.Upstreams {
		if u.Dialect == config.Plain &&
			!slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Upstream == u.Name }) {
			o.Upstreams[u.Name] = fmt.Sprintf("upstreams[%d].name", i)
		}
	}
	for i, b := range c.Bundles {
		if d := c.Telemetry.DecisionLogs; d == nil || d.MaskBundle != b.Name {
			o.Bundles[b.Name] = fmt.Sprintf("bundles[%d].name", i)
		}
	}
	return o
}
