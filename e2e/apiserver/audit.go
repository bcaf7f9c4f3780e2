package apiserver

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// auditor records requests by the audit Policy that a test chose last, by kube-apiserver's own code.
type auditor struct {
	rules atomic.Pointer[audit.PolicyRuleEvaluator] // nil: nothing is recorded

	mu    sync.Mutex
	lines bytes.Buffer
}

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (a *auditor) EvaluatePolicyRule(about authorizer.Attributes) audit.RequestAuditConfig {
	if rules := a.rules.Load(); rules != nil {
		return (*rules).EvaluatePolicyRule(about)
	}
	return audit.RequestAuditConfig{Level: auditinternal.LevelNone}
}

// Write implements io.Writer.
func (a *auditor) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lines.Write(line)
}

// backend is kube-apiserver's own log, in memory.
func (a *auditor) backend() audit.Backend {
	return auditlog.NewBackend(a, auditlog.FormatJson, auditv1.SchemeGroupVersion)
}

// Audit records what the server is asked from now on by the audit Policy in a file, until it gets another one.
func (s *Server) Audit(file string) error {
	p, err := policy.LoadPolicyFromFile(file)
	if err != nil {
		return err
	}
	rules := policy.NewPolicyRuleEvaluator(p)
	s.auditor.rules.Store(&rules)
	return nil
}

// AuditLog returns what was recorded, a line of JSON for each event.
func (s *Server) AuditLog() []byte {
	s.auditor.mu.Lock()
	defer s.auditor.mu.Unlock()
	return slices.Clone(s.auditor.lines.Bytes())
}
