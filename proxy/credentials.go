package proxy

import (
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/wire"
)

// clientsCredentials are the fields by which a client tells who it is, or whom it asks to act as. Where the gateway tells the
// backend, none of them survives.
var clientsCredentials = wire.Fields(wire.FieldAuthorization, wire.FieldXRemote, wire.FieldImpersonate)

// tell makes the header lines by which the backend learns who asks, for every request that is made of this one: the write,
// and what is read or tried before it.
func (x *exchange) tell(p *identity.Principal) (err error) {
	impersonates := x.conn.head.Has(wire.FieldImpersonate)
	switch x.upstream.credentials {
	case config.FrontProxyCredentials:
		x.told, err = p.AppendRemote(x.told[:0])
	case config.ImpersonateCredentials:
		if x.told, err = x.upstream.authorize(x.told[:0]); err != nil {
			return status.ServiceUnavailable("the gateway has no account now by which to ask the backend", 1)
		}
		x.told, err = p.AppendImpersonate(x.told)
	default:
		if impersonates { // which only trusted proxies may
			// The backend knows whether they may; to policies the user is who it will be to the backend.
			x.user = identity.Impersonated((*impersonationLines)(&x.conn.head))
			if x.user.Name == "" {
				return status.BadRequest("the request has a header 'Impersonate-…', but no user in 'Impersonate-User', or an empty one among them")
			}
		}
		return nil
	}
	switch {
	case err != nil:
		return status.Forbidden(x.info.GroupResource(), x.info.Name, err.Error())
	case impersonates:
		return errMayNotImpersonate
	}
	x.withheld = clientsCredentials
	if x.conn.head.Upgrade != nil {
		withholdTokens(&x.conn.head)
	}
	return nil
}
