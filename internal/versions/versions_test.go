package versions

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
)

func versionOf(resource, version string) schema.GroupVersionResource {
	r := schema.ParseGroupResource(resource)
	return r.WithVersion(version)
}

// TestConvert: e2e/versions compares the conversions with kube-apiserver's; here is what clients
// send and no server would.
func TestConvert(t *testing.T) {
	const autoscalers, claims, slices = "horizontalpodautoscalers.autoscaling", "resourceclaims.resource.k8s.io",
		"resourceslices.resource.k8s.io"
	for _, c := range []struct{ about, resource, from, to, object, want string }{
		{"identical fields", "ipaddresses.networking.k8s.io", "v1beta1", "v1",
			`{"apiVersion":"networking.k8s.io/v1beta1","x":1.0}`, `{"apiVersion":"networking.k8s.io/v1","x":1.0}`},
		{"a metric of the CPU", autoscalers, "v1", "v2", `{"apiVersion":"autoscaling/v1","metadata":{"name":"a","x":1},"spec":{"maxReplicas":3,"targetCPUUtilizationPercentage":50}}`,
			`{"apiVersion":"autoscaling/v2","metadata":{"name":"a","x":1},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}`},
		{"and back", autoscalers, "v2", "v1", `{"apiVersion":"autoscaling/v2","spec":{"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}}`,
			`{"apiVersion":"autoscaling/v1","spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":3,"targetCPUUtilizationPercentage":50}}`},
		{"an annotation that cannot be read", autoscalers, "v1", "v2", `{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"{"}},"spec":{"maxReplicas":1,"targetCPUUtilizationPercentage":5}}`,
			`{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":1,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5}}}]},"apiVersion":"autoscaling/v2"}`},
		{"a field that nobody knows", autoscalers, "v1", "v2", `{"spec":{"maxReplicas":1,"new":1}}`, "the object cannot be converted from version 'v1' to 'v2': its spec cannot be read: unknown field \"new\""},
		{"another type", autoscalers, "v2", "v1", `{"spec":{"maxReplicas":"1"}}`, "the object cannot be converted from version 'v2' to 'v1': its spec cannot be read: "},
		{"annotations of another type", autoscalers, "v1", "v2",
			`{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":1}}}`,
			"the object cannot be converted from version 'v1' to 'v2': its annotation"},
		{"requests", claims, "v1beta1", "v1", `{"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c","new":1},{"name":"b","firstAvailable":[{"name":"s"}]},{"name":"c","count":0}]}}}`,
			`{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","new":1}},{"name":"b","firstAvailable":[{"name":"s"}]},{"name":"c"}]}},"apiVersion":"resource.k8s.io/v1"}`},
		{"and back", claims, "v1", "v1beta1", `{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","new":1}},{"name":"b"},1]}}}`,
			`{"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c","new":1},{"name":"b"},1]}},"apiVersion":"resource.k8s.io/v1beta1"}`},
		{"devices", slices, "v1beta1", "v1beta2", `{"spec":{"nodeName":"","allNodes":false,"devices":[{"name":"a","basic":{"capacity":{"m":{"value":"1"}}}},{"name":"b"}]}}`,
			`{"spec":{"devices":[{"name":"a","capacity":{"m":{"value":"1"}}},{"name":"b"}]},"apiVersion":"resource.k8s.io/v1beta2"}`},
		{"and back", slices, "v1", "v1beta1", `{"spec":{"devices":[{"name":"a","taints":[]},{"name":"b"}]}}`,
			`{"spec":{"devices":[{"name":"a","basic":{"taints":[]}},{"name":"b","basic":{}}]},"apiVersion":"resource.k8s.io/v1beta1"}`},
		{"no list", claims, "v1beta1", "v1", `{"spec":{"devices":{"requests":{}}}}`,
			`{"spec":{"devices":{"requests":{}}},"apiVersion":"resource.k8s.io/v1"}`},
		{"no object", claims, "v1beta1", "v1", `[]`, `[]`},
		{"another resource", "pods", "v1", "v2", `{}`, "is not known"},
		{"a version that is not known", autoscalers, "v1", "v3", `{}`, "is not known"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d, err := document.Parse([]byte(c.object), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			converted, _, isKnown, err := Convert(d, versionOf(c.resource, c.from), versionOf(c.resource, c.to))
			got := "is not known"
			switch {
			case err != nil:
				got = err.Error()
			case isKnown:
				got = string(converted.AppendTo(nil))
			}
			if got != c.want && !(err != nil && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if string(d.AppendTo(nil)) != c.object {
				t.Errorf("the object itself became %s", d.AppendTo(nil))
			}
		})
	}
}
