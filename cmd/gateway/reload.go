package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/watch"
	"github.com/admission-gateway/gateway/policies/finding"
)

// reloads bring changes of the configuration into force.
type reloads struct {
	file  string        // empty if there are flags alone
	flags *config.Flags // nil if nothing is read again

	mu      sync.Mutex // one change at a time: of the configuration, or of bundles
	commit  sync.Mutex // held for a moment, while a configuration comes into force
	isOver  bool       // the gateway drains, and nothing changes any more; guarded by commit
	watches context.Context
	stop    func() // ends what depends on the configuration, and waits for it

	shown atomic.Pointer[admin.Configuration]
}

// configPoll and configQuiet are how often the configuration file is looked at even if no change is seen, and how long
// it must be left alone after a change before it is read.
const (
	configPoll  = time.Minute
	configQuiet = 100 * time.Millisecond
)

// applied notes that a configuration is in force but for the keys that need a restart.
func (r *reloads) applied(c *config.Configuration, at time.Time, pending ...string) {
	r.shown.Store(&admin.Configuration{Hash: c.Hash(), LoadTime: at.UTC(), NeedsRestart: pending})
}

// watch keeps everything up to date with its files until ctx is done.
func (r *reloads) watch(ctx context.Context, n *node) {
	r.mu.Lock()
	r.watches = ctx
	r.begin(n)
	r.mu.Unlock()
	if r.flags == nil {
		return
	}
	files := watch.Files{
		Of: "the configuration file", Dirs: func() []string { return r.dirs(n.config.Load()) },
		Changed: func() { n.reload(false) },
		Poll:    configPoll, Quiet: configQuiet, Patience: 20 * configQuiet, Log: n.log,
		System: &n.watches,
	}
	go files.Run(ctx)
}

// dirs are the directories of the files that make a configuration.
func (r *reloads) dirs(c *config.Configuration) []string {
	var dirs []string
	if r.file != "" {
		dirs = append(dirs, filepath.Dir(r.file))
	}
	for i := range c.Upstreams {
		if k := c.Upstreams[i].Kubeconfig; k != "" {
			dirs = append(dirs, filepath.Dir(k))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// begin starts what depends on the configuration in force.
func (r *reloads) begin(n *node) {
	ctx, cancel := context.WithCancel(r.watches)
	var running sync.WaitGroup
	manager, dialects := n.manager.Load(), n.dialects.Load()
	running.Go(func() { manager.Run(ctx) })
	go dialects.run(ctx, n.mistaken)
	r.stop = func() {
		cancel()
		running.Wait()
	}
}

// end keeps the configuration in force as it is from now on, and returns it.
func (r *reloads) end(n *node) *config.Configuration {
	r.commit.Lock()
	defer r.commit.Unlock()
	r.isOver = true
	return n.config.Load()
}

// readFiles reads the configuration and the policy files again.
func (n *node) readFiles() {
	if !n.reload(true) {
		n.manager.Load().Reload()
	}
}

// reload reads the configuration again, and brings what has changed into force. It reports whether the policy files
// were read with it. Without a request for it, what has not changed is not logged.
func (n *node) reload(isAsked bool) (readsPolicies bool) {
	r := &n.reloads
	if r.flags == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	running := n.config.Load()
	next, pending, err := running.Reload(r.file, *r.flags)
	if err != nil {
		n.configurationRefused(err, isAsked)
		return false
	}
	before := r.shown.Load()
	if next.IsSame(running) {
		if isAsked || before.LastFailure != nil || !slices.Equal(pending, before.NeedsRestart) {
			n.log.Info("the configuration is the one in force", "hash", next.Hash())
			n.configurationLoaded(running, pending, before.LoadTime)
		}
		return false
	}
	if err := n.apply(next); err != nil {
		n.configurationRefused(err, isAsked)
		ask(n.rerouting) // sockets may have been opened for policy files that came with it
		return true
	}
	n.log.Info("the configuration is in force", "hash", next.Hash())
	n.configurationLoaded(next, pending, time.Now())
	return true
}

// apply brings a configuration into force, as a whole. An error leaves the one in force as it is.
func (n *node) apply(c *config.Configuration) error {
	paths, how, err := n.policyOptions(c)
	if err != nil {
		return err
	}
	before, gatewayBefore, asked := n.manager.Load(), n.gateway.Load(), n.dialects.Load()
	manager, found := before.Next(paths, how)
	if manager == nil {
		return refusedPolicies(
			lines(slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Severity != finding.Error })))
	}
	gateway, err := gatewayBefore.Next(n.gatewayOptions(c, manager))
	if err != nil {
		return err
	}
	asking := newDialects(c, gateway, n.log)
	isKept := func(u *config.UpstreamSpec) bool { return gateway.Keeps(u.Name, gatewayBefore) }
	asking.forget(func(u *config.UpstreamSpec) bool { return isKept(u) && !asked.isOpen(u.Name) })
	if err := n.mustAnswer(asking, isKept); err != nil {
		gateway.Discard()
		return err
	}
	opened, err := n.sockets.open(c, addressesOf(c))
	if err != nil {
		gateway.Discard()
		return err
	}
	ofTable, closed := n.sockets.openEach(c, gateway.Addresses())
	opened = append(opened, ofTable...)
	n.reloads.stop()
	defer n.reloads.begin(n)
	if err := n.replace(gateway, gatewayBefore, opened, closed, func() {
		n.config.Store(c)
		n.manager.Store(manager)
		n.dialects.Store(asking)
		manager.Begin(before)
	}); err != nil {
		return err
	}
	ask(n.rerouting) // the policy files may have come into force with it
	n.idle.mayChange()
	if err := n.logs.SetLevel(string(c.Telemetry.Log.Level)); err != nil {
		return err // cannot be: the level was checked with the configuration
	}
	if shortage := c.Limits.Shortage(); shortage != "" {
		n.log.Warn("the memory for requests is short", "problem", shortage)
	}
	return nil
}

// mustAnswer returns an error unless all new backends whose dialect is not configured answer as ordinary APIs.
func (n *node) mustAnswer(asking *dialects, isKept func(*config.UpstreamSpec) bool) error {
	fresh := slices.DeleteFunc(asking.assumed(), func(u config.UpstreamSpec) bool { return isKept(&u) })
	if err := asking.ask(context.Background(), fresh); err != nil {
		return err
	}
	for _, u := range fresh {
		if asking.isOpen(u.Name) {
			return fmt.Errorf("the upstream '%s' does not answer whether it is a Kubernetes API server; `dialect` says it without a question", u.Name)
		}
	}
	return nil
}

// configurationLoaded shows what is in force.
func (n *node) configurationLoaded(c *config.Configuration, pending []string, at time.Time) {
	n.reloads.applied(c, at, pending...)
	n.metrics.ConfigurationLoaded(c.Hash(), pending, time.Now())
	for _, key := range pending {
		setting := config.SettingOf(key)
		n.log.Warn("a changed setting of the configuration needs a restart of the gateway", "key", key, "cause",
			setting.Restart)
	}
}

// configurationRefused shows why a configuration is not in force.
func (n *node) configurationRefused(err error, isAsked bool) {
	shown := *n.reloads.shown.Load()
	findings := strings.Split(err.Error(), "\n")
	if failed := shown.LastFailure; failed != nil && slices.Equal(failed.Findings, findings) && !isAsked {
		return
	}
	shown.LastFailure = &admin.Failure{Time: time.Now().UTC(), Findings: findings}
	n.reloads.shown.Store(&shown)
	n.metrics.ConfigurationRejected()
	for _, line := range findings {
		n.log.Error("configuration", "finding", line)
	}
	n.log.Error("the configuration is refused, the one in force stays", "hash", shown.Hash)
}

// configurationHealth is the check of the configuration, whose errors and pending restarts keep no request from being
// served.
func (n *node) configurationHealth() error {
	shown := n.reloads.shown.Load()
	switch {
	case shown.LastFailure != nil:
		return admin.Warning{Err: errors.New("the file is refused: " + strings.Join(shown.LastFailure.Findings, "; "))}
	case len(shown.NeedsRestart) > 0:
		return admin.Warning{Err: errors.New("a restart is needed for " + strings.Join(shown.NeedsRestart, ", "))}
	}
	return nil
}
