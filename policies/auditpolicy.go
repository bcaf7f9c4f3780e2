package policies

import (
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// auditPolicies have the audit Policy of the files and its position.
type auditPolicies struct {
	policy *audit.Policy
	at     *manifest.Object
}

// take takes the rules by which requests are recorded. As at kube-apiserver there is one Policy, and it needs no
// name.
func (a *auditPolicies) take(l *loader, o *manifest.Object, p *auditv1.Policy) {
	if first := a.at; first != nil {
		l.At(o, Error, "kind", "must be the only audit Policy; another one is in %s:%d", first.File, first.Line("kind"))
		return
	}
	a.at = o
	l.reads.audit(o, p)
	compiled, errs := audit.Compile(p)
	l.Fields(o, Error, errs)
	a.policy = compiled
}

// compile implements compiler.
func (a *auditPolicies) compile(l *loader) { l.set.audit = *a }

// Audit says which requests are recorded; nil if no file does.
func (s *Set) Audit() *audit.Policy { return s.audit.policy }

// unaudited returns a finding if requests are to be recorded without a place for events, or events have a place and no
// file has rules.
func (s *Set) unaudited(sinks []string) []Finding {
	switch {
	case sinks == nil:
		return nil
	case s.audit.at != nil && len(sinks) == 0:
		f := finding.Of(s.audit.at, "kind")
		f.Severity, f.Message = Warning, "an audit Policy has no effect unless `telemetry.audit` of the configuration says where events go"
		return []Finding{f}
	case s.audit.at == nil && len(sinks) > 0:
		return []Finding{configured("telemetry.audit", Warning, "no request is recorded: there is no audit Policy (audit.k8s.io/v1) among the policy files")}
	}
	return nil
}
