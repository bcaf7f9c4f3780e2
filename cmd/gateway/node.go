package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/cluster"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/watch"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/bundles"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lastgood"
	"github.com/admission-gateway/gateway/proxy"
	"github.com/admission-gateway/gateway/proxy/events"
)

// node is one running gateway: the public listener, the admin listener and the policies between them.
type node struct {
	config  atomic.Pointer[config.Configuration] // in force
	logs    *telemetry.Log
	log     *slog.Logger // of messages
	metrics *telemetry.Telemetry
	tracer  *tracing.Tracer               // nil if spans are not exported
	gateway atomic.Pointer[proxy.Gateway] // nil until it is made
	admin   *admin.Server
	reloads reloads

	memory  *memory.Budget // of requests, and of data from other servers
	records records
	states  *state.Manager
	limiter *ratelimit.Limiter
	sharing io.Closer // of the limits that gateways share
	// locker locks objects for all gateways; nil if they do not share locks.
	locker    storage.Locker
	watches   watch.System                     // of all files
	files     *credentials.Watcher             // with certificates, keys and tokens
	bundles   *bundles.Bundles                 // nil until they are set up
	manager   atomic.Pointer[policies.Manager] // nil until the first policies are compiled
	shown     shownPolicies
	idle      *idle
	rates     rates
	listening atomic.Bool

	cluster *cluster.Watcher              // whose objects are routed by; nil if there is none
	table   atomic.Pointer[routing.Table] // of the cluster's objects; nil until they are known
	// rerouting has something in it if the policy files may have other routes than those in force.
	rerouting chan struct{}

	private  net.Listener
	sockets  sockets
	failed   chan error               // an unexpected end of a listener
	dialects atomic.Pointer[dialects] // nil until the gateway is made
	mistaken chan error               // that a backend is not what is assumed of it
}

// records are taken down of requests and of decisions.
type records struct {
	audit     *auditLog    // nil if no event is recorded
	decisions *decisionLog // nil if no decision is logged
}

// shownPolicies shows operators the policies, beside the set in force.
type shownPolicies struct {
	loaded  atomic.Pointer[time.Time]     // when the set in force came into force
	refused atomic.Pointer[admin.Failure] // nil while the files are those in force
}

// newNode makes everything that a gateway needs and starts the admin listener, so that what follows can be watched on
// it; then it compiles the policies and opens the public listener. Clients are served from run on.
func newNode(c *config.Configuration, logs *telemetry.Log) (_ *node, err error) {
	log := logs.Messages
	n := &node{
		logs: logs, log: log, failed: make(chan error, 2), mistaken: make(chan error, 1),
		rerouting: make(chan struct{}, 1), idle: newIdle(),
		memory: memory.NewBudget(c.Limits.BodiesInFlightBytes, int(c.Limits.HeavyRequests)),
	}
	n.config.Store(c)
	n.reloads.applied(c, time.Now())
	instance := string(telemetry.AppendRequestID(nil)) // of this process, in all that is sent of it
	if n.metrics, err = telemetry.New(metricsOptions(&c.Telemetry.Metrics, instance)); err != nil {
		return nil, &failure{exitUsage, err}
	}
	logs.SetFailed(n.logFailed)
	if n.tracer, err = newTracer(c.Telemetry.Tracing, instance, log); err != nil {
		return nil, &failure{exitUsage, err}
	}
	if n.states, err = state.NewManager(state.Options{Log: log, Read: func(kind schema.GroupVersionKind) {
		if kind.Kind == "Namespace" {
			n.idle.mayChange()
		}
	}}); err != nil {
		return nil, err
	}
	n.files = credentials.NewWatcher(credentials.Options{Reloaded: n.metrics.CredentialsRead, Log: log,
		System: &n.watches})
	// Readiness shows the ages of both as soon as the admin listener serves.
	if n.cluster, err = n.newCluster(c, instance); err != nil {
		return nil, &failure{exitUsage, fmt.Errorf("kubernetes.watch: %w", err)}
	}
	if n.bundles, err = n.newBundles(); err != nil {
		return nil, &failure{exitUsage, err}
	}
	if n.admin, err = n.newAdmin(logs.Dropped); err != nil {
		return nil, err
	}
	private, err := listenOn(&n.sockets.claims, c.Admin.Listen, "--admin")
	if err != nil {
		return nil, err
	}
	if n.private, err = n.secured(private); err != nil {
		return nil, err
	}
	go func() { n.failed <- n.admin.Serve(n.private) }()
	defer func() {
		if err != nil {
			err = errors.Join(err, n.private.Close())
		}
	}()
	if n.records.decisions, err = newDecisionLog(c.Telemetry.DecisionLogs, instance, n.files, n.metrics, n.tracer,
		log); err != nil {
		return nil, &failure{exitUsage, err}
	}
	n.metrics.ConfigurationLoaded(c.Hash(), nil, time.Now())
	paths, how, err := n.policyOptions(c)
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	manager, found := policies.NewManager(paths, how)
	if manager == nil {
		return nil, refusedPolicies(lines(found))
	}
	n.manager.Store(manager)
	n.bundles.Restore(context.Background())
	limiter := ratelimit.New(0)
	if n.sharing, err = n.share(limiter); err != nil {
		return nil, &failure{exitUsage, err}
	}
	if a := c.Telemetry.Audit; a != nil && a.Log != nil {
		n.watches.Ignore(a.Log.Path)
	}
	if n.records.audit, err = newAudit(c.Telemetry.Audit, n.files, n.metrics, n.tracer, log); err != nil {
		return nil, &failure{exitUsage, err}
	}
	n.metrics.Expect(auditNames(c.Telemetry.Audit), nil)
	n.limiter = limiter
	gateway, err := proxy.New(n.gatewayOptions(c, manager))
	if err != nil {
		return nil, &failure{exitUsage, err} // what of the configuration cannot be used
	}
	n.gateway.Store(gateway)
	asking := newDialects(c, gateway, log)
	if err := asking.ask(context.Background(), asking.assumed()); err != nil {
		return nil, &failure{exitUsage, err}
	}
	n.dialects.Store(asking)
	n.judgeIdle()
	n.metrics.ObserveIdle(n.measureIdle)
	n.metrics.ObserveDroppedLines(logs.Dropped)
	n.metrics.ObserveLostSpans(n.tracer.Delivery().Lost)
	n.metrics.ObserveBodyBytes(gateway.BodyBytesInFlight)
	n.metrics.ObserveCertificates(n.files.Expiries)
	n.metrics.ObserveStates(n.states.Ages)
	n.metrics.ObserveBundles(n.bundles.Ages)
	n.metrics.ObserveUpstreams(n.measureUpstreams)
	n.metrics.ObserveListeners(n.measureListeners)
	if n.cluster != nil {
		n.metrics.ObserveCluster(n.measureCluster)
	}
	n.sockets.admin = private
	if _, err := n.sockets.open(c, gateway.Addresses()); err != nil {
		return nil, err
	}
	if found := n.blocked(c, manager.Current()); len(found) > 0 {
		return nil, refusedPolicies(lines(found))
	}
	return n, nil
}

// policyOptions say how policies are compiled for a configuration, and from which paths those without an owner.
func (n *node) policyOptions(c *config.Configuration) (paths []string, _ policies.Options, _ error) {
	gateway := asked(c)
	gateway.Bundles, gateway.Memory, gateway.Timed = n.bundles.Initial(), n.memory, n.policiesCompiled
	lastGood, err := newLastGood(c)
	paths, owned := commonAndOwned(&c.Policies)
	return paths, policies.Options{
		Owned: owned, Folders: n.policyFolders, Seen: n.metrics.PoliciesSeen, LastGood: lastGood,
		Loaded: n.policiesLoaded, Activated: n.policiesActivated, Confirmed: n.policiesConfirmed,
		Rejected: n.policiesRejected, Blocked: func(set *policies.Set) []finding.Finding { return n.blocked(c, set) },
		Overdue: n.policiesOverdue,
		Log:     n.log, System: &n.watches, Gateway: gateway,
	}, err
}

// gatewayOptions say how requests are served by a configuration.
func (n *node) gatewayOptions(c *config.Configuration, manager *policies.Manager) proxy.Options {
	return proxy.Options{
		Config:       c,
		Routing:      n.routing(manager),
		Policies:     manager.Current,
		Memory:       n.memory,
		Limiter:      n.limiter,
		States:       n.states,
		Locker:       n.locker,
		AsksVersions: true,
		Credentials:  n.files,
		Metrics:      n.metrics,
		Log:          n.log,
		Access:       n.logs.AccessFor(accessOptions(&c.Telemetry.Log)),
		Audit:        n.records.audit.asked(),
		Tracer:       n.tracer,
		Decisions:    n.records.decisions.asked(),
		Pod:          thisPod(),
		LiveChanged:  n.idle.mayChange,
	}
}

// newLastGood keeps policy files for gateways that start later; nil if the configuration does not ask for that.
func newLastGood(c *config.Configuration) (*lastgood.Store, error) {
	l := c.Policies.LastGood
	if l == nil {
		return nil, nil
	}
	s, err := lastgood.New(lastgood.Options{Path: l.Path, KeyFile: l.KeyFile, MaxAge: l.MaxAge(),
		Configuration: c.Hash()})
	if err != nil {
		return nil, fmt.Errorf("policies.lastGood.keyFile: %w", err)
	}
	return s, nil
}

// startNode is newNode for as long as no signal asks for the end: then it returns nil at once, even
// while something slow goes on, such as a load of many policies. Nothing is served yet, and the
// process will end.
func startNode(c *config.Configuration, logs *telemetry.Log) (*node, error) {
	signals, ignore := stopSignals()
	defer ignore()
	type started struct {
		n   *node
		err error
	}
	done := make(chan started, 1)
	go func() {
		n, err := newNode(c, logs)
		done <- started{n, err}
	}()
	select {
	case s := <-done:
		return s.n, s.err
	case s := <-signals:
		logs.Messages.Info("ending before the gateway serves", "cause", s.String())
		return nil, nil
	}
}

// serveSignals are the signals that run understands, for as long as ignore is not called. SIGPIPE ends no gateway: a
// reader of its log that goes away is an error of the write.
func serveSignals() (signals <-chan os.Signal, ignore func()) {
	c, pipes := make(chan os.Signal, 4), make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	// programs that it starts get it as ever, which they would not if it was ignored
	signal.Notify(pipes, syscall.SIGPIPE)
	return c, func() { signal.Stop(c) }
}

// run serves until a signal asks for the end: SIGHUP reads all files again, any other one drains, as does the
// unexpected end of a listener. An error is why the gateway ended on its own, or that requests were cut off.
func (n *node) run(signals <-chan os.Signal) error {
	watching, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	n.reloads.watch(watching, n)
	go n.files.Run(watching)
	go n.bundles.Run(watching)
	go n.keepIdle(watching.Done())
	go n.rates.run(watching.Done(), n.metrics.RequestCounts)
	gateway := n.gateway.Load()
	n.sockets.serve(gateway, n.failed)
	go n.runCluster(watching)
	go n.keepRoutes(watching)
	n.listening.Store(true)
	go memory.ForgetStart()
	readFiles, readCredentials := onDemand(n.readFiles), onDemand(n.files.Reload)
	defer close(readFiles)
	defer close(readCredentials)
	systemd := supervisor{n.log}
	systemd.ready(watching)
	n.log.Info("serving", "listen", n.sockets.text(), "admin", n.private.Addr().String(), "version", version())
	for {
		select {
		case err := <-n.failed:
			if err == nil {
				err = errors.New("it was closed")
			}
			err = fmt.Errorf("a listener failed: %w", err)
			systemd.stopping()
			return errors.Join(err, n.drain(err.Error(), signals))
		case err := <-n.mistaken:
			return err
		case s := <-signals:
			if s == syscall.SIGHUP {
				n.log.Info("reading the configuration, the policy files and those with credentials again", "cause",
					"SIGHUP")
				ask(readFiles)
				ask(readCredentials)
				n.reopenLogs()
				continue
			}
			systemd.stopping()
			return n.drain(s.String(), signals)
		}
	}
}

// onDemand calls f after each demand, one call at a time, until the channel is closed: the sender
// does not wait for f. All that is asked while f runs is one call after it.
func onDemand(f func()) chan<- struct{} {
	demands := make(chan struct{}, 1)
	go func() {
		for range demands {
			f()
		}
	}()
	return demands
}

func ask(demands chan<- struct{}) {
	select {
	case demands <- struct{}{}:
	default: // a call that begins later is due already
	}
}

// drain ends the service in order: first readiness, then, after a while, requests in progress, then new ones. A further
// signal skips a wait. Another process may listen on the same addresses from now on.
func (n *node) drain(cause string, signals <-chan os.Signal) error {
	c := n.reloads.end(n)
	n.admin.Drain()
	for _, l := range n.sockets.offered() {
		if err := l.Offer(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			n.log.Warn("another process cannot take the address over", "address", l.Addr().String(), "cause", err)
		}
	}
	n.gateway.Load().BeginDrain()
	n.log.Info("draining", "cause", cause, "drainSeconds", int(c.DrainSeconds))
	hurry := func(done <-chan struct{}, then func()) {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGHUP {
					continue
				}
				n.log.Info("not waiting any longer", "cause", s.String())
				then()
				return
			case <-done:
				return
			}
		}
	}
	waiting, skip := context.WithTimeout(context.Background(), c.DrainSeconds.Duration())
	hurry(waiting.Done(), skip)
	skip()

	finished := make(chan struct{})
	hurried, cut := context.WithCancel(context.Background())
	defer cut()
	go hurry(finished, cut)
	err := n.finish(hurried)
	n.states.Close()
	close(finished)
	if err != nil {
		err = fmt.Errorf("some requests did not finish within %d seconds (shutdownDeadlineSeconds) and were cut off", c.ShutdownDeadlineSeconds)
	}
	if lost := closeAudit(n.records.audit); lost != nil {
		n.log.Error("the audit log could not be closed", "cause", lost)
	}
	if lost := n.records.decisions.close(); lost != nil {
		n.log.Error("the decision log could not be closed", "cause", lost)
	}
	n.endTelemetry()
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if open := n.admin.Shutdown(last); open != nil {
		n.log.Warn("answers of the admin listener were cut off", "cause", open)
	}
	if open := n.sharing.Close(); open != nil {
		n.log.Warn("the connections to Redis could not be closed", "cause", open)
	}
	if err == nil {
		n.log.Info("all requests are finished")
	}
	return err
}

// finish serves on until what is in progress is done, as long as that may take, and then stops. The listener closes
// last: the gateway that comes after this one may be its only one, and may not begin before this process ends.
func (n *node) finish(hurried context.Context) error {
	c, gateway := n.config.Load(), n.gateway.Load()
	deadline := time.Now().Add(c.ShutdownDeadlineSeconds.Duration())
	requests, cancel := context.WithDeadline(hurried, deadline)
	defer cancel()
	upgrades, cancel := context.WithTimeout(hurried, c.UpgradeDrainSeconds.Duration())
	defer cancel()
	n.log.Info("finishing", "shutdownDeadlineSeconds", int(c.ShutdownDeadlineSeconds), "upgradeDrainSeconds",
		int(c.UpgradeDrainSeconds))
	ended, err := gateway.Drain(requests, upgrades)
	if ended > 0 {
		n.log.Info("upgraded connections and followed logs are ended", "count", ended)
	}
	// What began meanwhile has a moment even if the time is over.
	if least := time.Now().Add(time.Second); deadline.Before(least) {
		deadline = least
	}
	last, cancel := context.WithDeadline(hurried, deadline)
	defer cancel()
	return errors.Join(err, gateway.Shutdown(last))
}

// policiesReady fails while no request may be served. While some may, it says which folders of policy files have
// errors.
func (n *node) policiesReady() error {
	m := n.manager.Load()
	if m == nil {
		return errors.New("no policies are compiled yet")
	}
	return readiness(m.Folders())
}

func (n *node) dialectsDecided() error {
	if d := n.dialects.Load(); d != nil {
		return d.decided()
	}
	return errors.New("the backends have not been asked yet which of them are Kubernetes API servers")
}

// upstreamsReady fails only if no upstream can be served: a request to one that cannot is answered 503.
func (n *node) upstreamsReady() error {
	if !n.listening.Load() {
		return errors.New("no upstream has been asked yet")
	}
	return n.gateway.Load().Ready()
}

// listenerReady fails while no listener is open. Listeners of Gateways that take no requests keep others from nothing.
func (n *node) listenerReady() error {
	if !n.listening.Load() {
		return errors.New("the public listener is not open yet")
	}
	var closed []string
	for name, why := range n.unserved() {
		closed = append(closed, fmt.Sprintf("'%s' takes no requests: %s", name, why))
	}
	if len(closed) == 0 {
		return nil
	}
	slices.Sort(closed)
	err := errors.New(strings.Join(closed, "; "))
	if n.sockets.text() == "" {
		return err
	}
	return admin.Warning{Err: err}
}

func (n *node) policiesLoaded(set *policies.Set, at time.Time) {
	n.shown.loaded.Store(&at)
	n.metrics.Expect(nil, set.Admission().Names())
	n.states.Apply(set.States())
	n.idle.mayChange()
	ask(n.rerouting)
	n.policiesConfirmed(set, at)
}

// policiesCompiled notes how long the stages of a load took.
func (n *node) policiesCompiled(times []policies.StageTime) {
	var stages []telemetry.PolicyStage
	for _, t := range times {
		if t.Kind == "" {
			stages = append(stages, telemetry.PolicyStage{Name: t.Stage, Took: t.Took})
		}
	}
	n.metrics.PoliciesCompiled(stages)
}

// policiesActivated notes a set that came into force by a bundle. What it says of the files stays.
func (n *node) policiesActivated(set *policies.Set, at time.Time) {
	n.shown.loaded.Store(&at)
	n.metrics.Expect(nil, set.Admission().Names())
	n.states.Apply(set.States())
	n.idle.mayChange()
	ask(n.rerouting)
	n.metrics.PoliciesActivated(set.Generation(), set.Hash())
}

func (n *node) policiesConfirmed(set *policies.Set, at time.Time) {
	n.shown.refused.Store(nil)
	n.own().Recovers(theFiles, fmt.Sprintf("the policy files are in force as generation %d", set.Generation()))
	n.metrics.PoliciesLoaded(set.Generation(), set.Hash(), at)
}

func (n *node) policiesRejected(found []finding.Finding) {
	findings := lines(found)
	n.shown.refused.Store(&admin.Failure{Time: time.Now(), Findings: findings})
	ask(n.rerouting)
	n.metrics.PoliciesRejected()
	n.own().Fails(theFiles, "the policy files have errors, and those before stay in force: "+
		strings.Join(findings, "; "))
}

// own records what happens to the gateway itself as Events. Before there is a gateway nothing is recorded.
func (n *node) own() *events.Own {
	if g := n.gateway.Load(); g != nil {
		return g.Own()
	}
	return nil
}

// theFiles are the policy files to Events.
var theFiles = events.Subject{Kind: events.Policies, Name: "files"}

// thisPod is the Pod of the process; the zero value means no Pod.
func thisPod() corev1.ObjectReference {
	pod, _ := events.ThisPod()
	return pod
}

// policiesOverdue shows what has not been loaded yet as what was refused is shown: neither is in force.
func (n *node) policiesOverdue(found finding.Finding) {
	n.shown.refused.Store(&admin.Failure{Time: time.Now(), Findings: []string{found.Named()}})
	n.metrics.PoliciesOverdue()
	n.own().Fails(theFiles, found.Named())
}

// lines are the findings as `gateway check` prints them.
func lines(found []finding.Finding) []string {
	found = finding.Summarized(found)
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.Named()
	}
	return out
}
