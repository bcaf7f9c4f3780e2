package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/admission-gateway/gateway/internal/cluster"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/proxy"
)

// newCluster makes what routes by the objects of a cluster; nil if the configuration names none.
func (n *node) newCluster(c *config.Configuration, instance string) (*cluster.Watcher, error) {
	w := c.Kubernetes.Watch
	if w == nil {
		return nil, nil
	}
	at := w.ClientConfig()
	server, _, err := rest.DefaultServerUrlFor(at)
	if err != nil {
		return nil, err
	}
	account, err := credentials.WatchServiceAccount(n.files, "the cluster that is watched", at)
	if err != nil {
		return nil, err
	}
	o := cluster.Options{
		Server: server.String(), Account: account, Network: outbound.Options{TLS: account.OwnTLS, Proxy: at.Proxy},
		Namespaces: w.Namespaces, Controller: w.ControllerName, GatewayClass: w.GatewayClass,
		Published: w.PublishedAddresses, Lease: types.NamespacedName{Namespace: w.Lease.Namespace, Name: w.Lease.Name},
		Identity: identityOf(instance), Apply: n.applyTable, Unserved: n.unserved, Log: n.log,
	}
	for _, p := range w.Addresses {
		o.Pool = append(o.Pool, netip.PrefixFrom(p.Addr(), p.Bits()))
	}
	if namespace, name, found := strings.Cut(w.Service, "/"); found {
		o.Service = types.NamespacedName{Namespace: namespace, Name: name}
	}
	if o.Lease.Namespace == "" {
		o.Lease.Namespace = podNamespace()
	}
	return cluster.New(o)
}

// identityOf names this process among those that share a Lease.
func identityOf(instance string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "gateway"
	}
	return host + "_" + instance
}

// podNamespace is the namespace of the Pod that the process runs in, or else 'default'.
func podNamespace() string {
	if text, err := os.ReadFile(filepath.Join(config.ThisPod().Directory, "namespace")); err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text))
	}
	return "default"
}

// routing are the routes of the policy files and of the cluster.
func (n *node) routing(manager *policies.Manager) *routing.Table {
	return routing.Merge(manager.Current().Routing(), n.table.Load())
}

// applyTable brings the routes of the cluster into force.
func (n *node) applyTable(table *routing.Table) error {
	n.reloads.mu.Lock()
	defer n.reloads.mu.Unlock()
	before := n.table.Swap(table)
	o := n.gatewayOptions(n.config.Load(), n.manager.Load())
	err := n.reroute(&o)
	if err != nil {
		n.table.Store(before)
	}
	return err
}

// keepRoutes brings the routes of the policy files into force whenever others may be, until ctx is done.
func (n *node) keepRoutes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.rerouting:
		}
		n.reloads.mu.Lock()
		o := n.gatewayOptions(n.config.Load(), n.manager.Load())
		if gateway := n.gateway.Load(); gateway.RoutesBy(o.Routing) {
			n.sockets.keep(gateway.Addresses()) // what was opened for files that are refused
			n.reloads.mu.Unlock()
			continue
		}
		if err := n.reroute(&o); err != nil {
			n.log.Error("the routes of the policy files cannot be brought into force, those before stay", "cause", err)
		}
		n.reloads.mu.Unlock()
	}
}

// reroute has requests served by other routes beside the configuration in force; n.reloads.mu is held.
// Listeners whose sockets cannot be opened are tried again later: those of others must not wait for them.
func (n *node) reroute(o *proxy.Options) error {
	before := n.gateway.Load()
	gateway, err := before.Next(*o)
	if err != nil {
		return err
	}
	opened, closed := n.sockets.openEach(o.Config, gateway.Addresses())
	return n.replace(gateway, before, opened, closed, func() {})
}

// replace has a Gateway serve in place of the one before. Its sockets were opened, as far as they could be; begin is
// called when nothing can be in the way any more.
func (n *node) replace(gateway, before *proxy.Gateway, opened []string, closed map[string]error, begin func()) error {
	n.reloads.commit.Lock()
	defer n.reloads.commit.Unlock()
	if n.reloads.isOver {
		n.sockets.close(opened)
		gateway.Discard()
		return errors.New("the gateway is ending")
	}
	gateway.Replace(before, func() {
		n.gateway.Store(gateway)
		begin()
	})
	n.sockets.serve(gateway, n.failed)
	n.wait(closed)
	return nil
}

// doorPeriod is how long a socket that could not be opened is left before it is tried again.
const doorPeriod = 2 * time.Second

// wait says which listeners take no requests, and tries again later to open the sockets that could not be opened.
func (n *node) wait(closed map[string]error) {
	unserved := n.gateway.Load().Unserved(closed)
	n.sockets.closed.Store(&closed)
	before := n.unserved()
	n.sockets.unserved.Store(&unserved)
	for name, why := range unserved {
		if before[name] != why {
			n.log.Error("a listener takes no requests", "listener", name, "cause", why)
		}
	}
	for name := range before {
		if _, is := unserved[name]; !is {
			n.log.Info("a listener is gone, or takes requests again", "listener", name)
		}
	}
	if n.cluster != nil && !maps.Equal(before, unserved) {
		n.cluster.Recheck()
	}
	if len(closed) > 0 && !n.sockets.isTried {
		n.sockets.isTried = true
		time.AfterFunc(doorPeriod, n.tryDoors)
	}
}

// unserved returns the listeners that take no requests, by their names, and why.
func (n *node) unserved() map[string]string {
	if all := n.sockets.unserved.Load(); all != nil {
		return *all
	}
	return nil
}

// blocked opens the sockets for the listeners of changed policy files, and returns what is in the way. The files come
// into force after it, or not at all.
func (n *node) blocked(c *config.Configuration, set *policies.Set) (found []finding.Finding) {
	gateway, table := n.gateway.Load(), set.Routing()
	if gateway == nil || table == nil {
		return nil
	}
	all, err := gateway.Judge(c, table)
	if err != nil {
		n.log.Error("the listeners of the policy files cannot be judged", "cause", err)
		return nil // the configuration is to blame, which is refused as a whole
	}
	for _, l := range all {
		problem := l.Problem
		if problem == "" {
			if _, err := n.sockets.open(c, l.Addresses); err != nil {
				problem = err.Error()
			}
		}
		if problem != "" {
			at := set.ListenerAt(l.Name)
			at.Message = fmt.Sprintf("the listener '%s' cannot be served: %s", l.Name, problem)
			found = append(found, at)
		}
	}
	return found
}

func (n *node) tryDoors() {
	n.reloads.mu.Lock()
	defer n.reloads.mu.Unlock()
	n.sockets.isTried = false
	gateway := n.gateway.Load()
	opened, closed := n.sockets.openEach(n.config.Load(), gateway.Addresses())
	n.reloads.commit.Lock()
	defer n.reloads.commit.Unlock()
	if n.reloads.isOver {
		n.sockets.close(opened)
		return
	}
	n.sockets.serve(gateway, n.failed)
	n.wait(closed)
}

// clusterReady fails while the objects of the cluster are not in force.
func (n *node) clusterReady() error {
	if n.cluster == nil {
		return errors.New("the cluster is not watched yet")
	}
	if err := n.cluster.Ready(); err != nil {
		return err
	}
	return warning(n.cluster.Overdue())
}

// clusterAge is how long ago the API server last showed that the objects of the cluster are right.
func (n *node) clusterAge() time.Duration {
	if n.cluster == nil {
		return 0
	}
	return n.cluster.Age()
}

// measureCluster returns what was read of the cluster, for metrics.
func (n *node) measureCluster() telemetry.Cluster {
	c := telemetry.Cluster{Lag: n.cluster.Lag()}
	for name, a := range n.cluster.Activities() {
		c.Kinds = append(c.Kinds, telemetry.ClusterKind{Name: name, Events: a.Events, Lists: a.Lists,
			Silences: a.Silences, LastEvent: a.LastEvent, Age: a.Age})
	}
	return c
}

// runCluster watches the cluster until ctx is done.
func (n *node) runCluster(ctx context.Context) {
	if n.cluster != nil {
		n.cluster.Run(ctx)
	}
}
