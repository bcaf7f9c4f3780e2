package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/access"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/internal/upstream/balance"
	"github.com/admission-gateway/gateway/proxy/events"
	"github.com/admission-gateway/gateway/proxy/spans"
)

// Backend implements state.Backends: what policies refer to is read through the connections that requests go by.
func (g *Gateway) Backend(name, path string) state.Backend {
	if b := g.routes.upstreams[name]; b != nil {
		return b
	}
	if name == "" {
		if c := g.routes.find(ownListener, bareHead(http.MethodGet, "", path)); c != nil {
			return c.routes[0].backend
		}
	}
	return nil
}

// API implements state.Backend.
func (b *backend) API() state.API { return b.kind.api() }

// Send implements state.Backend.
func (b *backend) Send(ctx context.Context, r state.Request) (state.Response, error) {
	return b.sendAs(ctx, r, storage.JSON)
}

// Discovery implements state.Backend.
func (b *backend) Discovery() *discovery.Client { return b.served }

func (b *backend) sendAs(ctx context.Context, r state.Request, contentType string) (state.Response, error) {
	span := tracing.StartClientSpan(ctx, r.Method)
	answer, err := b.sendWithin(ctx, r, contentType, span)
	spans.Asked(span, &b.storage, r.Target, answer.Code, err)
	return answer, err
}

func (b *backend) sendWithin(ctx context.Context, r state.Request, contentType string,
	span *tracing.ClientSpan) (state.Response, error) {
	head, err := b.ownHead(r.Method, r.Target, len(r.Body), contentType, cmp.Or(r.Accept, storage.JSON))
	if err != nil {
		return state.Response{}, err
	}
	if r.Known != "" {
		head = append(append(append(head[:len(head)-len("\r\n")], "If-None-Match: "...), r.Known...), "\r\n\r\n"...)
	}
	head = append(span.AppendLine(head[:len(head)-len("\r\n")]), "\r\n"...)
	answer := new(message.Response) // not from the pool: its body is handed on
	deadline, _ := ctx.Deadline()
	err = b.own.Do(&upstream.Request{
		Head: head, Body: r.Body, Idempotent: r.Method == http.MethodGet,
		Whole: max(r.Limit, 1), Deadline: deadline,
	}, answer)
	if err != nil {
		return state.Response{}, err
	}
	b.noteRefusal(answer.Status())
	if answer.Status() == http.StatusForbidden {
		b.noteLack(r.Method, r.Target, answer.Body())
	}
	return state.Response{Code: answer.Status(), Body: answer.Body(), ETag: string(answer.Header("Etag"))}, nil
}

// maxEvent is how large the backend's answer to an Event may be.
const maxEvent = 64 << 10

// recordEvents lets refusals be recorded as Events of Kubernetes.
func (g *common) recordEvents(b *backend) {
	b.events = events.New(events.Options{
		Send: func(ctx context.Context, method, target, contentType string, body []byte) (int, []byte, error) {
			a, err := b.sendAs(ctx, state.Request{Method: method, Target: target, Body: body, Limit: maxEvent},
				contentType)
			return a.Code, a.Body, err
		},
		Ended: func(o events.Outcome, err error) {
			g.metrics.EventRecorded(b.name, string(o))
			if err == nil {
				return
			}
			if times, tell := g.often.failures.Allow(b.name+" events", time.Now()); tell {
				g.log.Warn("an Event cannot be recorded", "upstream", b.name, "cause", err, "times", times)
			}
		},
	})
}

// recordOwn lets what happens to the gateway itself be recorded as Events about its Pod, at the first backend that
// takes Events.
func (g *Gateway) recordOwn() {
	at := slices.IndexFunc(g.routes.backends, func(b *backend) bool { return b.events != nil })
	switch {
	case at < 0 || g.pod.Name == "":
		g.own.Store(nil)
	case !g.own.Load().IsSentBy(g.routes.backends[at].events):
		g.own.Store(events.NewOwn(g.routes.backends[at].events, g.routes.backends[at].name, g.pod))
	}
}

// Own records what happens to the gateway itself; nil records nothing.
func (g *common) Own() *events.Own { return g.own.Load() }

// stateChanged records that a collection which policies read can no longer be read, or can be again.
func (g *common) stateChanged(path string, err error) {
	s := events.Subject{Kind: events.State, Name: path}
	if err != nil {
		g.Own().Fails(s, "the state "+path+" cannot be read: "+err.Error())
		return
	}
	g.Own().Recovers(s, "the state "+path+" can be read again")
}

// Open implements state.Backend.
func (b *backend) Open(ctx context.Context, target string, within time.Duration) (int, io.ReadCloser, error) {
	head, err := b.ownHead(http.MethodGet, target, 0, "", storage.JSON)
	if err != nil {
		return 0, nil, err
	}
	answer, request := new(message.Response), &upstream.Request{Head: head, Idempotent: true}
	if within > 0 {
		request.Deadline = time.Now().Add(within)
	}
	if err := b.own.Do(request, answer); err != nil {
		return 0, nil, err
	}
	b.noteRefusal(answer.Status())
	if answer.Status() == http.StatusForbidden {
		b.noteLack(http.MethodGet, target, answer.Body())
	}
	stream := answer.Stream()
	if stream == nil {
		return answer.Status(), io.NopCloser(bytes.NewReader(answer.Body())), nil
	}
	return answer.Status(), &ownStream{stream, context.AfterFunc(ctx, stream.Interrupt)}, nil
}

// ownStream is an answer that the gateway itself reads as it comes.
type ownStream struct {
	message.Stream
	stop func() bool
}

// Close implements io.Closer.
func (s *ownStream) Close() error {
	s.stop()
	return s.Stream.Close()
}

// ownHead is the head of a request that the gateway makes on its own account.
func (b *backend) ownHead(method, target string, length int, contentType, accept string) ([]byte, error) {
	head := make([]byte, 0, 256+len(target))
	head, err := b.appendOwn(append(append(append(append(head, method...), ' '), b.base...), target...), accept)
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		head = append(head, "Content-Type: "+contentType+"\r\nContent-Length: "...)
		head = append(strconv.AppendInt(head, int64(length), 10), "\r\n"...)
	}
	return append(head, "\r\n"...), nil
}

// appendOwn appends to method and target what all heads of the gateway's own account have.
func (b *backend) appendOwn(head []byte, accept string) ([]byte, error) {
	head = append(append(append(head, " HTTP/1.1\r\nHost: "...), b.host...), "\r\nUser-Agent: "+storage.Via+
		"\r\nAccept: "+accept+"\r\n"...)
	return b.authorize(head)
}

// appendOwnGet appends the head of a GET that the gateway makes on its own account, without its end.
func (b *backend) appendOwnGet(head, target []byte) ([]byte, error) {
	return b.appendOwn(append(append(append(head, "GET "...), b.base...), target...), storage.JSON)
}

// connect makes the clients of a backend.
//
// A client's request goes to the backend as the client sent it, its own credentials included. If it
// went by a connection that shows the gateway's certificate, the backend could take it for a
// request of the gateway itself: any client would be who the gateway is. So such connections carry
// what the gateway asks on its own account, and nothing else, unless the gateway names the user to
// the backend with each request.
//
// peer says how the servers of a backend of a routing.Table are known by TLS, and what is shown to them with each
// request; nil leaves that to the settings.
func (g *common) connect(b *backend, u *config.UpstreamSpec, peer *credentials.Peer, before *backend) (err error) {
	if b.account, err = credentials.WatchServiceAccount(b.files, "the upstream '"+u.Name+"'",
		u.ClientConfig()); err != nil {
		return err
	}
	if u.ClientConfig().Insecure {
		g.log.Warn("whoever answers is taken for the backend, whatever certificate they show (insecure-skip-tls-verify)", "upstream", u.Name)
	}
	settings := clientConfig(u)
	settings.OnError = func(err *upstream.Error) { g.upstreamFailed(u.Name, err) }
	settings.OnChange = func(change balance.Change) {
		if mayBeAnother(change.Event) {
			b.comparisons.Forget()
		}
		g.upstreamChanged(u.Name, change)
	}
	settings.Overloaded = new(ratelimit.Drops).Add
	settings.Budget = g.memory.Budget
	settings.TLS = b.account.OwnTLS
	if peer != nil {
		known, err := peer.ClientTLS()
		if err != nil {
			return err
		}
		settings.TLS = func() *tls.Config { return known }
	}
	tells := u.Credentials == config.FrontProxyCredentials || u.Credentials == config.ImpersonateCredentials
	apart := b.account.HasCertificate() && !tells
	if apart {
		settings.TLS = b.account.NobodyTLS
	}
	if before != nil {
		settings.Starts = before.client.Starts()
	}
	if b.client, err = upstream.New(settings); err != nil {
		return err
	}
	b.own = b.client
	if apart {
		// It is enough that one client reports the servers' changes.
		settings.TLS, settings.HealthCheck, settings.OnChange = b.account.OwnTLS, nil, nil
		if before != nil {
			settings.Starts = before.own.Starts()
		}
		if b.own, err = upstream.New(settings); err != nil {
			b.client.Close()
			return err
		}
	}
	b.account.OnChange(func() {
		b.client.Renew()
		b.own.Renew()
	})
	b.lacks = func(rule status.AccessRule, reason string) { g.accountLacks(b.name, &rule, reason) }
	b.accountFailed = func(err error) {
		g.log.Warn("the gateway has no account now by which to ask the backend", "upstream", u.Name, "cause", err)
	}
	return nil
}

// noteLack reports a right that the gateway's own account lacks, if the backend is one that can say
// so.
func (b *backend) noteLack(method, target string, body []byte) {
	if rule, is := access.RuleOf(method, target); is && b.kind.authorizes() {
		b.lacks(rule, status.MessageOf(body))
	}
}

// noteRefusal gets credentials anew, if a plugin gives them, after the backend has answered that it
// does not know the gateway by the old ones.
func (b *backend) noteRefusal(code int) {
	if code == 401 && b.account.Refused() {
		b.own.Renew()
	}
}

// release closes the backend once the last Gateway gives it up.
func (b *backend) release() {
	if !b.lease.release() {
		return
	}
	b.files.Close()
	if b.stop != nil {
		b.stop()
	}
	if b.events != nil {
		b.events.Close()
	}
	b.client.Close()
	if b.own != b.client {
		b.own.Close()
	}
}
