package audit

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	kubeaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/index"
	"github.com/admission-gateway/gateway/internal/readings"
	"github.com/admission-gateway/gateway/internal/resource"
)

// A Level is how much of a request is recorded.
type Level uint8

// The levels, from the least to the most.
const (
	None Level = iota
	Metadata
	Request
	RequestResponse
)

var levels = [...]string{"None", "Metadata", "Request", "RequestResponse"}

// String returns the level's name in policies and events.
func (l Level) String() string { return levels[l] }

// A Stage is a moment in the life of a request at which an event may be recorded.
type Stage uint8

// The stages.
const (
	// RequestReceived is when the user is known, and nothing has been done yet.
	RequestReceived Stage = iota
	// ResponseStarted is when the head of an answer goes out that lasts, such as a watch's.
	ResponseStarted
	// ResponseComplete is when the answer is out.
	ResponseComplete
	// Panic is when the request ended in a panic.
	Panic
)

var stages = [...]string{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}

// String returns the stage's name in policies and events.
func (s Stage) String() string { return stages[s] }

// A Decision says how much of a request a policy wants recorded.
type Decision struct {
	Level Level
	// OmitManagedFields leaves metadata.managedFields out of recorded objects.
	OmitManagedFields bool

	omitted uint8 // a bit for each stage that is not recorded
}

// Has reports whether the policy wants an event of the stage.
func (d Decision) Has(s Stage) bool { return d.Level != None && d.omitted&(1<<s) == 0 }

// A Policy decides which requests are recorded, and how much of them. It is immutable and safe for
// concurrent use. A nil Policy records nothing.
type Policy struct {
	rules []rule // the first one that matches decides
	index index.Index
	other Decision // of requests that no rule matches
	// hasPaths says that a rule names paths that are no resources.
	hasPaths bool
}

// A rule is one of a policy's. Kubernetes' evaluator has it alone, and says if it matches.
type rule struct {
	evaluator kubeaudit.PolicyRuleEvaluator
	decision  Decision
	// isForAll is set if the rule names no requests: it matches every one.
	isForAll bool
}

// Compile makes a Policy of the fields of an audit Policy. The errors are kube-apiserver's own.
func Compile(p *auditv1.Policy) (*Policy, field.ErrorList) {
	var in auditinternal.Policy
	if err := auditv1.Convert_v1_Policy_To_audit_Policy(p, &in, nil); err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	if found := validation.ValidatePolicy(&in); len(found) > 0 {
		return nil, found
	}
	if len(in.Rules) == 0 {
		return nil, field.ErrorList{field.Required(field.NewPath("rules"), "a policy without rules records nothing")}
	}
	made := &Policy{other: Decision{OmitManagedFields: in.OmitManagedFields, omitted: bitsOf(in.OmitStages)}}
	for position := range in.Rules {
		made.add(position, &in, in.Rules[position])
	}
	return made, nil
}

// matched is the level of rules to their evaluators, from which no match differs.
const matched = auditinternal.LevelMetadata

func (p *Policy) add(position int, in *auditinternal.Policy, r auditinternal.PolicyRule) {
	d := Decision{Level: levelOf(r.Level), OmitManagedFields: in.OmitManagedFields, omitted: bitsOf(in.OmitStages) |
		bitsOf(r.OmitStages)}
	if r.OmitManagedFields != nil {
		d.OmitManagedFields = *r.OmitManagedFields
	}
	p.hasPaths = p.hasPaths || len(r.NonResourceURLs) > 0
	r.Level = matched
	p.rules = append(p.rules,
		rule{policy.NewPolicyRuleEvaluator(&auditinternal.Policy{Rules: []auditinternal.PolicyRule{r}}), d,
			isForAll(&r)})
	if len(r.Resources) == 0 {
		p.index.Add(position, &index.Rule{Group: index.Any, Resource: index.Any, Actions: 1, Namespaces: r.Namespaces})
	}
	for _, of := range r.Resources {
		names := of.Resources
		if len(names) == 0 {
			names = []string{index.Any}
		}
		for _, name := range names {
			at := index.Rule{Group: of.Group, Resource: name, Actions: 1, Namespaces: r.Namespaces}
			if main, sub, _ := strings.Cut(name, "/"); name != index.Any {
				at.Resource, at.Subresources = main, []string{sub}
			}
			if len(at.Subresources) > 0 && at.Subresources[0] == index.Any {
				at.Subresources = nil
			}
			p.index.Add(position, &at)
		}
	}
}

// isForAll reports whether a rule matches every request.
func isForAll(r *auditinternal.PolicyRule) bool {
	return len(r.Users)+len(r.UserGroups)+len(r.Verbs)+len(r.Resources)+len(r.Namespaces)+len(r.NonResourceURLs) == 0
}

func bitsOf(omitted []auditinternal.Stage) (set uint8) {
	for s := RequestReceived; s <= Panic; s++ {
		if slices.Contains(omitted, auditinternal.Stage(s.String())) {
			set |= 1 << s
		}
	}
	return set
}

// Decide returns what the policy says of a request: its method, its path and its user. Of a path that servers read in
// different ways it has all that the policy says of any of them: how a client spells a path must not decide what is
// recorded.
func (p *Policy) Decide(i *resource.Info, u *identity.User) Decision {
	if p == nil {
		return Decision{}
	}
	d := p.decide(i, i.Path, u)
	if p.hasPaths && !i.IsResource {
		if readings.Any(i.Path, func(reading string) bool {
			d = d.and(p.decide(i, reading, u))
			return false
		}) { // it has more readings than can be looked at
			for at := range p.rules {
				d = d.and(p.rules[at].decision)
			}
		}
	}
	return d
}

// and returns a decision that records all that either does.
func (d Decision) and(other Decision) Decision {
	switch {
	case other.Level == None:
		return d
	case d.Level == None:
		return other
	}
	return Decision{max(d.Level, other.Level), d.OmitManagedFields && other.OmitManagedFields,
		d.omitted & other.omitted}
}

// decide is Decide for one reading of the path.
func (p *Policy) decide(i *resource.Info, path string, u *identity.User) Decision {
	if len(p.rules) > 0 && p.rules[0].isForAll {
		return p.rules[0].decision // as in a policy for all requests
	}
	var room [8]*index.List
	var rules index.Search
	for _, l := range p.index.Find(room[:0], &index.Key{Group: i.Group, Version: i.Version, Resource: i.Resource,
		Subresource: i.Subresource}, 1) {
		rules.From(l.Plain)
		rules.From(l.Named[i.Namespace])
	}
	position := rules.Next()
	switch {
	case position < 0:
		return p.other
	case p.rules[position].isForAll:
		return p.rules[position].decision
	}
	a := asked.Get().(*attributes)
	defer asked.Put(a)
	a.user = user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
	a.record = authorizer.AttributesRecord{
		User: &a.user, Verb: i.VerbName(), Namespace: i.Namespace, APIGroup: i.Group, APIVersion: i.Version,
		Resource: i.Resource, Subresource: i.Subresource, Name: either(i.Name, selectedName(i)),
		ResourceRequest: i.IsResource,
		Path:            path,
	}
	d := p.other
	for ; position >= 0; position = rules.Next() {
		if r := &p.rules[position]; r.evaluator.EvaluatePolicyRule(&a.record).Level == matched {
			d = r.decision
			break
		}
	}
	*a = attributes{}
	return d
}

// selectedName returns the name that a list, a watch or the deletion of a collection selects; "" if it selects none. It
// is the name of the request's object to Kubernetes.
func selectedName(i *resource.Info) string {
	if !i.Verb.Selects() {
		return ""
	}
	text, found := i.Param("fieldSelector")
	if !found {
		return ""
	}
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	if len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}

// attributes are a request as Kubernetes' rules see it.
type attributes struct {
	user   user.DefaultInfo
	record authorizer.AttributesRecord
}

var asked = sync.Pool{New: func() any { return new(attributes) }}

func levelOf(l auditinternal.Level) Level {
	switch l {
	case auditinternal.LevelMetadata:
		return Metadata
	case auditinternal.LevelRequest:
		return Request
	case auditinternal.LevelRequestResponse:
		return RequestResponse
	}
	return None
}
