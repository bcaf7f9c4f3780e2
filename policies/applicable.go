package policies

import (
	"maps"
	"slices"

	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/applicability"
	"github.com/admission-gateway/gateway/policies/reuse"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// applicableFiles is what was taken so far, as the analysis of what can apply sees it.
func (l *loader) applicableFiles() applicability.Files {
	f := applicability.Files{
		Objects: slices.Collect(maps.Values(l.known)), States: l.set.states, PlainKinds: l.plain,
		Routes: l.gateway.Routes, IsUnused: l.mayBeUnused,
		Resources:  make([]applicability.Resource, len(l.resources)),
		Operations: make([]applicability.Operation, len(l.documented)),
		ParamKinds: map[schema.GroupKind]bool{}, HeldKinds: map[schema.GroupKind]bool{},
	}
	for i := range l.resources {
		r := &l.resources[i]
		f.Resources[i] = applicability.Resource{Resource: r.Resource, From: r.at.from, At: r.at.path,
			Props: r.compiled.props}
	}
	for i := range l.documented {
		d := &l.documented[i]
		f.Operations[i] = applicability.Operation{Documented: d.Documented, From: d.at.from, At: d.at.path}
	}
	for _, u := range l.paramUses {
		if kind, ok := params.Kind(u.kind); ok {
			f.ParamKinds[kind.GroupKind()] = true
		}
	}
	for id := range l.objects {
		f.HeldKinds[schema.GroupKind{Group: id.group, Kind: id.kind}] = true
	}
	return f
}

// mayBeUnused reports whether the author of an object, or of a folder, says that it may never apply.
func (l *loader) mayBeUnused(o *manifest.Object) bool {
	return l.unused[o.File] || applicability.MayBeUnused(o)
}

// failing finds the expressions of an object that always fail.
func (l *loader) failing(o *manifest.Object, programs []*cel.Program) {
	programs = slices.DeleteFunc(slices.Clone(programs), func(p *cel.Program) bool { return p == nil })
	if len(programs) == 0 {
		return
	}
	reuse.OfObject(l.kept, &l.findings, o, "failing", programs[0], func(f *findings) struct{} {
		f.Found = applicability.CanSucceed(o, programs)
		return struct{}{}
	})
}
