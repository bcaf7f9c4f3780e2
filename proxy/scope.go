package proxy

import (
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/admission/conventions"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

// A scope is an operation as a set of policies has it: a verb on a resource or a subresource, by a route. It has all
// that method, path and files decide, so that a request asks for none of it: the request finds its scope and runs
// its stages. A scope is immutable. It follows RequestScope in k8s.io/apiserver's handlers.
type scope struct {
	set      *policies.Set
	route    *route
	backend  *backend
	resolver resource.Resolver
	verb     resource.Verb
	storage  storage.Storage
	// scaler is the storage of a Scale that the gateway makes of the object itself; nil unless the operation writes
	// one.
	scaler storage.Scaler
	rules  rules             // that may match the operation
	object rules             // that may match operations on the object that it is a subresource of
	limits *ratelimit.Scoped // nil if no limit may count requests
	// operation is what a document says of the request beside its body; nil if it says nothing.
	operation *contract.Operation
	editing   editing // what filters of the route change of the head
	traits
	enforcement
	rolledOut
	scopeTelemetry
	steps
}

// traits say what requests of an operation are like.
type traits struct {
	isRead      bool // they change nothing
	hasBody     bool // they carry an object or a patch
	connects    bool // they lead to somewhere else than to a stored object, or go on in another protocol
	isOperation bool // they ask for something other than to read or write an object
}

// enforcement says what is in force for an operation.
type enforcement struct {
	// held could have policies for requests, and has errors; nil: every folder of policy files is in force.
	held          *source.Folder
	isPrefiltered bool // policies may be asked before an object is read
	isWatched     bool // answers are compared with what the document declares
	isClosed      bool // requests have a method that no file describes, and could change what policies or a schema judge
	isJudged      bool // requests are judged, if only by limits: they do not just pass
}

// rolledOut says how far the description of an operation is in force.
type rolledOut struct {
	plan *rollout.Plan // nil: for all requests
	// shadowed counts requests to which the description is not applied; nil if it is for all.
	shadowed    *rollout.Operation
	shadowStage int // the place of its stage
}

// scopeTelemetry is how metrics and traces name an operation.
type scopeTelemetry struct {
	series  *telemetry.Series // of its requests
	decided *telemetry.PolicyCounters
	// template is the path as a template; "" if no file describes it.
	template string
}

// steps are the way of a request from its head to its answer.
type steps struct {
	// stages serve a request, in their order; explained are the stages of a request that is only explained, and answer
	// the steps that complete the answer.
	stages, explained []stage
	answer            []answerStep
	write             write // of requests that change something
}

// newScope compiles the operation that a request asks for. connects says that the request leads to somewhere else,
// or asks for another protocol that is allowed.
func (g *Gateway) newScope(t *scopes, route *route, r *resource.Resource, i *resource.Info, connects bool) *scope {
	b, set := route.backend, t.set
	own := rulesFor(set, i)
	object := own
	if i.Subresource != "" {
		whole := *i
		whole.Subresource = ""
		object = rulesFor(set, &whole)
	}
	s := &scope{
		set: set, route: route, backend: b, resolver: t.resolver(route), verb: i.Verb,
		storage: b.kind.storage(g, set, b, r, i, own.policies, object.policies), rules: own, object: object,
		limits: set.Limits().For(i, &route.place), operation: b.kind.operation(set, r, i),
		traits: traits{
			isRead: i.Verb.Reads() && !connects, hasBody: i.HasBody(), connects: connects, isOperation: r != nil &&
				r.Operation != nil,
		},
		enforcement: enforcement{
			held: set.Held(&route.place, i), isWatched: set.WatchesAnswers(r, i),
			isPrefiltered: i.IsWrite() && i.Verb != resource.VerbCreate && own.policies.CanPrefilter(),
			isClosed:      i.IsOtherMethod && r != nil && mayWrite(i) && set.Judges(r),
		},
		scopeTelemetry: scopeTelemetry{new(telemetry.Series), t.decided, templateOf(r, i)},
	}
	var left []string
	s.editing, left = editingOf(route, i, s.resolver.IsDescribed())
	g.sayLeft(route, left)
	if i.Documented != nil {
		s.hasBody = s.operation != nil && len(s.operation.Bodies) > 0
	}
	s.isJudged = !i.IsUndescribed || s.isClosed || s.limits != nil
	if s.hasBody {
		s.scaler = s.storage.Scaler()
	}
	s.write = writeOf(s)
	if s.plan = planOf(i, r); s.plan != nil {
		s.shadowed = g.countOf(s.plan).Operation(operationOfPlan(i, r))
	}
	s.stages, s.explained, s.answer = g.stagesOf(s, i, false), g.stagesOf(s, i, true), g.answerOf(s, i)
	s.shadowStage = slices.IndexFunc(s.stages, func(one stage) bool { return one.name == "shadow" })
	return s
}

// rules are the policies that may match operations on a resource or a subresource.
type rules struct {
	policies    *admission.Scoped
	conventions *conventions.ResourcePolicies
}

func rulesFor(set *policies.Set, i *resource.Info) rules {
	return rules{set.Admission().For(i), set.Conventions().For(i)}
}

// rulesOf returns the rules of a write: a Scale is admitted as a Scale, and then as its object.
func (s *scope) rulesOf(i *resource.Info) *rules {
	if s.scaler != nil && i.Subresource == "" {
		return &s.object
	}
	return &s.rules
}

// isOpaque reports whether there is nothing to do with the object of a request, so that its body passes as it came.
func (s *scope) isOpaque(r *storage.Request) bool {
	return !s.hasBody || r.Info.Documented == nil && s.passesAsItCame(r)
}

// passesUnread reports whether nothing in force concerns the body of a request, so that the backend gets it unread.
func (s *scope) passesUnread(r *storage.Request) bool {
	return s.storage.MediaTypes().Unread && s.passesAsItCame(r)
}

// passesAsItCame reports whether no policy concerns the body, and nothing has to be prepared in it.
func (s *scope) passesAsItCame(r *storage.Request) bool {
	switch {
	case r.Patch == storage.FormPatch, r.Patch == storage.JSONPatch && s.operation.HoldsEffects():
		// which the document describes
		return false
	}
	return s.storage.IsOpaque(&r.Info) && !s.rules.conventions.Concern(&r.Info, s.verb.Operation())
}

// templateOf returns the path of a request as a template; "" if no file describes it.
func templateOf(r *resource.Resource, i *resource.Info) string {
	if i.Documented != nil {
		return i.Template
	}
	if r == nil || !i.IsResource {
		return ""
	}
	for _, path := range r.Paths {
		if strings.Contains(path, "{name}") == (i.Name != "") {
			return path
		}
	}
	var b strings.Builder
	switch {
	case len(r.Paths) > 0:
		return r.Paths[0]
	case i.Group == "":
		b.WriteString("/api/" + i.Version)
	default:
		b.WriteString("/apis/" + i.Group + "/" + i.Version)
	}
	if i.Namespace != "" {
		b.WriteString("/namespaces/{namespace}")
	}
	b.WriteString("/" + i.Resource)
	if i.Name != "" {
		b.WriteString("/{name}")
	}
	if i.Subresource != "" {
		b.WriteString("/" + i.Subresource)
	}
	return b.String()
}

// names returns the names of stages, in their order.
func names(all []stage) []string {
	in := make([]string, len(all))
	for i := range all {
		in[i] = all[i].name
	}
	return in
}
