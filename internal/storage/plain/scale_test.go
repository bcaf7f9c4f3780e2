package plain

import (
	"errors"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/storage"
)

// frozen grants no memory once it is closed.
type frozen struct{ isClosed bool }

func (f *frozen) Grow(int) bool { return !f.isClosed }
func (f *frozen) Shrink(int)    {}

// TestNoScaleOfAFailedObject: an object whose memory ended reads as null, which must not be answered
// as a Scale of no replicas.
func TestNoScaleOfAFailedObject(t *testing.T) {
	m := &frozen{}
	object, err := document.Parse([]byte(`{"spec":{"replicas":3}}`), document.Limits{Memory: m})
	if err != nil {
		t.Fatal(err)
	}
	defer object.Release()
	m.isClosed = true
	object.Set(object.Root(), "status", []byte(`"`+strings.Repeat("a", 1<<20)+`"`))
	r := &resource.Resource{Subresources: resource.Subresources{
		Scale: &resource.Scaling{Replicas: resource.FieldPath{"spec", "replicas"}}}}
	s := scaledWrites{objectWrites{&access{collection: &collection{Options: Options{Resource: r}}}}}
	if text, err := s.scaleText(&storage.Write{}, object); !errors.Is(err, document.ErrNoMemory) {
		t.Errorf("got %s, %v", text, err)
	}
}
