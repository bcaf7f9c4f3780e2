package conventions

import (
	"fmt"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
)

// add takes a policy into account.
func (c *checker) add(p *Policy, s admission.Standing) {
	if s.IsExcepted() {
		c.excepted = append(c.excepted, admission.Excepted{Policy: p.name, Exception: s.Exception, Reason: s.Reason})
		return
	}
	tried := -1
	if s.IsDryRun {
		tried = len(c.dryRuns)
		c.dryRuns = append(c.dryRuns, DryRun{Policy: p.name, Terms: p.terms, actions: p.actions})
	}
	for i, a := range p.actions {
		if s.IsDryRun {
			a = min(a, Warn)
		}
		c.actions[i] = max(c.actions[i], a)
	}
	if a := p.actions[ReservedKeys]; a != Off {
		c.keyRules = append(c.keyRules, keyRule{a, p.allowed, tried})
	}
}

// check checks the object against the rules that are on.
func (c *checker) check() Result {
	if c.actions == [checks]Action{} {
		return Result{}
	}
	c.status = at(c.Root, c.Status)
	if c.Part != StatusAlone {
		c.reservedNames()
		c.topLevelFields()
		c.reservedKeys()
	}
	if c.Part != WithoutStatus && c.on(Conditions) && c.status.Kind() == document.Object {
		if conditions, found := c.status.Get("conditions"); found {
			c.conditions(conditions)
		}
	}
	if c.on(FractionsInSpec) || c.on(UnsafeIntegers) || c.on(Dates) {
		c.values()
	}
	if c.warned > 0 {
		c.result.Warnings = append(c.result.Warnings, fmt.Sprintf("and %d more", c.warned))
	}
	return c.result
}
