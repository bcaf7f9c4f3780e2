// Package explanation has the form of an explanation: what became of one request, step by step. It is made
// by proxy/explaining, sent by the gateway as JSON, and written here as text and as HTML.
package explanation

import "encoding/json"

// APIVersion and Kind are the type of an Explanation.
const (
	APIVersion = "admission-gateway.io/v1alpha1"
	Kind       = "Explanation"
)

// An Explanation says what becomes of a request. Nothing was changed at the backend.
type Explanation struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Request    Request `json:"request"`
	// Resource says what method and path mean; nil if that is not known.
	Resource *Resource `json:"resource,omitempty"`
	// Steps are in the order of the way of the request.
	Steps []Step `json:"steps"`
	// Others are the policies that are not about the request.
	Others []Policy `json:"others,omitempty"`
	Limits []Limit  `json:"limits,omitempty"`
	// Findings are what should be mended in the policy files of a question that brings its own.
	Findings []string `json:"findings,omitempty"`
	// Unknown says what cannot be known.
	Unknown []string `json:"unknown,omitempty"`
	Answer  Response `json:"answer"`
	// Sent are the requests that the backend would get.
	Sent []Message `json:"sent,omitempty"`
	// IsCut says that the explanation would be too long, and that its end is left out.
	IsCut bool `json:"isCut,omitempty"`
}

// A Request is the request of an explanation, and its user.
type Request struct {
	Method string   `json:"method"`
	Path   string   `json:"path"`
	User   string   `json:"user,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Route  string   `json:"route,omitempty"`
	// Upstream is the backend, Policies the hash of the policy files.
	Upstream string `json:"upstream,omitempty"`
	Policies string `json:"policies,omitempty"`
}

// A Resource is what a request names.
type Resource struct {
	Verb        string `json:"verb"`
	Operation   string `json:"operation,omitempty"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	IsDescribed bool   `json:"isDescribed"`
	// Stages are the steps that requests of the operation pass when they are served.
	Stages []string `json:"stages,omitempty"`
}

// A Step is one step of the way.
type Step struct {
	Name string `json:"name"`
	// About says what the step does.
	About string `json:"about"`
	Edits []Edit `json:"edits,omitempty"`
	// Expressions are evaluated by the step itself, not by a policy.
	Expressions []Expression `json:"expressions,omitempty"`
	Policies    []Policy     `json:"policies,omitempty"`
	// Refusal is why the way ends here.
	Refusal string `json:"refusal,omitempty"`
}

// A Policy is a policy that was looked at.
type Policy struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name"`
	// File and Line are its place, if that is known.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Origin
	// Item is the item of the body that it looked at, such as "[3]"; empty for the whole.
	Item    string `json:"item,omitempty"`
	Binding string `json:"binding,omitempty"`
	// Verdict is its result: Allow, Deny, Ignore, Audit, Mutate or Unchanged; "NoMatch" if it is
	// not about the request.
	Verdict string   `json:"verdict"`
	Reasons []Reason `json:"reasons,omitempty"`
	// Expressions are in the order in which they were evaluated.
	Expressions []Expression `json:"expressions,omitempty"`
	// Rules are the rules in Rego that had a value.
	Rules    []Rule   `json:"rules,omitempty"`
	Messages []string `json:"messages,omitempty"`
	Edits    []Edit   `json:"edits,omitempty"`
}

// An Origin is the folder of policy files that an object comes from, and its owner; both are empty if it has none.
type Origin struct {
	Folder string `json:"folder,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

// Phrase follows the name of the object.
func (o Origin) Phrase() string {
	if o.Owner == "" {
		return ""
	}
	return ", from '" + o.Folder + "' of '" + o.Owner + "'"
}

// SetOrigins says of each policy and limit where it comes from.
func (s *Explanation) SetOrigins(of func(kind, name string) (folder, owner string)) {
	set := func(all []Policy) {
		for i := range all {
			all[i].Folder, all[i].Owner = of(all[i].Kind, all[i].Name)
		}
	}
	for i := range s.Steps {
		set(s.Steps[i].Policies)
	}
	set(s.Others)
	for i := range s.Limits {
		s.Limits[i].Folder, s.Limits[i].Owner = of("RateLimitPolicy", s.Limits[i].Name)
	}
}

// NoMatch is the verdict of a policy that is not about the request.
const NoMatch = "NoMatch"

// A Reason says why a policy, or a binding of it, does not match the request.
type Reason struct {
	Binding string `json:"binding,omitempty"`
	// Field decides, in the policy or the binding.
	Field   string `json:"field,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Because string `json:"because"`
}

// An Expression is a CEL expression with its value.
type Expression struct {
	// Field is the field of the expression in the policy, or in the file if that is given, if it is known.
	Field string `json:"field,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	// Variable is the variable that it computes.
	Variable string          `json:"variable,omitempty"`
	Text     string          `json:"text"`
	Value    string          `json:"value,omitempty"`
	Error    string          `json:"error,omitempty"`
	Parts    []Subexpression `json:"parts,omitempty"`
	// IsDoubtful says that the values of the parts are not known.
	IsDoubtful bool `json:"isDoubtful,omitempty"`
}

// A Subexpression is a part of an expression. Outer parts come first.
type Subexpression struct {
	Text   string `json:"text"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Depth  int    `json:"depth"`
	Value  string `json:"value"`
	// InLoop says that the value is the one of the last round of a loop.
	InLoop bool `json:"inLoop,omitempty"`
}

// A Rule is a rule in Rego.
type Rule struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line"`
}

// An Edit is a change of one field.
type Edit struct {
	Path string `json:"path"`
	// Old and New are values as JSON, or empty.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// A Limit is a rate limit.
type Limit struct {
	Name string `json:"name"`
	Origin
	// Counts says that the limit counted the request.
	Counts bool `json:"counts"`
	// Because says why it did not.
	Because string `json:"because,omitempty"`
	// Refuses says that the limit refuses the request.
	Refuses bool `json:"refuses,omitempty"`
}

// Decision says in a word how it ends.
type Decision string

// The decisions.
const (
	// Admitted says that the request goes to the backend.
	Admitted Decision = "Admitted"
	// Refused says that the gateway refuses it.
	Refused Decision = "Refused"
	// Answered says that the request is answered without the backend's deciding anything.
	Answered Decision = "Answered"
	// Undecided says that it cannot be known.
	Undecided Decision = "Unknown"
)

// A Response is what the client would get.
type Response struct {
	Decision Decision `json:"decision"`
	// Code is the status code; 0 if the backend decides.
	Code     int             `json:"code,omitempty"`
	Status   json.RawMessage `json:"status,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

// A Message is a request to the backend.
type Message struct {
	Method      string `json:"method"`
	Target      string `json:"target"`
	ContentType string `json:"contentType,omitempty"`
	// Body is the body, unless something of it is hidden or left out: SHA256 and Bytes are of what
	// would be sent.
	Body   string `json:"body,omitempty"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// IsHidden says that values of the body are replaced by digests, IsCut that its end is left out.
	IsHidden bool `json:"isHidden,omitempty"`
	IsCut    bool `json:"isCut,omitempty"`
}
