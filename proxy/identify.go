package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// identify tells who asks, and from where: the peer, or who a trusted proxy says it speaks for. Without `identity` in the
// configuration nobody's credentials count.
func (x *exchange) identify() error {
	x.client = x.conn.peer
	if x.conn.trusted {
		var forwarded []string
		for _, l := range x.conn.head.Headers() {
			if l.Field == wire.FieldXForwardedFor && !l.Dropped {
				forwarded = append(forwarded, str(l.Value))
			}
		}
		x.client = x.gateway.proxies.Client(x.conn.peer, forwarded...)
	}
	if x.gateway.identity == nil {
		x.user = x.gateway.anonymous
		return nil
	}
	authorization, err := x.authorization()
	if err != nil {
		return err
	}
	x.asking = identity.Request{
		Now: x.started, Peer: x.conn.peer, Client: x.client, Connection: x.conn.proofs(),
		Authorization: authorization, Remote: (*remoteLines)(&x.conn.head),
	}
	principal, err := x.gateway.identity.Identify(&x.asking)
	if err != nil {
		var refusal *identity.Refusal
		if errors.As(err, &refusal) {
			x.challenge = refusal.Challenge()
			return refusal.Status()
		}
		return err
	}
	x.user = principal.User
	return x.tell(principal)
}

// proofs are what the client has shown of itself by TLS; nil without TLS.
func (c *conn) proofs() *identity.Connection {
	if c.server.o.TLS == nil {
		return nil
	}
	if c.identity.Chain == nil {
		c.identity.Chain, c.identity.Shown = c.clientCertificates, c.certificate.shown
	}
	return &c.identity
}

// remoteLines are the lines X-Remote-* of a head, of peers too that are no trusted proxies: which of them count, identity
// tells by itself.
type remoteLines wire.Head

// Each implements identity.Headers.
func (h *remoteLines) Each(yield func(name, value []byte)) {
	eachAfter((*wire.Head)(h), wire.FieldXRemote, len("X-Remote-"), yield)
}

// impersonationLines are the lines Impersonate-* of a head.
type impersonationLines wire.Head

// Each implements identity.Headers.
func (h *impersonationLines) Each(yield func(name, value []byte)) {
	eachAfter((*wire.Head)(h), wire.FieldImpersonate, len("Impersonate-"), yield)
}

func eachAfter(h *wire.Head, f wire.Field, prefix int, yield func(name, value []byte)) {
	for _, l := range h.Headers() {
		if l.Field == f {
			yield(l.Name[prefix:], l.Value)
		}
	}
}

// newIdentity makes the authenticators of the configuration; nil where it has none.
func (g *Gateway) newIdentity(c *config.Configuration, files *credentials.Watcher) (*identity.Authenticators, error) {
	if c.Identity == nil {
		return nil, nil
	}
	t := &c.Identity.Tokens
	o := identity.Options{
		AllowAnonymous: c.Identity.Anonymous == config.AllowAnonymous,
		Refused:        g.refusedCredentials,
		Tokens: identity.TokenOptions{
			Entries: int(t.CacheEntries), TTL: t.CacheSeconds.Duration(), ReviewTTL: t.ReviewCacheSeconds.Duration(),
			FailureTTL: t.FailureCacheSeconds.Duration(), Failures: int(t.FailuresPerMinute), Burst: int(t.FailureBurst),
		},
	}
	for i := range c.Identity.Authenticators {
		m, err := g.newMethod(&c.Identity.Authenticators[i], files)
		if err != nil {
			return nil, fmt.Errorf("identity.authenticators[%d]: %w", i, err)
		}
		o.Methods = append(o.Methods, m)
	}
	return identity.New(o)
}

func (g *Gateway) newMethod(a *config.Authenticator, files *credentials.Watcher) (identity.Method, error) {
	switch {
	case a.JWT != nil:
		issuer, err := a.JWT.Internal()
		return identity.Method{JWT: issuer}, err
	case a.TokenReview != nil:
		return identity.Method{TokenReview: &identity.ReviewOptions{Audiences: a.TokenReview.Audiences, Post: g.postTokenReview(a.TokenReview.Upstream)}}, nil
	case a.RequestHeader != nil:
		h, err := headerOptions(a.RequestHeader, files)
		return identity.Method{RequestHeader: h}, err
	}
	return identity.Method{ClientCertificate: true}, nil
}

const (
	tokenReviewTarget = "/apis/authentication.k8s.io/v1/tokenreviews"
	// maxTokenReview is the size of the largest answer, in bytes.
	maxTokenReview = 1 << 20
)

// postTokenReview asks an upstream, with the gateway's own account, about tokens.
func (g *Gateway) postTokenReview(upstream string) func(context.Context, []byte) (int, []byte, error) {
	b := g.Backend(upstream, "")
	return func(ctx context.Context, body []byte) (int, []byte, error) {
		answer, err := b.Send(ctx, state.Request{Method: http.MethodPost, Target: tokenReviewTarget, Body: body, Limit: maxTokenReview})
		return answer.Code, answer.Body, err
	}
}

func headerOptions(r *config.RequestHeader, files *credentials.Watcher) (*identity.HeaderOptions, error) {
	networks := make([]string, len(r.Addresses))
	for i, a := range r.Addresses {
		networks[i] = a.String()
	}
	trusted, err := identity.ParseTrustedProxies(networks)
	if err != nil {
		return nil, err
	}
	h := &identity.HeaderOptions{Names: r.ClientNames, Networks: trusted}
	if r.CAFile == "" {
		return h, nil
	}
	pool, err := credentials.Watch(files, "the proxies that tell who asks", []string{r.CAFile}, func(contents [][]byte) (*credentials.Server, error) {
		pool, err := credentials.ParsePool(contents[0])
		return &credentials.Server{ClientCAs: pool}, err
	})
	if err != nil {
		return nil, fmt.Errorf("requestHeader: %w", err)
	}
	h.Verify = func(shown []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
		return pool.Get().Verify(shown, now)
	}
	return h, nil
}

// refusedCredentials counts and logs why credentials were refused; clients are not told. What the cause says of the
// credentials is the client's word.
func (g *Gateway) refusedCredentials(method, cause string) {
	g.metrics.CredentialsRefused(method)
	if times, tell := g.refusals.due(method, time.Now()); tell {
		const most = 300
		if len(cause) > most {
			cause = strings.ToValidUTF8(cause[:most], "") + "…"
		}
		g.log.Info("credentials were refused", "authenticator", method, "cause", cause, "times", times)
	}
}

// errMayNotImpersonate is the error of a request that asks to act as somebody whom the backend would not hear of.
var errMayNotImpersonate = status.BadRequest("the request has a header 'Impersonate-…': the backend is told who asks by the gateway, which lets nobody act as somebody else")
