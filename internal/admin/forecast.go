package admin

import "time"

// Forecast is the answer of /policies?request=METHOD PATH: which policies and limits apply to the
// request, as far as its method and path show, and why the others do not.
type Forecast struct {
	Request string `json:"request"`
	// Refusal is why no policy is asked; empty if they are.
	Refusal string `json:"refusal,omitempty"`
	// Route is the route of the request; nil if there is none.
	Route *Route `json:"route,omitempty"`
	// About says which resource is meant; nil if that is not known.
	About *RequestResource `json:"about,omitempty"`
	// Stages are the steps that requests of the operation pass, in their order.
	Stages []string `json:"stages,omitempty"`
	// Preconditions says who compares preconditions now; nil if that does not depend on what the backend was seen to
	// do.
	Preconditions *Preconditions `json:"preconditions,omitempty"`
	// Policies are in the order in which they run: mutating ones, conventions, validating ones. Policies
	// that run for no request at all come last.
	Policies []Applicability `json:"policies"`
	Limits   []Applicability `json:"limits"`
}

// Preconditions say who compares If-Match and its like under `preconditions: Auto`.
type Preconditions struct {
	// ComparedBy is Backend or Gateway.
	ComparedBy string `json:"comparedBy"`
	Because    string `json:"because"`
	// Since is when that was found out; nil if it is not known yet.
	Since *time.Time `json:"since,omitempty"`
}

// Route leads requests to an upstream.
type Route struct {
	Name       string `json:"name,omitempty"`
	Host       string `json:"host,omitempty"`
	PathPrefix string `json:"pathPrefix"`
	Upstream   string `json:"upstream"`
	// Rule and Listener are of a route of Gateway API: the name of the rule or its number, and the listener with the
	// namespace and name of its Gateway.
	Rule     string `json:"rule,omitempty"`
	Listener string `json:"listener,omitempty"`
}

// RequestResource is the resource of a request.
type RequestResource struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Version     string `json:"version,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Path is the path that the backend gets.
	Path string `json:"path"`
	// IsDescribed says that a policy file describes it.
	IsDescribed bool `json:"isDescribed"`
}

// Applicability says whether a policy, one of its bindings or a limit applies to a request.
type Applicability struct {
	// Phase is Mutating, Conventions, Validating or None.
	Phase string `json:"phase,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name"`
	// Folder is the folder of policy files that it comes from and Owner who mends it, if it has one.
	Folder string `json:"folder,omitempty"`
	Owner  string `json:"owner,omitempty"`
	// Applies is Yes, Maybe or No.
	Applies string `json:"applies"`
	// Because says why not, or what else decides.
	Because  string          `json:"because,omitempty"`
	Bindings []Applicability `json:"bindings,omitempty"`
}
