package applicability

import "github.com/admission-gateway/gateway/policies/finding"

// The ids of the findings.
const (
	AlwaysFails       = "always-fails"
	describedTwice    = "described-twice"
	lostDefinition    = "lost-definition"
	matchedByWildcard = "matched-by-wildcard"
	missingFile       = "missing-file"
	NeverApplies      = "never-applies"
	neverEqual        = "never-equal"
	neverFails        = "never-fails"
	neverMatches      = "never-matches"
	neverMet          = "never-met"
	neverPasses       = "never-passes"
	passesUndescribed = "passes-undescribed"
	repeatedRule      = "repeated-rule"
	shadowedCondition = "shadowed-condition"
	Unasked           = "unasked"
	UnfitValue        = "unfit-value"
	UnknownField      = "unknown-field"
	UnknownName       = "unknown-name"
	unreachablePath   = "unreachable-path"
	unreachableRule   = "unreachable-rule"
	unused            = "unused"
	wrongDialect      = "wrong-dialect"
)

// Checks describes what is found, by the ids.
func Checks() []finding.Check {
	return []finding.Check{
		{ID: AlwaysFails, Why: "An expression that fails for every request, or for every one of an operation, refuses it, or leaves the policy out."},
		{ID: describedTwice, Why: "Two resources at one path cannot be told apart by a route that leads there."},
		{ID: lostDefinition, Why: "A definition that disappears while policies name its resource is rather a lost mount than a wish."},
		{ID: matchedByWildcard, Why: "It says what a wildcard matches at an ordinary API."},
		{ID: missingFile, Why: "A test that names a file which is not there cannot be played."},
		{ID: NeverApplies, Why: "What applies to no request that there can be does nothing."},
		{ID: neverEqual, Why: "A text that a value never is, is perhaps spelled otherwise."},
		{ID: neverFails, Why: "A rule that no object can break does nothing: perhaps a bound or a side is mistaken."},
		{ID: neverMatches, Why: "A group, a resource, a verb or a selector that no request has is perhaps spelled otherwise."},
		{ID: neverMet, Why: "A policy whose conditions contradict each other, or the schema, never runs."},
		{ID: neverPasses, Why: "A rule that no object can keep refuses everything."},
		{ID: passesUndescribed, Why: "A path that is described for one route passes by another one as if nothing described it."},
		{ID: repeatedRule, Why: "A rule that stands twice is judged twice."},
		{ID: shadowedCondition, Why: "A condition that is true wherever the others are decides nothing."},
		{ID: Unasked, Why: "An expression fails where an optional field is left out that it reads."},
		{ID: UnfitValue, Why: "A value that its field cannot hold is refused whenever it is set."},
		{ID: UnknownField, Why: "A field that no matched object has is perhaps spelled otherwise."},
		{ID: UnknownName, Why: "A name, a verb or a scope that means nothing is perhaps spelled otherwise."},
		{ID: unreachablePath, Why: "A description whose paths no route leads to has no effect."},
		{ID: unreachableRule, Why: "Of an audit policy the first rule that matches counts, so that no later one applies."},
		{ID: unused, Why: "What no expression, no route and no resource names is perhaps spelled otherwise where it is meant."},
		{ID: wrongDialect, Why: "An API server is asked by dry runs, which an ordinary API carries out."},
	}
}
