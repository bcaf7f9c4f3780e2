package main

import (
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lint"
	"github.com/admission-gateway/gateway/policies/source"
)

// check checks files, against a configuration if there is one. It returns the paths that were
// checked. timed is called with the times of the stages; it may be nil.
func check(paths []string, file string, timed func([]policies.StageTime)) ([]finding.Finding, []string, error) {
	if file == "" {
		return examine(source.Read(paths, &source.Progress{}), nil, timed), paths, nil
	}
	c, err := loadForCheck(file)
	if err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 {
		paths = c.Policies.Names()
	}
	files := readFor(paths, c)
	found := append(examine(files, c, timed), accountless(file, c, files)...)
	if shortage := c.Limits.Shortage(); shortage != "" {
		found = append(found, finding.Finding{File: file, Field: "limits", Message: shortage, Severity: finding.Warning})
	}
	return found, paths, nil
}

// loadForCheck reads a configuration. It may be meant for a pod, in which it needs no upstream.
func loadForCheck(file string) (*config.Configuration, error) {
	return config.Load(file, config.Flags{Pod: config.Pod{Host: "kubernetes.default.svc", Port: "443"}})
}

// examine compiles files as the gateway does, and reviews them; c and timed may be nil.
func examine(files *source.Source, c *config.Configuration, timed func([]policies.StageTime)) []finding.Finding {
	defer memory.Spare()() // also while the files are reviewed, when all that was compiled is garbage already
	var found []finding.Finding
	if c == nil {
		_, found = policies.CompileTimed(files, timed)
	} else {
		gateway := asked(c)
		gateway.Timed = timed
		var broken []finding.Finding
		gateway.Bundles, broken = bundlesForCheck(c)
		_, found = policies.CompileFor(files, gateway)
		found = append(found, broken...)
	}
	found = lint.Refine(finding.Sort(append(found, lint.Review(files.Files)...)), files.Files)
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
	for _, r := range c.Routes {
		u := byName[r.Upstream]
		_, target := u.Prefixes(&r)
		g.Routes = append(g.Routes, policies.Route{
			ErrorTemplate: u.ErrorTemplateOn(&r),
			Target:        target + "/", Name: r.Name, Host: r.Host, PathPrefix: r.PathPrefix, Upstream: r.Upstream,
			Kubernetes: u.Dialect == config.Kubernetes, IsAnonymous: !u.HasAccount(), IsClosed: u.UndescribedOn(&r) == config.DenyUndescribed,
		})
	}
	return g
}
