package policies

import (
	"bytes"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission/params"
	"github.com/admission-gateway/gateway/internal/state"
)

// foreignGroups are groups whose objects other programs read, and what to do with what they say. A group stands for
// those below it too: 'konghq.com' for 'configuration.konghq.com'.
var foreignGroups = map[string]string{
	"kyverno.io":                  "it is Kyverno's: write it as a ValidatingAdmissionPolicy, a MutatingAdmissionPolicy or a RegoPolicy",
	"konghq.com":                  "it is Kong's: limits are RateLimitPolicies, and routes are in the `routes` of the configuration",
	"gateway.envoyproxy.io":       "it is Envoy Gateway's: limits are RateLimitPolicies, and routes are in the `routes` of the configuration",
	"istio.io":                    "it is Istio's: routes, retries and who may ask are in the configuration",
	"traefik.io":                  "it is Traefik's: limits are RateLimitPolicies, and routes are in the `routes` of the configuration",
	"projectcontour.io":           "it is Contour's: routes are in the `routes` of the configuration",
	"getambassador.io":            "it is Emissary's: routes are in the `routes` of the configuration",
	"apisix.apache.org":           "it is APISIX's: routes are in the `routes` of the configuration",
	"kuadrant.io":                 "it is Kuadrant's: limits are RateLimitPolicies, and `identity` of the configuration says who asks",
	"cert-manager.io":             "it is cert-manager's: files with certificates are named by `tls` in the configuration",
	"kubewarden.io":               "it is Kubewarden's: write it as a ValidatingAdmissionPolicy or a RegoPolicy",
	"jspolicy.com":                "it is jsPolicy's: write it as a ValidatingAdmissionPolicy",
	"wgpolicyk8s.io":              "it is a report of what policies have found",
	"cilium.io":                   "it is Cilium's: an API server's cluster applies it",
	"monitoring.coreos.com":       "it is the Prometheus operator's: an API server's cluster applies it",
	"kustomize.config.k8s.io":     "it is kustomize's: give the gateway what `kustomize build` makes of it",
	"kustomize.toolkit.fluxcd.io": "it is Flux's: give the gateway the files that it would apply",
	"argoproj.io":                 "it is Argo's: give the gateway the files that it would apply",
}

// leaveOutForeign leaves out objects that other programs read, and that no policy refers to.
func (l *loader) leaveOutForeign() {
	for id, o := range l.objects {
		what := foreignGroup(id.group)
		kind := schema.GroupKind{Group: id.group, Kind: id.kind}
		if what == "" || l.isReferredKind(kind) {
			continue
		}
		if from := l.known[id]; !l.mayBeUnused(from) {
			l.At(from, Warning, "kind", "the %s '%s' has no effect here, and no policy refers to it: %s", o.Kind,
				o.Name, what)
		}
		delete(l.objects, id)
	}
}

// foreignGroup returns what to do with the objects of a group that other programs read; "" if it is none.
func foreignGroup(group string) string {
	for at := group; at != ""; {
		if what := foreignGroups[at]; what != "" {
			return what
		}
		_, at, _ = strings.Cut(at, ".")
	}
	return ""
}

// isReferredKind reports whether policies may refer to objects of a kind: by parameters, by what is synced for modules
// in Rego, or because a file describes them.
func (l *loader) isReferredKind(of schema.GroupKind) bool {
	isParameter := func(u paramUse) bool {
		kind, ok := params.Kind(u.kind)
		return ok && kind.GroupKind() == of
	}
	isKind := func(r loadedResource) bool { return r.GroupKind() == of }
	isState := func(s *state.Source) bool { return s.Kind.GroupKind() == of }
	for _, o := range l.known {
		if group, _ := o.GroupVersion(); strings.HasSuffix(group, ".gatekeeper.sh") &&
			bytes.Contains(o.JSON, []byte(`"kind":"`+of.Kind+`"`)) {
			return true // a SyncSet, or a Config
		}
	}
	return l.plain[of] || slices.ContainsFunc(l.paramUses, isParameter) || slices.ContainsFunc(l.resources, isKind) ||
		slices.ContainsFunc(l.set.states, isState)
}
