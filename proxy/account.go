package proxy

import (
	"errors"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// errNoAccount is all that clients learn of an account that cannot be had.
var errNoAccount = errors.New("the gateway has no account now by which to ask the backend")

// connect makes the clients of a backend.
//
// A client's request goes to the backend as the client sent it, its own credentials included. If it went by a connection
// that shows the gateway's certificate, the backend could take it for a request of the gateway itself: any client would
// be who the gateway is. So such connections carry what the gateway asks on its own account, and nothing else, unless
// the gateway tells the backend with each request who asks.
func (g *Gateway) connect(b *backend, u *config.Upstream, files *credentials.Watcher) (err error) {
	if b.account, err = credentials.WatchAccount(files, "the upstream '"+u.Name+"'", u.Account()); err != nil {
		return err
	}
	if u.Account().Insecure {
		g.log.Warn("whoever answers is taken for the backend, whatever certificate they show (insecure-skip-tls-verify)", "upstream", u.Name)
	}
	settings := clientConfig(u)
	settings.OnError = func(err *upstream.Error) { g.upstreamFailed(u.Name, err) }
	settings.OnChange = func(change upstream.Change) { g.upstreamChanged(u.Name, change) }
	settings.Overloaded = new(ratelimit.Drops).Add
	settings.TLS = b.account.OwnTLS
	tells := u.Credentials == config.FrontProxyCredentials || u.Credentials == config.ImpersonateCredentials
	apart := b.account.HasCertificate() && !tells
	if apart {
		settings.TLS = b.account.NobodyTLS
	}
	if b.client, err = upstream.New(settings); err != nil {
		return err
	}
	b.own = b.client
	if apart {
		// What changes about the servers one client tells of is enough.
		settings.TLS, settings.HealthCheck, settings.OnChange = b.account.OwnTLS, nil, nil
		if b.own, err = upstream.New(settings); err != nil {
			b.client.Close()
			return err
		}
	}
	b.account.OnChange(func() {
		b.client.Renew()
		b.own.Renew()
	})
	b.accountFailed = func(err error) {
		g.log.Warn("the gateway has no account now by which to ask the backend", "upstream", u.Name, "cause", err)
	}
	return nil
}

// authorize appends the header lines by which the gateway tells the backend who it is itself.
func (b *backend) authorize(head []byte) ([]byte, error) {
	head, err := b.account.AppendAuthorization(head)
	if err != nil {
		b.accountFailed(err)
		return nil, errNoAccount
	}
	return head, nil
}

// noteRefusal gets credentials anew, where a plugin gives them, after the backend has answered that it does not know the
// gateway by those that it was shown.
func (b *backend) noteRefusal(code int) {
	if code == 401 && b.account.Refused() {
		b.own.Renew()
	}
}

func (b *backend) close() {
	b.client.Close()
	if b.own != b.client {
		b.own.Close()
	}
}
