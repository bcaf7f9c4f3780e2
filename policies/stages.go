package policies

import (
	"maps"
	"time"

	"github.com/admission-gateway/gateway/policies/applicability"
)

// A stage is one step by which files become a set.
type stage struct {
	name string
	run  func(*loader)
}

// stages are the steps that make the set, in their order.
var stages = []stage{
	{"read", (*loader).read},
	{"assemble", (*loader).assemble},
	{"take", (*loader).take},
	{"compile", (*loader).compileKinds},
	{"routes", (*loader).translate},
	{"rollouts", (*loader).planResources},
	{"index", (*loader).index},
	{"register", (*loader).register},
	{"reach", (*loader).collectMatched},
	{"connect", (*loader).connect},
	{"foreign", (*loader).leaveOutForeign},
	{"names", (*loader).analyze},
	{"finish", (*loader).finish},
}

// A check is a step that looks at what the stages have made, changes nothing of it, and returns findings.
type check struct {
	name string
	run  func(*loader) []Finding
}

// checks are all checks, in the order in which they are timed.
var checks = []check{
	{"pins", func(l *loader) []Finding { return unpinnable(l.resources, l.set.chain) }},
	{"matches", func(l *loader) []Finding { return l.applicable.CanMatch() }},
	{"paths", func(l *loader) []Finding { return l.applicable.IsReached() }},
	{"constraints", func(l *loader) []Finding { return l.plain.unlikeConstraints(maps.Values(l.known), l.paramUses) }},
	{"versions", func(l *loader) []Finding { return unconvertible(l.resources, maps.Values(l.known)) }},
	{"collections", func(l *loader) []Finding { return outsideCollections(l.resources) }},
	{"schemas", func(l *loader) []Finding { return unsettable(l.kept, l.resources, l.mayBeUnused) }},
	{"unfilled", (*loader).checkUnfilled},
	{"dry runs", func(l *loader) []Finding { return notEnforced(l.resources, l.set) }},
	{"errors", func(l *loader) []Finding { return missingTemplates(l.resources, l.set) }},
	{"folders", (*loader).checkFolders},
	{"edits", (*loader).checkEdits},
	{"review", (*loader).checkReview},
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

// analyze indexes what the files say, for the questions whether it can ever apply, and for what the set keeps of the
// answers.
func (l *loader) analyze() {
	l.applicable = applicability.New(l.applicableFiles())
	l.set.applicability = l.applicable.Result()
}

// finish gives the set what was collected for it.
func (l *loader) finish() {
	l.terms.Finish(maps.Values(l.known))
	l.Found = append(l.Found, l.terms.Found...)
	l.reads.gatekeepers(maps.Values(l.known))
	l.set.remarks.users, l.set.remarks.kinds = l.reads.users, l.reads.kinds
	l.set.remarks.wildcards = l.applicable.WhatWildcardsMatch()
	l.set.remarks.raced = racedWrites(l.resources, l.set.chain)
	l.set.upstreams, l.set.scopes, l.set.served = l.upstreams, l.scopes, l.applicable.Served()
	l.set.terms = Terms{l.terms.Plans(), l.terms.Exceptions()}
	l.set.hash = hashWith(l.source.Hash, l.bundles, l.assembled)
	l.ownFiles()
}

// checkReview finds what compiles and still cannot be meant, if that is asked for.
func (l *loader) checkReview() []Finding {
	if !l.gateway.Reviews {
		return nil
	}
	return applicability.Review(l.all)
}
