package scan

import (
	"strings"

	"github.com/admission-gateway/gateway/admission"
)

// A Tally counts the results of objects.
type Tally struct {
	// Objects were read; Assessed are the ones that a policy matches or a schema describes.
	Objects  int64 `json:"objects"`
	Assessed int64 `json:"judged"`
	// Denied objects would be refused, Unjudged ones could not be judged; of Warned and Audited ones policies would
	// say something.
	Denied   int64 `json:"denied"`
	Unjudged int64 `json:"unjudged"`
	Warned   int64 `json:"warned"`
	Audited  int64 `json:"audited"`
	// Findings are all findings, listed or not.
	Findings int64 `json:"findings"`
	// Changes counts objects by how the verdicts of two sets differ.
	Changes map[string]int64 `json:"changes,omitempty"`
	// Skipped counts what was not judged, by the reason.
	Skipped map[string]int64 `json:"skipped,omitempty"`

	Policies   map[string]*PolicyTally `json:"policies,omitempty"`
	Resources  map[string]*Counts      `json:"resources,omitempty"`
	Namespaces map[string]*Counts      `json:"namespaces,omitempty"`
	Groups     map[string]*Counts      `json:"groups,omitempty"`
}

// A PolicyTally counts the objects that a policy applied to, by its decision.
type PolicyTally struct {
	Assessed int64 `json:"judged"`
	Denied   int64 `json:"denied"`
	Audited  int64 `json:"audited"`
	Failed   int64 `json:"failed"`
	Changed  int64 `json:"changed"`
}

// Counts counts the objects of a resource, a namespace or a group.
type Counts struct {
	Objects  int64 `json:"objects"`
	Denied   int64 `json:"denied"`
	Unjudged int64 `json:"unjudged"`
	Warned   int64 `json:"warned"`
	Audited  int64 `json:"audited"`
	// Passed counts decisions of policies that had nothing to say.
	Passed int64 `json:"passed"`
}

func newTally() *Tally {
	return &Tally{
		Changes: map[string]int64{}, Skipped: map[string]int64{}, Policies: map[string]*PolicyTally{},
		Resources: map[string]*Counts{}, Namespaces: map[string]*Counts{}, Groups: map[string]*Counts{},
	}
}

// reset empties the tally.
func (t *Tally) reset() {
	clear(t.Changes)
	clear(t.Skipped)
	clear(t.Policies)
	clear(t.Resources)
	clear(t.Namespaces)
	clear(t.Groups)
	*t = Tally{
		Changes: t.Changes, Skipped: t.Skipped, Policies: t.Policies, Resources: t.Resources, Namespaces: t.Namespaces,
		Groups: t.Groups,
	}
}

// add adds another tally.
func (t *Tally) add(u *Tally) {
	t.Objects += u.Objects
	t.Assessed += u.Assessed
	t.Denied += u.Denied
	t.Unjudged += u.Unjudged
	t.Warned += u.Warned
	t.Audited += u.Audited
	t.Findings += u.Findings
	addCounts(t.Changes, u.Changes)
	addCounts(t.Skipped, u.Skipped)
	for name, p := range u.Policies {
		to := t.policy(name)
		to.Assessed += p.Assessed
		to.Denied += p.Denied
		to.Audited += p.Audited
		to.Failed += p.Failed
		to.Changed += p.Changed
	}
	addParts(t.Resources, u.Resources)
	addParts(t.Namespaces, u.Namespaces)
	addParts(t.Groups, u.Groups)
}

func addCounts(to, from map[string]int64) {
	for name, n := range from {
		to[name] += n
	}
}

func addParts(to, from map[string]*Counts) {
	for name, p := range from {
		into := part(to, name)
		into.Objects += p.Objects
		into.Denied += p.Denied
		into.Unjudged += p.Unjudged
		into.Warned += p.Warned
		into.Audited += p.Audited
		into.Passed += p.Passed
	}
}

const (
	// maxParts is how many names of one kind are counted each on its own.
	maxParts = 10_000
	// others replaces all further names.
	others = "(others)"
	// unknown replaces the resource of an object at a path that cannot be read.
	unknown = "(unknown)"
)

// part returns the count of a name.
func part(of map[string]*Counts, name string) *Counts {
	p := of[name]
	if p != nil {
		return p
	}
	if len(of) >= maxParts {
		if p = of[others]; p != nil {
			return p
		}
		name = others
	}
	p = &Counts{}
	of[strings.Clone(name)] = p // which may be a part of a path
	return p
}

func (t *Tally) policy(name string) *PolicyTally {
	p := t.Policies[name]
	if p == nil {
		p = &PolicyTally{}
		t.Policies[name] = p
	}
	return p
}

// decisions counts the decisions of policies on the current object. It implements
// admission.Observer.
type decisions struct {
	tally  *Tally
	passed int64
}

// Decided implements admission.Observer.
func (d *decisions) Decided(_ int, policy, _ string, v admission.Verdict, _ int64) {
	p := d.tally.policy(policy)
	p.Assessed++
	switch v {
	case admission.Denied:
		p.Denied++
	case admission.Noted:
		p.Audited++
	case admission.Passed, admission.Errored:
		p.Failed++
	case admission.Changed:
		p.Changed++
	default:
		d.passed++
	}
}
