package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/policies/bundles"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/proxy/events"
)

// newBundles makes the bundles of the configuration. None of them is loaded.
func (n *node) newBundles() (*bundles.Bundles, error) {
	sources := map[string]bundles.Source{}
	for i := range n.config.Load().Bundles {
		s, err := bundleSource(&n.config.Load().Bundles[i], n.files, n.tracer)
		if err != nil {
			return nil, fmt.Errorf("bundles[%d]: %w", i, err)
		}
		sources[n.config.Load().Bundles[i].Name] = s
	}
	return bundles.New(bundles.Options{
		Sources: sources, Memory: n.memory, Log: n.log, Activate: n.activateBundle,
		Failed: n.bundleFailed,
	}), nil
}

// bundleFailed counts and records what went wrong with a bundle.
func (n *node) bundleFailed(name string, s bundles.Stage) {
	n.metrics.BundleFailed(name, string(s))
	for _, one := range n.bundles.Status() {
		if one.Name == name {
			n.own().Fails(events.Subject{Kind: events.Bundle, Name: name}, "the bundle "+name+" failed ("+string(s)+
				"): "+one.Failure)
		}
	}
}

// activateBundle has the policies compiled with another version of a bundle.
func (n *node) activateBundle(name string, b modules.Bundle) error {
	n.reloads.mu.Lock() // a set of other files or routes would not have this version
	defer n.reloads.mu.Unlock()
	masks, err := n.records.decisions.masks(name, b)
	if err != nil {
		return err
	}
	found := n.manager.Load().Activate(name, b)
	if !finding.HasErrors(found) {
		n.records.decisions.setMasks(masks)
		n.own().Recovers(events.Subject{Kind: events.Bundle, Name: name}, "another version of the bundle "+name+
			" is in force")
		return nil
	}
	var why []string
	for _, f := range found {
		if f.Severity == finding.Error {
			why = append(why, f.Named())
		}
	}
	return errors.New(strings.Join(why, "; "))
}

// bundleSource is the source of a bundle, and how it is read.
func bundleSource(b *config.Bundle, w *credentials.Watcher, tracer *tracing.Tracer) (bundles.Source, error) {
	s := bundles.Source{
		MinDelay: b.MinDelaySeconds.Duration(), MaxDelay: b.MaxDelaySeconds.Duration(),
		Wait:         b.LongPollingSeconds.Duration(),
		MaxStaleness: b.MaxStalenessSeconds.Duration(), Keep: b.PersistFile,
		From: &bundles.File{Name: b.File, MaxBytes: b.MaxBytes},
	}
	var err error
	if s.Read, err = bundleOptions(b, w); err != nil || b.File != "" {
		return s, err
	}
	s.From, err = bundleServer(b, w, tracer)
	return s, err
}

// bundleOptions says how a bundle is read, with keys from files that may change.
func bundleOptions(b *config.Bundle, w *credentials.Watcher) (func() bundle.Options, error) {
	o := bundle.Options{Name: b.Name, V0: b.RegoVersion == config.RegoV0, MaxBytes: b.MaxUnpackedBytes,
		MaxFiles: int(b.MaxFiles)}
	if b.Signing == nil {
		return func() bundle.Options { return o }, nil
	}
	files := make([]string, len(b.Signing.Keys))
	for i, k := range b.Signing.Keys {
		files[i] = k.File
	}
	keys, err := credentials.Watch(w, "the keys of the bundle "+b.Name, files,
		func(contents [][]byte) (map[string]bundle.Key, error) {
			all := map[string]bundle.Key{}
			for i, k := range b.Signing.Keys {
				text := string(contents[i])
				if k.IsSecret() {
					text = secretIn(contents[i])
				}
				all[k.Name] = bundle.Key{Algorithm: k.Algorithm, Text: text, Scope: k.Scope}
				if err := all[k.Name].Validate(); err != nil {
					return nil, fmt.Errorf("the key in '%s' cannot be used: %w", k.File, err)
				}
			}
			return all, nil
		})
	if err != nil {
		return nil, err
	}
	return func() bundle.Options {
		o := o
		o.Signing = &bundle.Signing{Keys: keys.Get(), KeyID: b.Signing.KeyID, Scope: b.Signing.Scope,
			Exclude: b.Signing.ExcludeFiles}
		return o
	}, nil
}

// bundleServer makes the way to a bundle server, or to a registry.
func bundleServer(b *config.Bundle, w *credentials.Watcher, tracer *tracing.Tracer) (bundles.Fetcher, error) {
	network, token, err := reach(w, "the bundle "+b.Name, b.TLS, b.TokenFile)
	if err != nil {
		return nil, err
	}
	if bundles.IsRegistry(b.URL) {
		network.Trace = spans(tracer, tracing.DoNotPropagate)
		return bundles.NewRegistry(bundles.RegistryOptions{
			URL: b.URL, Network: network, User: b.User, Token: token, Timeout: b.TimeoutSeconds.Duration(),
			MaxBytes: b.MaxBytes,
		})
	}
	network.Trace = spans(tracer, tracing.Propagate)
	return &bundles.Server{
		URL: b.URL, Network: network, Token: token, Timeout: b.TimeoutSeconds.Duration(), MaxBytes: b.MaxBytes,
		Deltas: b.PersistFile == "",
	}, nil
}

// reach makes the way to a server, by files that may change. There is no token without a file.
func reach(w *credentials.Watcher, name string, t *config.UpstreamTLS,
	tokenFile string) (outbound.Options, func() string, error) {
	if t == nil {
		t = &config.UpstreamTLS{}
	}
	own, err := credentials.WatchServiceAccount(w, name, &rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
		Insecure: t.InsecureSkipTLSVerify,
	}})
	if err != nil {
		return outbound.Options{}, nil, err
	}
	network := outbound.Options{TLS: own.OwnTLS}
	if tokenFile == "" {
		return network, nil, nil
	}
	token, err := credentials.WatchToken(w, name, tokenFile)
	if err != nil {
		return outbound.Options{}, nil, err
	}
	return network, token.Get, nil
}

// spans has requests traced; the tracer may be nil.
func spans(tracer *tracing.Tracer, tell tracing.Propagation) func(http.RoundTripper) http.RoundTripper {
	return func(over http.RoundTripper) http.RoundTripper { return tracer.Transport(over, tell) }
}

// describeBundles says how the bundles are.
func (n *node) describeBundles() []admin.Bundle {
	var all []admin.Bundle
	for _, s := range n.bundles.Status() {
		b := admin.Bundle{Name: s.Name, Revision: s.Revision, ActivationTime: timeOrNone(s.Activated),
			ConfirmationTime: timeOrNone(s.Confirmed)}
		if s.Failure != "" {
			b.LastFailure = &admin.BundleFailure{Time: s.Failed.UTC(), Stage: string(s.Stage), Message: s.Failure}
		}
		all = append(all, b)
	}
	return all
}

// bundleRow is how a bundle is, in the columns of `gateway status`.
func bundleRow(b *admin.Bundle) string {
	confirmed, failure := "never", ""
	if b.ConfirmationTime != nil {
		confirmed = b.ConfirmationTime.Format(time.RFC3339)
	}
	if f := b.LastFailure; f != nil {
		failure = fmt.Sprintf("%s at %s: %s", f.Stage, f.Time.Format(time.RFC3339),
			strings.Join(strings.Fields(f.Message), " "))
	}
	return strings.TrimRight(strings.Join([]string{b.Name, b.Revision, confirmed, failure}, "\t"), "\t")
}

func timeOrNone(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (n *node) bundlesReady() error {
	if n.manager.Load() == nil {
		return errors.New("no policies are compiled yet, which bundles need")
	}
	return n.bundles.Ready()
}

// bundlesForCheck are the bundles of a configuration that files may name. What is in files is read,
// and what is wrong with them is found; what a server has is not asked for.
func bundlesForCheck(c *config.Configuration) (map[string]modules.Bundle, []finding.Finding) {
	all := map[string]modules.Bundle{}
	sources := map[string]bundles.Source{}
	files := map[string]string{}
	var found []finding.Finding
	for i := range c.Bundles {
		b := &c.Bundles[i]
		all[b.Name] = modules.Bundle{Usable: func() error { return errNotAsked }}
		if b.File == "" {
			continue
		}
		s, err := bundleSource(b, credentials.NewWatcher(credentials.Options{}), nil)
		if err != nil {
			found = append(found, finding.Finding{File: b.File, Message: err.Error()})
			continue
		}
		sources[b.Name], files[b.Name] = s, b.File
	}
	local := bundles.New(bundles.Options{Sources: sources, Activate: func(name string, b modules.Bundle) error {
		all[name] = b
		_, err := (&decisionLog{config: c.Telemetry.DecisionLogs}).masks(name, b)
		return err
	}})
	local.Restore(context.Background())
	for _, s := range local.Status() {
		if s.Failure != "" {
			found = append(found, finding.Finding{File: files[s.Name], Message: s.Failure})
		}
	}
	return all, found
}

// fileBundles are the bundles of a configuration for commands that play requests. The error names what
// is wrong with the ones in files.
func fileBundles(c *config.Configuration) (map[string]modules.Bundle, error) {
	all, found := bundlesForCheck(c)
	if len(found) > 0 {
		return nil, usageError("the bundles have errors:\n%s", strings.Join(lines(found), "\n"))
	}
	return all, nil
}

// errNotAsked is why the policies of a bundle cannot judge if files are only checked.
var errNotAsked = errors.New("the bundle is not loaded")
