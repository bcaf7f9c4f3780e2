package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/internal/audit"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/identity"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/protobuf"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/server"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/internal/telemetry/tracing"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/proxy/responses"
)

// Options have what New makes a Gateway of.
type Options struct {
	Config *config.Configuration
	// Routing has listeners and routes beside those of the configuration; nil has none.
	Routing *routing.Table
	// Policies returns the set in force; each request asks once.
	Policies func() *policies.Set
	// Memory is the budget for requests, if something else takes memory of it too; nil makes one of the configuration's
	// limits.
	Memory *memory.Budget
	// Limiter holds the buckets of rate limits, which outlive policy sets.
	Limiter *ratelimit.Limiter
	// States holds what policies read of backends, which outlives policy sets. The gateway starts it.
	States *state.Manager
	// Locker locks objects for all gateways that write to the same backends; nil if this is the only one.
	Locker storage.Locker
	// AsksVersions lets the first write of a resource find out whether its backend compares versions.
	AsksVersions bool
	// Credentials keeps certificates, keys and tokens up to date with their files; nil reads them once.
	Credentials *credentials.Watcher
	Metrics     *telemetry.Telemetry
	Log         *slog.Logger
	// Access has a line for each request that is to have one; nil has none.
	Access *telemetry.AccessLog
	// Audit records requests as the audit Policy of the files asks; nil records none.
	Audit *audit.Auditor
	// Tracer makes spans; nil makes none.
	Tracer *tracing.Tracer
	// Decisions logs what policies in Rego and constraints decide; nil logs none.
	Decisions *decisions.Log
	// Pod is the gateway's own; the zero value means that it runs in no Pod.
	Pod corev1.ObjectReference
	// Clock has the time by which rollouts and exceptions are judged; nil: requests are judged by when they came.
	Clock func() time.Time
	// LiveChanged is called when Live may return something else than before; it may be nil.
	LiveChanged func()
	// RefusesPlainly lets all refusals be Status objects, whatever format files and configuration ask for.
	RefusesPlainly bool
	// IsUncounted keeps requests out of the counts of rollouts and exceptions, which the policy sets of several
	// gateways share.
	IsUncounted bool
}

// Gateway serves clients on behalf of backends. It is safe for concurrent use.
type Gateway struct {
	*common
	listening *listening
	routing   *routing.Table // that it was made of, beside the configuration
	routes    *routeTable
	policies  func() *policies.Set
	// configuration names the configuration by its hash.
	configuration string
	callers
	writing
	policyTests
	observers observers
	current   atomic.Pointer[scopes]
	requests  sync.Pool      // of *request
	served    server.Options // of the server
	uses      uses
}

// callers says how clients are known.
type callers struct {
	proxies identity.TrustedProxies
	// readsForwarded says that the proxies name the client by Forwarded.
	readsForwarded bool
	identity       *authenticators // nil if no credentials are read
	anonymous      identity.User
}

// writing says how requests are read and written.
type writing struct {
	requestLimits storage.Limits
	protobuf      protobuf.Reader
	admitOnResult bool // validating policies judge what Kubernetes backends would store
	locksAlone    bool // several gateways write, and each locks objects for its own writes alone
	unregistered  config.UnregisteredResources
}

// policyTests is what a gateway that tests policies does in another way.
type policyTests struct {
	clock func() time.Time // nil: requests are judged by when they came
	// refusesPlainly says that all refusals are Status objects.
	refusesPlainly bool
	// isUncounted says that rollouts and exceptions count nothing.
	isUncounted bool
}

// requestMemory bounds the memory that all requests together hold.
type requestMemory struct {
	*server.Memory
	drops drops
}

// newRequestMemory takes memory for requests from a budget; nil is one of the limits.
func newRequestMemory(budget *memory.Budget, limits *config.Limits) *requestMemory {
	if budget == nil {
		budget = memory.NewBudget(limits.BodiesInFlightBytes, int(limits.HeavyRequests))
	}
	m := &requestMemory{}
	m.Memory = server.NewMemory(budget, func() error { return errNoBudget(&m.drops) })
	return m
}

// drops say after what time clients are to come again whose requests were refused for want of memory or time.
type drops struct{ full, busy ratelimit.Drops }

// refused returns the answer to a request that cannot have the memory that it takes, or not its turn.
func (d *drops) refused(why memory.Refusal) error {
	switch why {
	case memory.Busy:
		return status.ServiceUnavailable("too many requests that take much work are waiting already",
			d.busy.Add(time.Now()))
	case memory.Over:
		return status.Timeout("the request was over before its turn came, for it takes much work", 1)
	}
	return errNoBudget(d)
}

// errNoBudget returns the answer if the memory for all requests is used up.
func errNoBudget(d *drops) error {
	return status.ServiceUnavailable("the gateway holds as much of requests in memory as it may",
		d.full.Add(time.Now()))
}

// observers are notified of requests, beside the metrics.
type observers struct {
	access *telemetry.AccessLog // nil if no request has a line
	audit  *audit.Auditor       // nil if no event is recorded
	tracer *tracing.Tracer      // nil if no request is traced
	redis  tracing.Redis        // as spans name it
	// decisions logs what policies in Rego and constraints decide; nil if none are logged.
	decisions *decisions.Log
	// answers is notified of answers that are checked against a document.
	answers *responses.Observer
	// isIDShown says that all answers have the id of their request, not only refusals.
	isIDShown bool
	// explanations says who may ask for them; nil refuses every client.
	explanations *config.Explanations
}

// samplers keep the log from repeating itself.
type samplers struct {
	refusals telemetry.Sampler // of credentials that were refused
	ignored  telemetry.Sampler // of policies that failed and may
	erred    telemetry.Sampler // of policies that failed, so that requests were refused
	relaxed  telemetry.Sampler // of policies whose errors count as undefined values
	failures telemetry.Sampler // of requests to backends
}

func newObservers(o Options, budget *memory.Budget) observers {
	return observers{
		redis:  redisOf(o.Config.Redis),
		access: o.Access, audit: o.Audit, tracer: o.Tracer, decisions: o.Decisions,
		isIDShown:    o.Config.Telemetry.RequestIDs == config.IDsOnAnswers,
		explanations: o.Config.Telemetry.Explanations,
		answers:      &responses.Observer{Budget: budget, Metrics: o.Metrics, Log: o.Log},
	}
}

// redisOf says which Redis of the configuration is used; nil if no Redis is.
func redisOf(c *config.Redis) (r tracing.Redis) {
	if c == nil {
		return r
	}
	r.Database = int(c.Database)
	if c.Mode == config.RedisSingle {
		r.Address = c.Addresses[0]
	}
	return r
}
