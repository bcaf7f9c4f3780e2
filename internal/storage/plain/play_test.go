package plain_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/merge"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/plain"
	"github.com/admission-gateway/gateway/internal/storage/storagetest"
)

// heap is memory without a limit.
type heap struct{}

func (heap) Take(class int) []byte { return make([]byte, 1<<class) }
func (heap) Give([]byte, int)      {}

// TestCases plays requests for objects of ordinary APIs. What is known of the backend lasts for a case. The options are
// 'asks', which lets writes find out whether the backend compares versions, 'alone', which says that there are several
// gateways, 'names' and 'status', which hold for objects that no policy file describes.
func TestCases(t *testing.T) {
	storagetest.Run(t, "testdata/cases", func(*testing.T) func(*storagetest.Setup) storage.Storage {
		locks, comparisons := storage.NewLocks(), plain.Comparisons{}
		return func(s *storagetest.Setup) storage.Storage {
			comparisons.Asks = s.Options["asks"]
			comparisons.Found = func(schema.GroupResource, string, plain.Finding) {}
			o := plain.Options{
				Backend: s.Backend, Limits: s.Limits, Policies: s.Policies, ObjectPolicies: s.ObjectPolicies,
				Resource: s.Resource,
				Schemas:  s.Schemas, Locks: locks, LocksAlone: s.Options["alone"], Memory: heap{},
				ProtectsStatus: s.Options["status"], ChecksNames: s.Options["names"],
				StrategicType: func(document.Node) *merge.Type { return nil },
			}
			if s.Resource != nil {
				o.Hidden, o.Comparison = s.Set.Hidden(s.Resource), comparisons.Of(s.Resource.GroupResource())
				o.StrategicType = func(document.Node) *merge.Type { return s.Set.StrategicType(s.Resource) }
			}
			return plain.New(o, s.Info.Subresource)
		}
	})
}
