package policies

import (
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Finding is something about a policy file that its author should know.
type Finding = finding.Finding

// Severity says what a finding means for the policy set.
type Severity = finding.Severity

// The severities of findings.
const (
	// Error makes the set unusable.
	Error = finding.Error
	// Warning leaves the set usable, though perhaps not as its author means it.
	Warning = finding.Warning
	// Note leaves the set usable: nearly every document says it, and a gateway does not enforce it.
	Note = finding.Note
	// Gap leaves the set usable: a document rightly asks for what the gateway cannot enforce.
	Gap = finding.Gap
	// Wording leaves the set usable as it is meant: a message of its author's is not worded as the API conventions ask.
	Wording = finding.Wording
	// Remark leaves the set usable as it is meant: it says what follows from the files.
	Remark = finding.Remark
)

// findings collects what is found.
type findings = finding.List

// Route leads requests to an upstream.
type Route = applicability.Route
