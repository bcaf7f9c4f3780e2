package policies

import (
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
)

// scopeShared is the scope of limits that all gateways count together.
const scopeShared = "Shared"

// share makes a limit one that all gateways count together, where the policy says so.
func (l *loader) share(o *manifest.Object, s *RateLimitPolicySpec, r *ratelimit.Rule) {
	if s.Scope != scopeShared {
		return
	}
	r.Sharing = &ratelimit.Sharing{WhenUnavailable: s.WhenStoreUnavailable, Lease: int(s.LeaseSize)}
	if r.Sharing.WhenUnavailable == "" {
		r.Sharing.WhenUnavailable = ratelimit.LocalLimit
	}
	if r.Mode == ratelimit.Warn && r.Sharing.WhenUnavailable == ratelimit.Deny {
		l.at(o, Warning, "spec.whenStoreUnavailable", "has no effect while `spec.mode` is 'Warn': nobody is refused")
	}
	l.sharing = append(l.sharing, Finding{
		File: o.File, Line: o.Line("spec.scope"), Field: "spec.scope",
		Message: "must be 'Local': there is nothing to share it by, as the configuration has no section `redis`",
	})
}
