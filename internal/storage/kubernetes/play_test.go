package kubernetes_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/merge"
	mergekubernetes "github.com/admission-gateway/gateway/internal/merge/kubernetes"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/storage/storagetest"
)

// TestCases plays requests for objects of an API server. The options are 'previews', which lets policies see what the
// server would store, 'account', by which the gateway reads for clients, 'status' and 'names', which hold for objects
// that no policy file describes.
func TestCases(t *testing.T) {
	storagetest.Run(t, "testdata/cases", func(*testing.T) func(*storagetest.Setup) storage.Storage {
		proofs := &kubernetes.Proofs{Lacking: func(error) {}}
		return func(s *storagetest.Setup) storage.Storage {
			o := kubernetes.Options{
				Backend: s.Backend, Limits: s.Limits, Policies: s.Policies, Resource: s.Resource, Schemas: s.Schemas,
				PreviewsWrites: s.Options["previews"], Proofs: proofs, ChecksNames: s.Options["names"],
				MergeType: func(_ schema.GroupVersionResource, kind schema.GroupVersionKind) *merge.Type {
					return mergekubernetes.TypeOf(kind)
				},
			}
			if s.Options["account"] {
				s.Backend.Account = &storage.Account{Client: s.Backend.Client, AppendHead: appendOwnHead,
					Answered: func(int) {},
					Lacks:    func(status.AccessRule, string) {}}
			}
			switch {
			case s.Resource != nil:
				o.Status = storage.StatusPath(s.Resource)
			case s.Options["status"]:
				o.Status = storage.KubernetesStatus
			}
			return kubernetes.New(o, s.Info.Subresource)
		}
	})
}

// appendOwnHead appends the head of a GET of the gateway's own account.
func appendOwnHead(dst, target []byte) ([]byte, error) {
	dst = append(append(dst, "GET "...), target...)
	return append(dst, " HTTP/1.1\r\nHost: api\r\nAuthorization: gateway\r\n"...), nil
}
