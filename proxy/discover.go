package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies/applicability"
)

// Policies see the kind of a request's objects. It comes from the discovery API of the server, not from
// the body, in which a client may write another kind or none.

const (
	// firstAnswers is how long the start of the gateway waits for what the API servers serve.
	firstAnswers = 2 * time.Second
	// patience is how long a request waits until it is known whether its resource is served.
	patience = 5 * time.Second
)

// discover gives a backend a client of its discovery API.
func (g *common) discover(b *backend) {
	b.served = discovery.New(discovery.Options{
		Ask: func(ctx context.Context, q discovery.Request) (discovery.Response, error) {
			a, err := b.Send(ctx, state.Request{Method: "GET", Target: q.Target, Accept: q.Accept, Known: q.Known,
				Limit: discovery.MaxAnswer})
			return discovery.Response{Code: a.Code, Body: a.Body, ETag: a.ETag}, err
		},
		Changed: func(err error) {
			if err != nil {
				g.log.Warn("the API server does not say which resources it serves", "upstream", b.name, "cause", err)
				return
			}
			g.log.Info("the API server says again which resources it serves", "upstream", b.name)
		},
		Learned: g.liveChanged,
	})
}

// awaitFirst waits a short while for first answers.
func awaitFirst(first *sync.WaitGroup) {
	answered := make(chan struct{})
	go func() {
		first.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-time.After(firstAnswers):
	}
}

// isDiscovered reports whether policies see the kinds that the backend's discovery API has. Reading it
// takes an account.
func (b *backend) isDiscovered() bool { return b.served != nil && !b.account.Anonymous() }

// Ready returns nil if any upstream can be served, and otherwise why none can.
func (g *Gateway) Ready() error {
	var all error
	for _, b := range g.routes.backends {
		if !b.isDiscovered() {
			return nil
		}
		err := b.served.Err()
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// mayBeJudged reports whether a policy may apply to the request, which is a write or connects.
func mayBeJudged(r *request) bool {
	i, policies := &r.Info, r.scope.rules.policies
	if i.Connect {
		return policies.Concerns(i, admission.Connect)
	}
	return storage.IsConcerned(policies, i)
}

// catalog returns what the API server serves, and an error until that is known.
func catalog(r *request) (*discovery.Catalog, error) {
	known := r.scope.backend.served.Catalog()
	if known == nil {
		return nil, status.ServiceUnavailable("it is not known yet which resources the API server serves", 1)
	}
	return known, nil
}

// awaitDiscovery refuses requests until it is known what the API server serves.
func awaitDiscovery(r *request) error {
	_, err := catalog(r)
	return err
}

// learnKind looks up the resource in what the API server serves. It asks the server for an unknown
// resource if a policy may apply to the request.
func learnKind(r *request) error {
	known, err := catalog(r)
	if err != nil {
		return err
	}
	i, b := &r.Info, r.scope.backend
	path := discovery.Path{GroupVersionResource: i.GroupVersionResource(), Subresource: i.Subresource}
	if r.Served = known.Find(path); r.Served != nil || !mayBeJudged(r) {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.telemetry.context(r.incoming.Client), patience)
	defer cancel()
	served, err := b.served.Find(ctx, path)
	if err != nil {
		return status.ServiceUnavailable("it is not known whether the API server serves the resource: the server cannot say so at the moment", 1)
	}
	r.Served = served
	return nil
}

// Live returns what the API servers are known to have at the moment. Nothing is asked for it.
func (g *Gateway) Live() *applicability.Live {
	live := &applicability.Live{}
	for _, b := range g.routes.backends {
		if b.served == nil {
			continue
		}
		c := b.served.Catalog()
		if c.Len() == 0 {
			c = nil // the server has no discovery
		}
		live.Catalogs = append(live.Catalogs, c)
	}
	for _, s := range g.policies().States() {
		if s.Kind != namespaceKind || s.Query != "" {
			continue
		}
		if all, known := g.states.Known(s); known {
			live.Namespaces, live.HasNamespaces = append(live.Namespaces, all...), true
		}
	}
	return live
}
