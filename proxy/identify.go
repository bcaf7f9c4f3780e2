package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
)

// identify finds out who asks. A client that is not known is refused later, so that the audit log has its request.
func identify(r *request) error {
	if err := r.who.locate(r); err != nil {
		return status.BadRequest("%v", err)
	}
	r.who.refusal = r.who.identify(r)
	return nil
}

// locate determines the address of the client: the peer's, or the one that a trusted proxy forwards.
func (w *who) locate(r *request) error {
	peer := r.incoming.Peer()
	w.client = peer.Addr
	if !peer.IsTrusted {
		return nil
	}
	lines := r.gateway.forwardedBy(&r.incoming.Head)
	if !r.gateway.readsForwarded {
		w.client = r.gateway.proxies.Client(peer.Addr, lines...)
		return nil
	}
	origin, err := r.gateway.proxies.Forwarded(peer.Addr, lines...)
	if err != nil {
		return err
	}
	w.client = origin.Client
	r.From.Origin = message.Origin{Client: origin.Client.String(), Proto: origin.Proto, Host: origin.Host}
	return nil
}

// forwardedBy returns the values of a head by which a trusted proxy says who the client is.
func (g *Gateway) forwardedBy(head *message.Head) (lines []string) {
	field := message.FieldXForwardedFor
	if g.readsForwarded {
		field = message.FieldForwarded
	}
	for _, l := range head.Headers() {
		if l.Field == field && !l.Dropped {
			lines = append(lines, str(l.Value))
		}
	}
	return lines
}

// clientOf returns the address of the client of a request that a trusted proxy has sent; the proxy's own if it cannot
// be read.
func (g *Gateway) clientOf(head *message.Head, peer netip.Addr) netip.Addr {
	lines := g.forwardedBy(head)
	if !g.readsForwarded {
		return g.proxies.Client(peer, lines...)
	}
	if origin, err := g.proxies.Forwarded(peer, lines...); err == nil && origin.Client.IsValid() {
		return origin.Client
	}
	return peer
}

// identify determines the user. Credentials do not count unless the configuration has `identity`.
func (w *who) identify(r *request) error {
	if r.gateway.identity == nil {
		w.user = r.gateway.anonymous
		return nil
	}
	authorization, err := w.authorization(&r.incoming.Head, r.upgrade.protocol, r.route.backend.credentials)
	if err != nil {
		return err
	}
	w.asking = identity.Request{
		Now: r.Started, Peer: r.incoming.Peer().Addr, Client: w.client,
		Connection:    r.gateway.identity.proofs(r.incoming.Peer()),
		Authorization: authorization, Context: r.telemetry.context(r.incoming.Client),
		Remote:      (*remoteLines)(&r.incoming.Head),
		RemoteNamed: r.incoming.Head.ConnectionNames(message.FieldXRemote),
	}
	principal, err := r.gateway.identity.Identify(&w.asking)
	if err != nil {
		var refusal *identity.Refusal
		if errors.As(err, &refusal) {
			w.challenge = refusal.Challenge()
			return refusal.Status()
		}
		return err
	}
	w.user = principal.User
	return w.tell(r, principal)
}

// provenBy is what a peer has shown, and the result of checking it before on its connection.
type provenBy struct {
	identity.Connection
	by *authenticators
}

// proofs returns the certificates that the peer has shown by TLS, and the result of checking them
// before on its connection; nil without TLS. Listeners of a routing.Table have authorities of whoever has made them,
// which let clients in, and name no users of the configuration.
func (a *authenticators) proofs(p *server.Peer) *identity.Connection {
	if !p.HasTLS() || p.Made.Routes != ownListener {
		return nil
	}
	known, _ := p.Kept.(*provenBy)
	if known == nil || known.by != a {
		known = &provenBy{identity.Connection{Chain: p.Chain, Shown: p.Shown}, a}
		p.Kept = known
	}
	return &known.Connection
}

// newIdentity makes the authenticators of the configuration, or takes them over from a Gateway before; nil if the
// configuration has none.
func (g *Gateway) newIdentity(c *config.Configuration, before *Gateway) (*authenticators, error) {
	if c.Identity == nil {
		return nil, nil
	}
	var asked []*backend
	for i := range c.Identity.Authenticators {
		if t := c.Identity.Authenticators[i].TokenReview; t != nil {
			b, _ := g.Backend(t.Upstream, "").(*backend)
			asked = append(asked, b)
		}
	}
	if before != nil && before.identity.isFor(c.Identity, asked) {
		before.identity.lease.hold()
		return before.identity, nil
	}
	a := &authenticators{configured: c.Identity, asked: asked, files: g.files.Part()}
	a.lease.hold()
	var err error
	if a.Authenticators, err = g.newAuthenticators(c, asked, a.files); err != nil {
		a.files.Close()
		return nil, err
	}
	return a, nil
}

func (g *common) newAuthenticators(c *config.Configuration, asked []*backend,
	files *credentials.Watcher) (*identity.Authenticators, error) {
	t := &c.Identity.Tokens
	o := identity.Options{
		AllowAnonymous: c.Identity.Anonymous == config.AllowAnonymous,
		Refused:        g.refusedCredentials,
		Transport: func(over http.RoundTripper) http.RoundTripper {
			return g.tracer.Transport(over, tracing.DoNotPropagate)
		},
		Tokens: identity.TokenOptions{
			Entries: int(t.CacheEntries), TTL: t.CacheSeconds.Duration(), ReviewTTL: t.ReviewCacheSeconds.Duration(),
			FailureTTL: t.FailureCacheSeconds.Duration(), Failures: int(t.FailuresPerMinute),
			Burst: int(t.FailureBurst),
		},
	}
	for i := range c.Identity.Authenticators {
		var b *backend
		if c.Identity.Authenticators[i].TokenReview != nil {
			b, asked = asked[0], asked[1:]
		}
		m, err := newMethod(&c.Identity.Authenticators[i], b, files)
		if err != nil {
			return nil, fmt.Errorf("identity.authenticators[%d]: %w", i, err)
		}
		o.Methods = append(o.Methods, m)
	}
	return identity.New(o)
}

func newMethod(a *config.Authenticator, asked *backend, files *credentials.Watcher) (identity.Method, error) {
	switch {
	case a.JWT != nil:
		issuer, err := a.JWT.Internal()
		return identity.Method{JWT: issuer}, err
	case a.TokenReview != nil:
		return identity.Method{TokenReview: &identity.ReviewOptions{Audiences: a.TokenReview.Audiences,
			Post: asked.postTokenReview}}, nil
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

// postTokenReview asks the backend, with the gateway's own account, about a token.
func (b *backend) postTokenReview(ctx context.Context, body []byte) (int, []byte, error) {
	answer, err := b.Send(ctx, state.Request{Method: http.MethodPost, Target: tokenReviewTarget, Body: body,
		Limit: maxTokenReview})
	return answer.Code, answer.Body, err
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
	pool, err := credentials.Watch(files, "the proxies that tell who asks", []string{r.CAFile},
		func(contents [][]byte) (*credentials.Server, error) {
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

// maxCause is how much of the cause the log has, in bytes.
const maxCause = 300

// refusedCredentials counts and logs why credentials were refused; clients do not see it. What the
// cause says of the credentials is the client's word.
func (g *common) refusedCredentials(method, cause string) {
	g.metrics.CredentialsRefused(method)
	if times, tell := g.often.refusals.Allow(method, time.Now()); tell {
		g.log.Info("credentials were refused", "authenticator", method, "cause", quote.Clip(cause, maxCause), "times",
			times)
	}
}
