package proxy

import (
	"errors"
	"slices"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/policies"
)

// The reasons why a write is not judged.
var (
	// ErrOldUnknown is the outcome of a write whose verdict depends on a stored object that is not known.
	ErrOldUnknown = errors.New("the stored object, on which the verdict depends, is not known")
	// ErrNotWrite is the outcome of a request that neither creates nor replaces an object.
	ErrNotWrite = errors.New("it neither creates nor replaces an object")
	// ErrNoRoute is the outcome of a write at a path of a backend that no client reaches.
	ErrNoRoute = errors.New("no route leads to its path")
	// ErrUndescribed is the outcome of a write at a path that no file describes.
	ErrUndescribed = errors.New("no policy file describes its path")
)

// A DryRunner leads writes through the steps that requests pass, as requests,
// and sends nothing: what the backend would get is the last thing that is known of an object. The
// user is given, so that no credentials are checked, and nothing counts against rate limits. An
// DryRunner belongs to one goroutine.
type DryRunner struct {
	request  *request
	incoming server.Request
	set      *policies.Set
	scope    scope // of the dry run, with the writer for its storage
	writer   *dryWriter
	outcome  Outcome
}

// A DryRun is a write to be judged.
type DryRun struct {
	// Method and Target are of the request. They must not change while it is judged.
	Method, Target []byte
	// Upstream is the backend whose paths the target has; "" leads a client's target by the routes, with the Host.
	Upstream string
	Host     []byte
	// Body is the object as JSON, and Object the same parsed: the runner releases it. If it is nil, the body is
	// parsed as a client's is.
	Body   []byte
	Object *document.Document
	// Old is the object that the write replaces, as JSON; nil if it is not known.
	Old []byte
	// IsStored says that the write replaces an object, even if Old is not known: it cannot turn out to create one.
	IsStored bool
	// User sends the request.
	User *identity.User
	// Decided is called with the result of each policy; it may be nil.
	Decided admission.Observer
	// IsKept asks for the object that policies made.
	IsKept bool
}

// An Outcome says what became of a dry run. It is valid until the runner's next dry run.
type Outcome struct {
	Info     *resource.Info
	Resource *resource.Resource // nil if no file describes it
	// IsConcerned is false if there was nothing to judge: no policy and no schema matches such
	// writes.
	IsConcerned bool
	// Err is why the write is refused: a *status.Error, or one of the errors above if it cannot be judged. It is
	// nil for a write that is admitted.
	Err error
	// Report has what the policies found.
	Report *admission.Report
	// Warnings are the texts that the client would be warned by.
	Warnings []string
	// Object is the object as the policies that change objects left it, without what the system
	// sets; nil if no write came that far, or it was not wanted.
	Object []byte
}

// NewDryRunner returns a runner by the policy set in force now.
func (g *Gateway) NewDryRunner() *DryRunner {
	j := &DryRunner{set: g.policies(), request: newRequest()}
	j.request.gateway = g
	j.incoming.Memory.Open(g.memory.Budget, nil)
	j.writer = &dryWriter{}
	return j
}

// Run judges a write.
func (j *DryRunner) Run(t *DryRun) *Outcome {
	r := j.request
	object := j.outcome.Object[:0]
	j.outcome = Outcome{}
	j.writer.dry, j.writer.object, j.writer.isSeen = t, object, false
	j.outcome.Err = j.run(t)
	o := &j.outcome
	o.Info, o.Resource = &r.attempt.Info, r.Resource
	o.Report, o.Warnings = &r.attempt.report, r.Warnings
	if o.Object = j.writer.object; !j.writer.isSeen {
		o.Object = o.Object[:0]
	}
	return o
}

// forget ends the dry run before.
func (j *DryRunner) forget() {
	g := j.request.gateway
	j.request.reset()
	j.incoming.Memory.Close()
	j.request.begin(g, &j.incoming, j.set)
}

// run leads the write to its outcome, within the memory that a request may have.
func (j *DryRunner) run(t *DryRun) (err error) {
	j.forget()
	r := j.request
	defer func() {
		if j.incoming.Memory.Refusal() != memory.None || errors.Is(err, document.ErrNoMemory) {
			err = r.Exhausted()
		}
	}()
	defer func() {
		if r.body.parsed != nil { // no step took it
			r.body.parsed.Release()
			r.body.parsed = nil
		}
	}()
	r.body.parsed = t.Object
	if err := j.resolve(t); err != nil {
		return err
	}
	r.who.user = *t.User
	beginFindings(r)
	r.attempt.report.Observer = t.Decided
	i := &r.Info
	isCreate := i.Verb == resource.VerbCreate
	switch {
	case i.Documented != nil:
		return ErrNotWrite
	case i.IsUndescribed || !i.IsResource:
		return ErrUndescribed
	case i.Connect, !isCreate && i.Verb != resource.VerbUpdate, i.Subresource != "" && i.Subresource != "status",
		r.scope.isOperation:
		return ErrNotWrite
	}
	if i.APIPrefix != "" && r.scope.backend.isDiscovered() {
		if err := learnKind(r); err != nil {
			return err
		}
	}
	r.attempt.Write.Begin(r.Request)
	if r.scope.isOpaque(r.Request) {
		return decodeBody(r, r.attempt)
	}
	j.outcome.IsConcerned = true
	if isCreate {
		return create(r, r.attempt)
	}
	return update(r, r.attempt)
}

// resolve finds the resource of the write.
func (j *DryRunner) resolve(t *DryRun) error {
	r := j.request
	g, head := r.gateway, &j.incoming.Head
	head.Method, head.Target = t.Method, t.Target
	r.Body = t.Body
	r.attempt.Write.Begin(r.Request)
	target := t.Target
	if t.Upstream == "" {
		choice, err := g.routes.lookAnywhere(&message.Head{Method: t.Method, Host: t.Host, Target: target})
		if err != nil {
			return err
		}
		r.route = choice.routes[0]
	} else if r.route = g.routeTo(t.Upstream, str(t.Method), str(target)); r.route == nil {
		return ErrNoRoute
	}
	if rules := r.route.rules; rules != nil && t.Upstream == "" {
		var err error
		if target, err = rules.AppendTarget(nil, target); err != nil {
			return err
		}
	}
	r.Limits = &r.route.limits
	all := g.scopesOf(j.set)
	info, about, err := all.resolver(r.route).Resolve(str(t.Method), target)
	info.Place = &r.route.place
	r.SetSubject(&info, about)
	r.attempt.Write.Begin(r.Request)
	if err != nil {
		return err
	}
	j.writer.isAPIServer = r.route.backend.served != nil
	j.scope = *all.find(g, r.route, about, &info, info.Connect)
	j.writer.Storage, j.scope.storage = j.scope.storage, j.writer
	j.writer.policies = j.scope.rules.policies
	r.scope = &j.scope
	if deprecated := j.set.Deprecation(about); deprecated != "" {
		r.Warnings = append(r.Warnings, deprecated)
	}
	return nil
}

// routeTo returns the route by which requests reach a target of a backend: if there are several, one where files
// describe it; nil if there is none.
func (g *Gateway) routeTo(upstream, method, target string) (found *route) {
	path := string(pathOf([]byte(target)))
	for _, one := range g.routes.table {
		if one.backend.name != upstream ||
			!slices.ContainsFunc(one.spans, func(s span) bool { return under(path, s.to) }) {
			continue
		}
		if found == nil {
			found = one
		} else if g.rankAt(found, method, path) < g.rankAt(one, method, path) {
			found = one
		}
	}
	return found
}

// A dryWriter is a storage that prepares objects as the one of the backend does, and writes none. The stored
// object is the one of the dry run. It implements storage.Storage.
type dryWriter struct {
	storage.Storage
	dry    *DryRun
	object []byte // as the policies left it
	isSeen bool   // object is of this dry run

	policies *admission.Scoped
	// isAPIServer says that the backend keeps the metadata of objects itself, so that only policies and schemas ask for
	// the stored one.
	isAPIServer bool
}

// SetMetadata implements storage.Strategy. It comes after the last policy that changes objects.
func (d *dryWriter) SetMetadata(w *storage.Write) {
	if d.dry.IsKept {
		d.object, d.isSeen = w.Object.AppendTo(d.object[:0]), true
	}
	d.Storage.SetMetadata(w)
}

// NeedsExisting implements storage.Updater. What is known need not be asked for.
func (d *dryWriter) NeedsExisting(w *storage.Write) bool {
	switch {
	case d.dry.Old != nil:
		return true
	case d.dry.IsStored && d.isAPIServer:
		s := d.Schema(w)
		return storage.ReadsExisting(d.policies, &w.Info) || s != nil && s.NeedsOld()
	}
	return d.Storage.NeedsExisting(w)
}

// Get implements storage.Updater. The object is taken for the version that the write means to replace.
func (d *dryWriter) Get(w *storage.Write) error {
	if d.dry.Old == nil {
		return ErrOldUnknown
	}
	old, err := w.Exchanges.ParseStored(d.dry.Old)
	if err != nil {
		return err
	}
	w.Existing.Object = old
	path := resource.FieldPath{"metadata", "resourceVersion"}
	if r := w.Resource; r != nil && r.Envelope == resource.Bare {
		path = r.Fields.Version
	} else {
		giveVersion(old)
		giveVersion(w.Object)
	}
	if version, found := storage.Find(w.Object.Root(), path); found && len(path) > 0 {
		w.Existing.Version = append(w.Existing.Version[:0], shownVersion(version)...)
	}
	return nil
}

// shownVersion returns a version as the text that it is compared by.
func shownVersion(n document.Node) string {
	if n.Kind() == document.String {
		return n.Str()
	}
	return string(n.AppendRaw(nil))
}

// giveVersion gives an object without a version one, which every stored object has.
func giveVersion(d *document.Document) {
	metadata := storage.Metadata(d)
	if _, found := metadata.Get("resourceVersion"); metadata.Kind() == document.Object && !found {
		d.SetString(metadata, "resourceVersion", "1")
	}
}

// PrepareForUpdate implements storage.Strategy.
func (d *dryWriter) PrepareForUpdate(w *storage.Write) error {
	if s := d.Schema(w); s != nil && w.Existing.Object == nil && s.Stale(w.Object.Root()) {
		return ErrOldUnknown
	}
	return d.Storage.PrepareForUpdate(w)
}

// Preview implements storage.Creater. Nothing is sent.
func (d *dryWriter) Preview(*storage.Write) error { return nil }

// Create implements storage.Creater.
func (d *dryWriter) Create(*storage.Write) error { return nil }

// Update implements storage.Updater.
func (d *dryWriter) Update(*storage.Write) error { return nil }

// Pass implements storage.Storage.
func (d *dryWriter) Pass(*storage.Write) error { return nil }

// ObjectLimits returns the limits of the objects that clients send.
func (g *Gateway) ObjectLimits() document.Limits { return g.requestLimits.Sent }
