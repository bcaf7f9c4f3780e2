package schema

import (
	"slices"
	"testing"

	"github.com/admission-gateway/gateway/internal/schema/meta"
)

// The notes on members of metadata are their places among the properties of its shape, and package meta reads them as
// places in its own list.
func TestMembersOfMetadata(t *testing.T) {
	var names []string
	for _, p := range newMetadata(false).object.properties {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, meta.Members) {
		t.Errorf("the shape has %q, package meta %q", names, meta.Members)
	}
}
