package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/cors"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/upstream"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/events"
	"github.com/admission-gateway/gateway/proxy/rewrite"
)

// backend is an upstream as requests see it.
type backend struct {
	name     string
	settings *config.UpstreamSpec
	files    *credentials.Watcher // of its certificates, keys and tokens
	lease    lease
	stop     context.CancelFunc // of what asks it beside the requests; nil if nothing does
	// authorities are the hosts and ports by which a plain API may name itself; nil for another backend.
	authorities []string
	// client carries the requests of clients, own the requests that the gateway makes on its own account.
	// They are two if the account has a certificate: the backend takes whatever comes by a connection that
	// shows it for the gateway's own.
	client, own *upstream.Client
	// origin is what it was made of if it is one of a routing.Table; nil for one of the configuration.
	origin *routing.Backend
	// account is who the gateway is to the backend.
	account       *credentials.ServiceAccount
	accountFailed func(error) // gets the reason if it cannot be had
	// lacks is called with a right that the account would need, and the backend's reason.
	lacks func(rule status.AccessRule, reason string)
	// host is the host in requests of the gateway's own, base what their paths are below.
	host, base string
	// credentials says how the backend learns who asks.
	credentials config.Credentials
	// kind is how its requests are served.
	kind kind
	// upgrades are the paths on which clients may switch to another protocol.
	upgrades *upgrades
	// served knows which kinds the backend serves; nil if it is no Kubernetes API server. What it
	// says counts in requests if the gateway has an account there.
	served *discovery.Client
	// proofs are of its being a Kubernetes API server, if its dialect says so.
	proofs *kubernetes.Proofs
	// comparisons remember how it treats versions, if writes are pinned by its ETags.
	comparisons *plain.Comparisons
	// grants remembers what the backend lets the scripts of other origins read; nil if it is not asked.
	grants *cors.Grants
	// events records refusals at the backend; nil if none are recorded.
	events *events.Recorder
	// storage is the backend as storages ask it on behalf of clients.
	storage storage.Backend
}

// A kind of backend is how requests to it are served. It is chosen with the connections to the
// backend, by its dialect, and nothing asks for the dialect afterwards.
type kind interface {
	// storage makes the storage of the resource or subresource of a request. No file describes a nil resource. own are
	// the policies that may match, and object the policies for the object of a subresource.
	storage(g *Gateway, set *policies.Set, b *backend, r *resource.Resource, i *resource.Info, own,
		object *admission.Scoped) storage.Storage
	// api returns how the gateway itself reads the backend.
	api() state.API
	// authorizes reports whether the backend can be asked what a client may do.
	authorizes() bool
	// account returns the gateway's own account, by which it reads what it judges writes by; nil if that is read as the
	// client.
	account(b *backend) *storage.Account
	// operation returns what a document says of a request beside its body; nil if it says nothing.
	operation(set *policies.Set, r *resource.Resource, i *resource.Info) *contract.Operation
	// options serves OPTIONS of a described path.
	options(r *request) error
	// servesUpgrades reports whether a request for a described path means the same in another protocol.
	servesUpgrades() bool
	// grants returns the memory of the answers that a backend lets scripts read; nil if it is not
	// asked.
	grants() *cors.Grants
	// discovers reports whether the backend has the discovery API.
	discovers() bool
	// resolver returns how requests to the backend that come by a route are read, given what policy files say.
	resolver(set *policies.Set, v resource.View) resource.Resolver
}

// kindOf returns the kind of the backends of a dialect.
func kindOf(d config.Dialect) kind {
	if d == config.Plain {
		return plainKind{}
	}
	return kubernetesKind{}
}

// kubernetesKind is the kind of Kubernetes API servers, and of servers that behave like one.
type kubernetesKind struct{}

func (kubernetesKind) api() state.API { return state.APIServer }

func (kubernetesKind) authorizes() bool { return true }

func (kubernetesKind) discovers() bool { return true }

// account returns the account, if the backend has been given one: it can say by itself what a client may do.
func (kubernetesKind) account(b *backend) *storage.Account {
	if b.account.Anonymous() {
		return nil
	}
	return &storage.Account{Client: b.own, AppendHead: b.appendOwnGet, Answered: b.noteRefusal, Lacks: b.lacks}
}

func (kubernetesKind) resolver(set *policies.Set, v resource.View) resource.Resolver {
	r, _ := set.Registry().Within(&v.Place) // two of one place are found when the files are checked against the routes
	return r
}

// plainKind is the kind of all other JSON APIs.
type plainKind struct{}

func (plainKind) api() state.API { return state.OrdinaryAPI }

func (plainKind) authorizes() bool { return false }

func (plainKind) discovers() bool { return false }

// account returns none: a plain API says what a client may do only by its answers to the client.
func (plainKind) account(*backend) *storage.Account { return nil }

func (plainKind) resolver(set *policies.Set, v resource.View) resource.Resolver {
	return resource.NewPlain(set.Registry(), set.MatchedResources(), v)
}

// A route leads requests to a backend: the requests of a route of the configuration, or those of a rule of a table that
// come by a listener for a host, and that are the backend's share.
type route struct {
	host string
	// spans are the prefixes of the paths that it takes, at least one; rules say what is rewritten, and are nil if
	// nothing is.
	spans   []span
	rules   *rewrite.Rules
	backend *backend
	// index is its number among the routes, place how the scopes of files name it.
	index int
	place resource.RouteRef
	// way is the route as metrics, logs and traces name it.
	way telemetry.Routing
	// undescribed says what happens to requests that no policy file describes.
	undescribed config.Undescribed
	// errorFormat says how refusals are written, errorTemplate by which template of the policy files.
	errorFormat   config.ErrorFormat
	errorTemplate string
	// cors says which scripts may read answers; nil leaves it to the backend.
	cors   *cors.Policy
	limits storage.Limits // of its requests
	// edits change the header lines of requests to the backend, answerEdits those of answers.
	edits, answerEdits *message.Edits
	mirrors            []mirror // that get copies
	mirrorEdits        *message.Edits
	redirect           *redirect // answers the requests; nil if the backend does
	obstacle           *obstacle // answers them, for they cannot be sent
}

// formatOf returns the format of refusals, and the name of its template: the resource's own word counts first.
func (r *route) formatOf(about *resource.Resource) (format config.ErrorFormat, template string) {
	if about != nil && about.Errors.Format != "" {
		return config.ErrorFormat(about.Errors.Format), about.Errors.Template
	}
	return r.errorFormat, r.errorTemplate
}

// admit refuses an undescribed request that the route does not forward.
func (r *route) admit(head *message.Head, i *resource.Info) error {
	switch {
	case i.Documented != nil:
		return nil
	case i.IsOtherMethod && (r.undescribed == config.DenyUndescribed || r.undescribed == config.DenyWrites &&
		mayWrite(i)):
		return status.MethodNotAllowedf("%s is not described for the path '%s', and only what is described is served here", head.Method, pathOf(head.Target))
	}
	switch r.undescribed {
	case config.DenyUndescribed:
		return status.NoSuchPath("the path '%s' is not described, and only described paths are served here",
			pathOf(head.Target))
	case config.DenyWrites:
		return admitRead(head)
	}
	return nil
}

// admitRead refuses a request that may write: by its method, by a header that names another method,
// or by another protocol, which the gateway cannot read.
func admitRead(head *message.Head) error {
	switch string(head.Method) {
	case "GET", "HEAD", "OPTIONS":
	default:
		return status.MethodNotAllowedf("the path '%s' is not described, and what is not described may only be read here", pathOf(head.Target))
	}
	if head.Upgrade != nil {
		return status.Coded(http.StatusForbidden, "a request that asks for another protocol must be about a path that is described here")
	}
	return head.CheckStrict()
}

// reaches reports whether the backend gets requests at or below a path, or at one above it, by the route.
func (r *route) reaches(path string) bool {
	return slices.ContainsFunc(r.spans, func(s span) bool { return under(path, s.to) || under(s.to, path) })
}

// rewriteRequest makes of the client's request what the backend of its route gets: everything after
// it uses the backend's paths.
func rewriteRequest(r *request, rules *rewrite.Rules) (err error) {
	head := &r.incoming.Head
	room := r.target[:0]
	if r.incoming.IsDetached() {
		room = nil // what is kept of the request may outlive the request
	}
	if room, err = rules.AppendTarget(room, head.Target); err != nil {
		return err
	}
	if head.Target = room; !r.incoming.IsDetached() {
		r.target = room
	}
	r.From.Host = rules.Host
	r.From.Lines = rules.ForwardedLines(head)
	return nil
}

const setCookie = "Set-Cookie"

// authorize appends the header lines with the gateway's own credentials.
func (b *backend) authorize(head []byte) ([]byte, error) {
	head, err := b.account.AppendAuthorization(head)
	if err != nil {
		b.accountFailed(err)
		return nil, errNoAccount
	}
	return head, nil
}

// errNoAccount is all that clients learn of an account that cannot be had.
var errNoAccount = errors.New("the gateway has no account now by which to ask the backend")
