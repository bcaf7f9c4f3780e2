package policies

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/constraints"
	"github.com/admission-gateway/gateway/policies/natives"
)

// gatekeeperFiles are Gatekeeper's objects in the files.
type gatekeeperFiles struct {
	files constraints.Files
}

// gatekeepers hands an object of Gatekeeper's on.
func gatekeepers[T any](take func(*constraints.Files, *manifest.Object, *T)) func(*gatekeeperFiles, *loader,
	*manifest.Object, *T) {
	return func(g *gatekeeperFiles, _ *loader, o *manifest.Object, read *T) { take(&g.files, o, read) }
}

// compile implements compiler.
func (g *gatekeeperFiles) compile(l *loader) {
	g.files.Texts, g.files.Terms, g.files.Kept = l.texts, l.terms.TermsByAnnotation, l.kept
	g.files.IsMeant = l.mayBeUnused
	mutators, validators := g.files.Compile(resourcesWithKind(l.resources), l.template)
	l.mutators, l.validators = append(l.mutators, mutators...), append(l.validators, validators...)
	kinds := l.knownKinds()
	for id, o := range l.known {
		if id.group == constraints.MutationsGroup && o.Kind == "Assign" {
			assigned(&l.findings, o, kinds)
		}
	}
	l.set.logsDecisions = l.set.logsDecisions || len(validators) > 0
	g.report(l)
}

// connect implements connecter: templates know the objects of the files and of the StateSources.
func (g *gatekeeperFiles) connect(l *loader) {
	set := l.set
	known := constraints.Known{States: set.states, Locate: func(s *state.Source, kind schema.GroupVersionKind,
		resource string) {
		set.locate(s, &StateSourceResource{APIVersion: kind.GroupVersion().String(), Resource: resource,
			Kind: kind.Kind})
	}}
	for _, o := range set.objects {
		known.Objects = append(known.Objects, o.Document.Root())
	}
	set.states = append(set.states, g.files.TakeInventory(&known)...)
	g.report(l)
}

// report hands over what was found so far.
func (g *gatekeeperFiles) report(l *loader) {
	l.Found = append(l.Found, g.files.Found...)
	g.files.Found = nil
}

// resourcesWithKind returns the resources that serve a kind: Kubernetes' own, or the ones that the files describe.
func resourcesWithKind(resources []loadedResource) func(schema.GroupKind) (plurals []string, known bool) {
	return func(k schema.GroupKind) (plurals []string, known bool) {
		if n, ok := natives.Kinds[k]; ok {
			return []string{n.Plural}, true
		}
		for _, r := range resources {
			if r.Group == k.Group && r.Names.Kind == k.Kind && !slices.Contains(plurals, r.Names.Plural) {
				plurals = append(plurals, r.Names.Plural)
			}
		}
		return plurals, len(plurals) > 0
	}
}
