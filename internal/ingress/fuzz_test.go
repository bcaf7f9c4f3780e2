package ingress

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/randfill"

	"github.com/admission-gateway/gateway/internal/routing"
)

// FuzzTranslate translates any objects, whose names are of a few so that they refer to each other. The table must be
// whole, and the same objects must come to the same, whatever was translated before.
func FuzzTranslate(f *testing.F) {
	for seed := range int64(4) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed int64, isOfFiles bool) { checkAny(t, randfill.NewWithSeed(seed), isOfFiles) })
}

// TestTranslateAny translates random objects, as FuzzTranslate does.
func TestTranslateAny(t *testing.T) {
	for seed := range int64(300) {
		checkAny(t, randfill.NewWithSeed(seed), seed%2 == 0)
	}
}

func checkAny(t *testing.T, fill *randfill.Filler, isOfFiles bool) {
	objects, options := anyObjects(fill), Options{AreOfFiles: isOfFiles, Published: []string{"192.0.2.1"}}
	translator := New(options)
	first := translator.Translate(objects, now)
	checkTable(t, first.Table)
	for _, s := range first.Statuses(nil) {
		if _, err := s.Target(); err != nil {
			t.Fatal(err)
		}
	}
	sameOutcome(t, first, translator.Translate(objects, now))
	for range 3 { // some of the objects change, others go
		next := anyObjects(fill)
		was := reflect.ValueOf(objects).Elem()
		for field, is := range reflect.ValueOf(next).Elem().Fields() {
			before := was.FieldByIndex(field.Index)
			reflect.Copy(is, before.Slice(before.Len()/2, before.Len()))
		}
		sameOutcome(t, New(options).Translate(next, now), translator.Translate(next, now))
		objects = next
	}
}

// sameOutcome fails if the same objects do not come to the same.
func sameOutcome(t *testing.T, first, again *Outcome) {
	t.Helper()
	if !reflect.DeepEqual(first.Table, again.Table) || !reflect.DeepEqual(first.Problems, again.Problems) ||
		!reflect.DeepEqual(first.Statuses(nil), again.Statuses(nil)) {
		t.Fatalf("the same objects come to\n%s\nand then to\n%s", show(first), show(again))
	}
}

// anyObjects returns any objects, of which the GatewayClasses are the controller's.
func anyObjects(fill *randfill.Filler) *Objects {
	objects := &Objects{}
	anyOf(fill).Fill(objects)
	for _, field := range reflect.ValueOf(objects).Elem().Fields() {
		kept := reflect.MakeSlice(field.Type(), 0, field.Len())
		for i := range field.Len() {
			if !field.Index(i).IsNil() {
				kept = reflect.Append(kept, field.Index(i))
			}
		}
		field.Set(kept)
	}
	for _, c := range objects.GatewayClasses {
		c.Spec.ControllerName = DefaultController
	}
	return objects
}

// checkTable fails if an index of a table is out of range, or a part of it cannot be.
func checkTable(t *testing.T, table *routing.Table) {
	t.Helper()
	for i := range table.Routes {
		r := &table.Routes[i]
		if len(r.Attachments) == 0 || len(r.Matches) == 0 {
			t.Fatalf("the route %s/%s takes no requests", r.Namespace, r.Name)
		}
		for _, a := range r.Attachments {
			if a.Listener < 0 || a.Listener >= len(table.Listeners) {
				t.Fatalf("there is no listener %d", a.Listener)
			}
			if l := &table.Listeners[a.Listener]; l.Host != "" && l.Host != a.Host && !covers(l.Host, a.Host) {
				t.Fatalf("the host '%s' is wider than '%s' of the listener", a.Host, l.Host)
			}
		}
		filters := r.Filters
		for _, b := range r.Backends {
			if b.Backend < 0 || b.Backend >= len(table.Backends) || b.Weight < 0 {
				t.Fatalf("there is no backend %d with the weight %d", b.Backend, b.Weight)
			}
			filters = append(filters[:len(filters):len(filters)], b.Filters...)
		}
		for _, f := range filters {
			if f.Mirror != nil && (f.Mirror.Backend < 0 || f.Mirror.Backend >= len(table.Backends) ||
				f.Mirror.Denominator < 1) {
				t.Fatalf("a mirror cannot be %+v", *f.Mirror)
			}
		}
	}
	for i := range table.Listeners {
		if l := &table.Listeners[i]; l.Port < 1 || l.Port > 65535 || l.TLS != nil && len(l.TLS.Certificates) == 0 {
			t.Fatalf("a listener cannot be %+v", l)
		}
	}
}

// anyOf fills in values of a few words each.
func anyOf(fill *randfill.Filler) *randfill.Filler {
	names := []string{"a", "b", ""}
	pick := func(c randfill.Continue, of ...string) string { return of[c.Intn(len(of))] }
	return fill.NilChance(.2).NumElements(0, 3).MaxDepth(12).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Name: pick(c, names...), Namespace: pick(c, "one", "two"),
				Generation: int64(c.Intn(3)), CreationTimestamp: metav1.Unix(int64(c.Intn(3)), 0)}
			m.Labels = map[string]string{discoveryv1.LabelServiceName: pick(c, names...), "l": "v"}
			m.Annotations = map[string]string{classAnnotation: pick(c, names...)}
		},
		func(s *metav1.LabelSelector, c randfill.Continue) {
			*s = metav1.LabelSelector{MatchLabels: map[string]string{"l": pick(c, "v", "w", "not valid !")}}
		},
		func(s *metav1.Time, c randfill.Continue) { *s = metav1.Unix(int64(c.Intn(3)), 0) },
		func(s *intstr.IntOrString, c randfill.Continue) { *s = intstr.FromInt32(int32(c.Intn(3))) },
		func(s *gatewayv1.ObjectName, c randfill.Continue) { *s = gatewayv1.ObjectName(pick(c, names...)) },
		func(s *gatewayv1.SectionName, c randfill.Continue) { *s = gatewayv1.SectionName(pick(c, names...)) },
		func(s *gatewayv1.Namespace, c randfill.Continue) { *s = gatewayv1.Namespace(pick(c, "one", "two", "")) },
		func(s *gatewayv1.Group, c randfill.Continue) { *s = gatewayv1.Group(pick(c, "", gatewayv1.GroupName)) },
		func(s *gatewayv1.Kind, c randfill.Continue) {
			*s = gatewayv1.Kind(pick(c, kindService, kindGateway, kindListenerSet, kindSecret, kindConfigMap,
				kindHTTPRoute, ""))
		},
		func(s *gatewayv1.Hostname, c randfill.Continue) {
			*s = gatewayv1.Hostname(pick(c, "a.example.com", "*.example.com", "*.com", "", "*", "A.example.com",
				"1.2.3.4", "\x00"))
		},
		func(s *gatewayv1.ProtocolType, c randfill.Continue) {
			*s = gatewayv1.ProtocolType(pick(c, "HTTP", "HTTP", "HTTPS", "TCP", "UDP", "TLS", ""))
		},
		func(s *gatewayv1.FromNamespaces, c randfill.Continue) {
			*s = gatewayv1.FromNamespaces(pick(c, "All", "Same", "Selector", "None", ""))
		},
		func(s *gatewayv1.GatewayController, c randfill.Continue) {
			*s = gatewayv1.GatewayController(pick(c, DefaultController, "example.com/other"))
		},
		func(s *int32, c randfill.Continue) { *s = []int32{80, 80, 443, 0, -1, 1 << 30}[c.Intn(6)] },
		func(s *gatewayv1.Duration, c randfill.Continue) {
			*s = gatewayv1.Duration(pick(c, "1s", "-1s", "", "x"))
		},
		func(s *gatewayv1.PathMatchType, c randfill.Continue) {
			*s = gatewayv1.PathMatchType(pick(c, "Exact", "PathPrefix", "RegularExpression", ""))
		},
		func(s *gatewayv1.HTTPRouteFilterType, c randfill.Continue) {
			*s = gatewayv1.HTTPRouteFilterType(pick(c, "RequestMirror", "RequestRedirect", "URLRewrite", "ExtensionRef",
				"CORS", "ExternalAuth", ""))
		},
		func(s *gatewayv1.GRPCRouteFilterType, c randfill.Continue) {
			*s = gatewayv1.GRPCRouteFilterType(pick(c, "RequestMirror", "RequestHeaderModifier", "ExtensionRef", ""))
		},
		func(s *corev1.Secret, c randfill.Continue) {
			c.Fill(&s.ObjectMeta)
			s.Type, s.Data = corev1.SecretTypeTLS,
				map[string][]byte{"tls.crt": []byte(certificate), "tls.key": []byte(key)}
		},
		func(s *corev1.ConfigMap, c randfill.Continue) {
			c.Fill(&s.ObjectMeta)
			s.Data = map[string]string{caKey: pick(c, certificate, key, "")}
		},
		func(s *corev1.Namespace, c randfill.Continue) {
			s.Name, s.Labels = pick(c, "one", "two"), map[string]string{"l": pick(c, "v", "w")}
		},
		func(s *networkingv1.PathType, c randfill.Continue) {
			*s = networkingv1.PathType(pick(c, "Exact", "Prefix", "ImplementationSpecific", ""))
		},
		func(s *networkingv1.IngressRule, c randfill.Continue) {
			s.Host = pick(c, "a.example.com", "*.example.com", "", "\x00")
			c.Fill(&s.IngressRuleValue)
		},
		func(s *networkingv1.IngressTLS, c randfill.Continue) {
			*s = networkingv1.IngressTLS{Hosts: []string{pick(c, "a.example.com", "*.example.com", "")},
				SecretName: pick(c, names...)}
		},
		func(s *networkingv1.IngressClassSpec, c randfill.Continue) {
			s.Controller = pick(c, DefaultController, "example.com/other")
		},
	)
}
