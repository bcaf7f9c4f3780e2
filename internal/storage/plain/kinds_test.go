package plain

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
)

// strategiesOf names the strategies of a store in the order of its fields.
func strategiesOf(t *testing.T, s *Store) string {
	t.Helper()
	v := reflect.ValueOf(*s)
	var names []string
	for i := range v.NumField() {
		at := v.Field(i)
		switch {
		case at.Kind() != reflect.Interface:
		case !at.IsNil():
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(at.Elem().Type().String(), "*"), "plain."))
		case v.Type().Field(i).Name != "scaler":
			t.Errorf("no %s", v.Type().Field(i).Name)
		}
	}
	return strings.Join(names, " ")
}

// TestKinds: each kind of store says all that it does, and New finds the kind. Only the scale of objects that the
// gateway makes itself has a Scaler.
func TestKinds(t *testing.T) {
	const (
		objects     = "objectReads objectBodies objectStrategy storedObject objectWrites appliedPatches nativeDeletions"
		patched     = "objectReads patchedBodies objectStrategy storedObject objectWrites sentPatches nativeDeletions"
		ofStatus    = "statusReads objectBodies statusStrategy storedObject objectWrites appliedPatches nativeDeletions"
		ofPatched   = "statusReads objectBodies statusStrategy storedObject objectWrites sentStatusPatches nativeDeletions"
		native      = "passedReads nativeStatusBodies nativeStatusStrategy storedObject passedWrites refusedPatches nativeDeletions"
		other       = "passedReads subresourceBodies subresourceStrategy storedSubresource passedWrites refusedPatches nativeDeletions"
		madeScale   = "scaleReads subresourceBodies subresourceStrategy storedObject passedWrites refusedPatches nativeDeletions scaler"
		operation   = "passedReads operationBodies operationStrategy nothingStored passedWrites refusedPatches nativeDeletions"
		undescribed = "objectReads undescribedBodies objectStrategy storedObject objectWrites appliedPatches nativeDeletions"
		below       = "passedReads undescribedBodies subresourceStrategy storedSubresource passedWrites refusedPatches nativeDeletions"
	)
	finalized := strings.Replace(objects, "nativeDeletions", "objectDeletions", 1)
	described := func(patch resource.PatchMode, emulated resource.Capabilities) *resource.Resource {
		return &resource.Resource{
			Subresources: resource.Subresources{Status: true}, Backend: resource.Backend{Patch: patch,
				Emulated: emulated},
		}
	}
	withFinalizers := described(resource.PatchEmulated, resource.Deletion)
	withFinalizers.Envelope = resource.Kubernetes
	ofOperation := described(resource.PatchEmulated, 0)
	ofOperation.Operation = &resource.Operation{Verb: resource.VerbCreate}
	all := resource.StatusSubresource | resource.ScaleSubresource
	for _, c := range []struct {
		name     string
		resource *resource.Resource
		want     [4]string // of the object, its status, its scale and any other subresource
	}{
		{"undescribed", nil, [4]string{undescribed, below, below, below}},
		{"native", described(resource.PatchNative, 0), [4]string{objects, native, other, other}},
		{"emulated", described(resource.PatchEmulated, all), [4]string{objects, ofStatus, madeScale, other}},
		{"with PATCH", described(resource.PatchValidated, all), [4]string{patched, ofPatched, madeScale, other}},
		{"with finalizers", withFinalizers, [4]string{finalized, native, other, other}},
		{"an operation", ofOperation, [4]string{operation, operation, operation, operation}},
	} {
		for i, subresource := range []string{"", "status", "scale", "other"} {
			t.Run(fmt.Sprintf("%s/%s", c.name, subresource), func(t *testing.T) {
				s := New(Options{Resource: c.resource}, subresource).(*Store)
				if got := strategiesOf(t, s); got != c.want[i] {
					t.Errorf("got  %s\nwant %s", got, c.want[i])
				}
				if s.Scaler() != nil {
					behind := strings.Replace(c.want[0], "objectWrites", "scaledWrites", 1)
					behind = strings.Replace(strings.Replace(behind, "patchedBodies", "objectBodies", 1), "sentPatches",
						"appliedPatches", 1)
					if got := strategiesOf(t, s.Scaler().Object().(*Store)); got != behind {
						t.Errorf("behind the Scale: got  %s\nwant %s", got, behind)
					}
				}
			})
		}
	}
}
