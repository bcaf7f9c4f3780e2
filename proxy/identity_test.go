package proxy

import (
	"net/netip"

	"github.com/admission-gateway/gateway/internal/config"
)

// headerIdentity believes the headers X-Remote-* of proxies on this machine.
func headerIdentity(anonymous config.Anonymous) *config.Identity {
	return &config.Identity{
		Anonymous: anonymous,
		Authenticators: []config.Authenticator{
			{RequestHeader: &config.RequestHeader{Addresses: []config.Prefix{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}},
		},
	}
}
