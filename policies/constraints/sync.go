package constraints

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/policies/finding"
)

// Known has the objects that data.inventory can have.
type Known struct {
	// Objects are those in the policy files that are no policies.
	Objects []document.Node
	// States are the StateSources.
	States []*state.Source
	// Locate returns the place of a resource's objects.
	Locate func(s *state.Source, kind apischema.GroupVersionKind, resource string)
}

// TakeInventory says what data.inventory has: the objects of the kinds that Config and SyncSets name,
// or all that is known if they name none. It returns the sources of objects that no StateSource has.
func (f *Files) TakeInventory(known *Known) (more []*state.Source) {
	if !slices.ContainsFunc(f.templates,
		func(t loadedTemplate) bool { return t.compiled != nil && t.compiled.ReadsInventory() }) {
		return nil
	}
	v := &f.inventory
	for _, k := range f.synced {
		if slices.Contains(v.Kinds, k.GroupVersionKind) {
			continue
		}
		v.Kinds = append(v.Kinds, k.GroupVersionKind)
		if s := f.syncKind(known, k); s != nil {
			more = append(more, s)
		}
	}
	v.Objects = known.Objects
	known.States = append(slices.Clone(known.States), more...)
	for _, s := range known.States {
		if s.Kind.Kind != "" && (len(v.Kinds) == 0 || slices.Contains(v.Kinds, s.Kind)) {
			v.Sources = append(v.Sources, s.Name)
		}
	}
	for i := range f.templates {
		f.checkSynced(known, &f.templates[i])
	}
	return more
}

// syncKind makes a source of the objects of a kind, unless a StateSource has them or the policy files
// do.
func (f *Files) syncKind(known *Known, k syncedKind) *state.Source {
	if slices.ContainsFunc(known.States, func(s *state.Source) bool { return s.Covers(k.GroupVersionKind, "") }) {
		return nil
	}
	if slices.ContainsFunc(known.Objects, func(o document.Node) bool { return kindOf(o) == k.GroupVersionKind }) {
		f.At(k.from, finding.Warning, k.path, "no StateSource has the objects of the kind '%s', so that data.inventory has only what the policy files have", k.Kind)
		return nil
	}
	plurals, isKnown := f.resources(k.GroupKind())
	if !isKnown {
		f.At(k.from, finding.Error, k.path, "must be a kind whose resource is known: add a StateSource with the resource, the apiVersion '%s' and the kind '%s'", k.GroupVersion(), k.Kind)
		return nil
	}
	s := &state.Source{
		Name:         "data.inventory of " + k.GroupVersion().String() + " " + k.Kind,
		MaxObjects:   syncedObjects,
		MaxBytes:     syncedBytes,
		MaxStaleness: syncedStaleness,
	}
	known.Locate(s, k.GroupVersionKind, plurals[0])
	return s
}

func kindOf(object document.Node) apischema.GroupVersionKind {
	apiVersion, _ := object.Get("apiVersion")
	kind, _ := object.Get("kind")
	return apischema.FromAPIVersionAndKind(apiVersion.Str(), kind.Str())
}

// What is kept of a kind without a StateSource of its own: as much as a StateSource keeps that says
// nothing else.
const (
	syncedObjects = 10_000
	syncedBytes   = 64 << 20

	syncedStaleness = 5 * time.Minute
)

// syncAnnotation says which kinds a template needs: lists of alternatives.
const syncAnnotation = "metadata.gatekeeper.sh/requires-sync-data"

// A syncRequirement is met by any of its kinds.
type syncRequirement []struct{ Groups, Versions, Kinds []string }

// checkSynced warns of a template that needs objects that nothing brings.
func (f *Files) checkSynced(known *Known, t *loadedTemplate) {
	text := t.read.Annotations[syncAnnotation]
	if text == "" || t.compiled == nil {
		return
	}
	path := "metadata.annotations[" + syncAnnotation + "]"
	var all []syncRequirement
	if err := json.Unmarshal([]byte(strings.Trim(strings.TrimSpace(text), `"`)), &all); err != nil {
		f.At(t.from, finding.Warning, path, "must be a list of lists of groups, versions and kinds: %v", err)
		return
	}
	for _, requirement := range all {
		if len(requirement) > 0 && !f.isSynced(known, requirement) {
			first := requirement[0]
			f.At(t.from, finding.Warning, path, "data.inventory has no objects of the kind '%s': add a SyncSet that names it, or a StateSource that has its objects", strings.Join(first.Kinds, "', '"))
		}
	}
}

// isSynced reports whether one of the kinds is in the inventory.
func (f *Files) isSynced(known *Known, requirement syncRequirement) bool {
	has := func(k apischema.GroupVersionKind) bool {
		if slices.Contains(f.inventory.Kinds, k) {
			return true
		}
		if len(f.inventory.Kinds) > 0 {
			return false
		}
		if slices.ContainsFunc(known.Objects, func(o document.Node) bool { return kindOf(o) == k }) {
			return true
		}
		return slices.ContainsFunc(known.States, func(s *state.Source) bool { return s.Kind == k })
	}
	for _, alternative := range requirement {
		for _, group := range alternative.Groups {
			for _, version := range alternative.Versions {
				for _, kind := range alternative.Kinds {
					if has(apischema.GroupVersionKind{Group: group, Version: version, Kind: kind}) {
						return true
					}
				}
			}
		}
	}
	return false
}
