package audit

import (
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
	// RequestReceived is when who asks is known, and nothing has been done yet.
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
type Policy struct{ rules kubeaudit.PolicyRuleEvaluator }

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
	return &Policy{policy.NewPolicyRuleEvaluator(&in)}, nil
}

// Decide returns what the policy says of a request: what its method and path ask for, and who asks.
func (p *Policy) Decide(i *resource.Info, u *identity.User) Decision {
	if p == nil {
		return Decision{}
	}
	a := asked.Get().(*attributes)
	defer asked.Put(a)
	a.user = user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
	a.record = authorizer.AttributesRecord{
		User: &a.user, Verb: i.VerbName(), Namespace: i.Namespace, APIGroup: i.Group, APIVersion: i.Version,
		Resource: i.Resource, Subresource: i.Subresource, Name: either(i.Name, selectedName(i)), ResourceRequest: i.IsResource,
		Path: i.Path,
	}
	c := p.rules.EvaluatePolicyRule(&a.record)
	*a = attributes{}
	d := Decision{OmitManagedFields: c.OmitManagedFields, Level: levelOf(c.Level)}
	for _, omitted := range c.OmitStages {
		for s := RequestReceived; s <= Panic; s++ {
			if string(omitted) == s.String() {
				d.omitted |= 1 << s
			}
		}
	}
	return d
}

// selectedName returns the name that a list, a watch or the deletion of a collection selects; "" if it selects none. It is
// the name of the request's object to Kubernetes.
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
