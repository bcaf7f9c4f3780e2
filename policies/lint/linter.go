package lint

import "github.com/admission-gateway/gateway/policies/finding"

// linter collects what is found of one definition after the other.
type linter struct {
	finding.List
	definition *definition
	// usage says how an ordinary API writes names; nil for Kubernetes' own form, which is camelCase.
	usage *usage
	style style
}

// begin turns to a definition.
func (l *linter) begin(d *definition) {
	l.definition, l.usage, l.style = d, nil, camelCase
	if !d.isCRD {
		l.usage, l.style = usageOf(d)
	}
}

// found records a finding of a rule.
func (l *linter) found(r *rule, path, format string, args ...any) {
	severity := r.severity
	if l.usage != nil && ofKubernetes[r] {
		severity = finding.Wording
	}
	l.By(r.id, l.definition.from, severity, path, format, args...)
}
