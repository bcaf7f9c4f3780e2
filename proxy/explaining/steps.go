package explaining

import "github.com/admission-gateway/gateway/internal/storage"

// A Step is a step of the way that a request takes.
type Step struct {
	name, about string
	// stores says that what the step changes may come from the stored object.
	stores bool
}

// The steps, as docs/internals/architecture.md has them.
var (
	Limits   = Step{"Limits", "the rate limits that count the request", false}
	Contract = Step{"Contract", "what the API's document asks of the request beside its body", false}
	Read     = Step{"Read", "the backend is asked; policies judge writes", false}
	Pass     = Step{"Pass", "no policy, schema or default is about the object: the body passes as it came", false}
	Others   = Step{"Undescribed", "no policy file describes the path: the request passes as it came", false}
	Body     = Step{"Body", "the body is read, strictly", false}
	URL      = Step{"URL", "what the URL says is filled in, and unknown fields are taken out", false}
	Prepare  = Step{"Prepare", "what no client may set is taken out, or stays as it is stored", true}
	Defaults = Step{"Defaults", "the defaults of the schema are set", false}
	Mutation = Step{"Mutation", "the policies that change the object run", false}
	Settle   = Step{"Settle", "what policies made is held to the URL and the schema, and completed", true}
	Metadata = Step{"Metadata", "the system metadata of the object is set", true}
	Schema   = Step{"Schema", "the object is held to its schema, the schema's rules and the conventions", false}
	Policies = Step{"Policies", "the validating policies judge the object", false}
)

// At says that a step begins with the object as it is now: what changed since the step before is that
// step's. It says nothing while a policy runs, which has steps of its own.
func (r *Recorder) At(s Step, w *storage.Write) {
	if r == nil || r.policy != nil {
		return
	}
	if w != nil && w.Object != nil {
		r.Object(w.Object, r.stores && w.Existing.Object != nil)
	}
	r.stores = s.stores
	r.Step(s.name, s.about)
}
