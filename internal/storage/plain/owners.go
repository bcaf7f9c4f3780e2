package plain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/storage"
)

// dropRepeatedOwners takes owner references out that are there already, and says so, as Kubernetes does.
func dropRepeatedOwners(w *storage.Write, owners document.Node) {
	first := make(map[string]document.Node, owners.Len())
	var repeated []string
	var next document.Node
	for owner := owners.First(); owner.Valid(); owner = next {
		next = owner.Next()
		uid := storage.TextIn(owner, "uid")
		if before, found := first[uid]; !found {
			first[uid] = owner
		} else if document.EqualNodes(before, owner) {
			if w.Object.Remove(owner); len(repeated) < maxNamed {
				repeated = append(repeated, storage.Short(uid))
			}
		}
	}
	if len(repeated) > 0 {
		w.Exchanges.Warn(".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, " +
			"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(repeated, ", "))
	}
}

// maxNamed is how many of what is wrong in one way are named in warnings, whose space is bounded.
const maxNamed = 20

// warnOfFinalizers warns of new finalizers whose names may be names of others.
func warnOfFinalizers(w *storage.Write, finalizers document.Node) {
	stored, _ := storage.Metadata(w.Existing.Object).Get("finalizers")
	named := 0
	for f := finalizers.First(); f.Valid() && named < maxNamed; f = f.Next() {
		if name := f.Str(); name != "" && !hasText(stored, name) {
			warnOfFinalizer(w.Exchanges, name)
			named++
		}
	}
}

func hasText(list document.Node, s string) bool {
	for item := list.First(); item.Valid(); item = item.Next() {
		if item.Is(s) {
			return true
		}
	}
	return false
}

// warnOfFinalizer warns of the name of a new finalizer.
func warnOfFinalizer(e *storage.Exchanges, name string) {
	warn := func(why string) {
		e.Warn(fmt.Sprintf("metadata.finalizers: %q: %s", storage.Short(name), why))
	}
	for _, problem := range validation.IsQualifiedName(name) {
		warn(problem)
	}
	switch {
	case strings.Contains(name, "/"), name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents, name == "kubernetes":
	case strings.Contains(name, "."):
		warn("prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers")
	default:
		warn("prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers")
	}
}
