package policies

import (
	"maps"
	"slices"
	"time"
)

// A stage is one step by which files become a set.
type stage struct {
	name string
	// needs are the stages whose work it uses.
	needs []string
	run   func(*loader)
}

// stages are all steps, in their order. Those that only check, which make nothing that another one needs, come last.
var stages = []stage{
	{"read", nil, (*loader).read},
	{"assemble", []string{"read"}, (*loader).assemble},
	{"take", []string{"assemble"}, (*loader).take},
	{"compile", []string{"take"}, (*loader).compileKinds},
	{"routes", []string{"take"}, (*loader).translate},
	{"rollouts", []string{"take"}, (*loader).planResources},
	{"index", []string{"compile"}, (*loader).index},
	{"register", []string{"take"}, (*loader).register},
	{"reach", []string{"compile"}, (*loader).reach},
	{"connect", []string{"compile", "register"}, (*loader).connect},
	{"finish", []string{"compile", "connect"}, (*loader).finish},
	{"pins", []string{"index", "register"}, (*loader).pinnable},
	{"names", []string{"register"}, (*loader).checkNames},
	{"versions", []string{"register"}, (*loader).checkVersions},
	{"schemas", []string{"register"}, (*loader).checkSchemas},
	{"exceptions", []string{"compile"}, (*loader).checkExceptions},
	{"reads", []string{"compile"}, (*loader).checkReads},
	{"unfilled", []string{"compile"}, (*loader).checkUnfilled},
	{"tried", []string{"index", "register", "rollouts"}, (*loader).checkTried},
	{"errors", []string{"compile", "register"}, (*loader).checkErrorTemplates},
	{"races", []string{"index", "register"}, (*loader).checkRaces},
	{"folders", []string{"register"}, (*loader).checkFolders},
	{"edits", []string{"register", "routes"}, (*loader).checkEdits},
}

// A StageTime says how long a stage of a load took. The stages that go through the kinds of objects
// have a time for each kind beside their own.
type StageTime struct {
	Stage, Kind string
	Took        time.Duration
}

// times collects the times of stages.
type times struct{ all []StageTime }

func (t *times) add(stage, kind string, took time.Duration) {
	for i := range t.all {
		if t.all[i].Stage == stage && t.all[i].Kind == kind {
			t.all[i].Took += took
			return
		}
	}
	t.all = append(t.all, StageTime{stage, kind, took})
}

// connect makes what policies can refer to beyond the request.
func (l *loader) connect() {
	if l.set.registry == nil {
		return // it has errors
	}
	l.set.objects = l.objects
	l.set.kinds = newKinds(l.set.registry, l.objects)
	l.completeObjects(l.set)
	l.each(func(_ string, part any) {
		if c, ok := part.(connecter); ok {
			c.connect(l)
		}
	})
	l.checkParams(l.set)
}

// finish gives the set what was collected for it.
func (l *loader) finish() {
	l.set.upstreams, l.set.scopes, l.set.served = l.upstreams, l.scopes, servedIn(l.resources)
	l.set.terms = Terms{l.terms.Plans(), l.terms.Exceptions()}
	l.set.hash = hashWith(l.source.Hash, l.bundles, l.assembled)
}

// checkNames finds what can never apply, by the names in match blocks and the paths of descriptions, and says what
// wildcards reach.
func (l *loader) checkNames() {
	l.plain.warnOfConstraints(&l.findings, maps.Values(l.known), l.paramUses)
	j := newInForce(l)
	j.objects(maps.Values(l.known))
	l.set.named, l.set.defined = j.namedResources(slices.Collect(maps.Values(l.known))), j.names.definitions()
	for i := range l.resources {
		if r := &l.resources[i]; !l.isMeant(r.at.from) {
			j.fieldsOf(r.at.from, r)
		}
	}
	l.set.unused, l.set.needs = j.unused(l), j.needs(l)
	l.foreign()
	l.set.remarks.reached = j.names.reached(maps.Values(l.known), l.plain)
	l.unreached()
}

// checkVersions finds policies that cannot see requests in another version.
func (l *loader) checkVersions() { unconvertible(&l.findings, l.resources, maps.Values(l.known)) }

// checkSchemas finds descriptions of resources that cannot be meant.
func (l *loader) checkSchemas() {
	outside(&l.findings, l.resources)
	l.unsettable()
}

// checkExceptions finds exceptions that match nothing.
func (l *loader) checkExceptions() {
	l.terms.Finish(maps.Values(l.known))
	l.Found = append(l.Found, l.terms.Found...)
}

// checkReads finds what reads something of a request that the gateway may not know.
func (l *loader) checkReads() {
	l.reads.gatekeepers(maps.Values(l.known))
	l.set.remarks.users, l.set.remarks.kinds = l.reads.users, l.reads.kinds
}

// checkRaces finds writes that several gateways without common locks may send at once.
func (l *loader) checkRaces() { l.set.remarks.raced = racedWrites(l.resources, l.set.chain) }
