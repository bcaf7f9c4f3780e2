package lint

import "github.com/admission-gateway/gateway/policies/finding"

// linter collects what is found of one definition after the other.
type linter struct {
	finding.List
	definition *definition
}

// found records a finding of a rule.
func (l *linter) found(r *rule, path, format string, args ...any) {
	l.At(l.definition.from, r.severity, path, format, args...)
	l.Found[len(l.Found)-1].Rule = r.id
}
