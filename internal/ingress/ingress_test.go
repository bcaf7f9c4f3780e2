package ingress

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/admission-gateway/gateway/internal/routing"
)

var update = flag.Bool("update", false, "write what objects come to instead of comparing it")

// now is when conditions change in tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestTranslate compares what the objects of each file in testdata come to with the text beside it. Lines of a file
// that begin with "# option" set Options.
func TestTranslate(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no files", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := show(New(optionsOf(t, text)).Translate(objectsOf(t, text), now))
			golden := strings.TrimSuffix(name, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the objects come to\n%s\nnot\n%s", got, want)
			}
		})
	}
}

// optionsOf reads the options that comments of a file set.
func optionsOf(t *testing.T, text []byte) Options {
	o := Options{Published: []string{"192.0.2.1"}}
	for line := range strings.Lines(string(text)) {
		option, found := strings.CutPrefix(strings.TrimSpace(line), "# option ")
		if !found {
			continue
		}
		key, value, _ := strings.Cut(option, " ")
		switch key {
		case "pool":
			o.Pool, o.Published = append(o.Pool, netip.MustParsePrefix(value)), nil
		case "files":
			o.AreOfFiles = true
		case "service":
			namespace, name, _ := strings.Cut(value, "/")
			o.Service, o.Published = types.NamespacedName{Namespace: namespace, Name: name}, nil
		case "class":
			o.GatewayClass = value
		default:
			t.Fatalf("no option has the name '%s'", key)
		}
	}
	return o
}

// objectsOf reads objects.
func objectsOf(t testing.TB, text []byte) *Objects {
	all := &Objects{}
	for _, one := range bytes.Split(text, []byte("\n---\n")) {
		var of metav1.TypeMeta
		if err := yaml.Unmarshal(one, &of); err != nil {
			t.Fatal(err)
		}
		if of.Kind == "" {
			continue
		}
		isKnown := false
		for i := range Kinds {
			if k := &Kinds[i]; k.Kind == of.Kind {
				o := k.New()
				if err := yaml.UnmarshalStrict(one, o); err != nil {
					t.Fatalf("%s\n%s", err, one)
				}
				k.Add(all, o)
				isKnown = true
			}
		}
		if !isKnown {
			t.Fatalf("the kind '%s' is not known", of.Kind)
		}
	}
	return all
}

// show writes an outcome as lines.
func show(o *Outcome) string {
	var b strings.Builder
	for i, l := range o.Table.Listeners {
		fmt.Fprintf(&b, "listener %d: %s %s port %d", i, l.Gateway, l.Section, l.Port)
		if len(l.Addresses) > 0 {
			fmt.Fprintf(&b, " at %v", l.Addresses)
		}
		if l.Host != "" {
			fmt.Fprintf(&b, " host %s", l.Host)
		}
		if l.TLS != nil {
			fmt.Fprintf(&b, " certificates %d", len(l.TLS.Certificates))
			if len(l.TLS.ClientCAs) > 0 {
				fmt.Fprintf(&b, " of clients too (strangers: %v)", l.TLS.LetsStrangersIn)
			}
		}
		b.WriteByte('\n')
	}
	for _, r := range o.Table.Routes {
		fmt.Fprintf(&b, "route %s %s/%s %s\n", r.Kind, r.Namespace, r.Name, r.Rule)
		for _, a := range r.Attachments {
			fmt.Fprintf(&b, "  at %d %q\n", a.Listener, a.Host)
		}
		for _, m := range r.Matches {
			fmt.Fprintf(&b, "  match %s %s%s%s%s\n", [...]string{"prefix", "exact", "expression"}[m.Path.Kind],
				m.Path.Value, given(" method ", m.Method), values(" header ", m.Headers), values(" query ", m.Query))
		}
		showFilters(&b, "  ", r.Filters)
		if r.Timeout != 0 || r.AttemptTimeout != 0 {
			fmt.Fprintf(&b, "  timeout %s, of an attempt %s\n", r.Timeout, r.AttemptTimeout)
		}
		if r.Retry != nil {
			fmt.Fprintf(&b, "  retry %+v\n", *r.Retry)
		}
		for _, w := range r.Backends {
			fmt.Fprintf(&b, "  to %d weight %d\n", w.Backend, w.Weight)
			showFilters(&b, "    ", w.Filters)
		}
	}
	for i, k := range o.Table.Backends {
		fmt.Fprintf(&b, "backend %d: %s %v", i, k.Name, k.Servers)
		if k.IsHTTP2 {
			b.WriteString(" HTTP/2")
		}
		if k.TLS != nil {
			fmt.Fprintf(&b, " TLS %s names %v CAs %v client %v", k.TLS.ServerName, k.TLS.Names, len(k.TLS.CAs) > 0,
				k.TLS.Client != nil)
		}
		b.WriteString(given(" fault: ", k.Fault) + "\n")
	}
	for _, s := range o.Statuses(nil) {
		fmt.Fprintf(&b, "status %s %s\n", s.Kind, given(s.Namespace+"/", s.Name))
		showStatus(&b, s.Value)
	}
	for _, p := range o.Problems {
		fmt.Fprintf(&b, "problem %s %s/%s: %s: %s\n", p.Kind, p.Namespace, p.Name, p.Path, p.Message)
	}
	return b.String()
}

// TestUnserved: a listener that takes no requests is said in the conditions of its object, and of the Gateway once none
// does. Its routes stay attached.
func TestUnserved(t *testing.T) {
	out := New(Options{Published: []string{"192.0.2.1"}}).Translate(objectsOf(t, []byte(`
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: admission-gateway.io/gateway}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns, generation: 1}
spec:
  gatewayClassName: ours
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: more, namespace: ns, generation: 1}
spec:
  parentRef: {name: gw}
  listeners: [{name: c, port: 82, protocol: HTTP}]
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: ns, generation: 1}, spec: {parentRefs: [{name: gw}]}}
`)), now)
	said := func(unserved ...string) string {
		why := map[string]string{}
		for _, name := range unserved {
			why[name] = name + " is in use"
		}
		var b strings.Builder
		for _, s := range out.Statuses(why) {
			if s.Kind == kindGateway || s.Kind == kindListenerSet {
				showStatus(&b, s.Value)
			}
		}
		return b.String()
	}
	const isServed, isClosed = "Accepted True Accepted (1)", "Accepted False PortUnavailable (1): "
	all := said()
	if strings.Count(all, isServed) != 5 || strings.Count(all, "Programmed True Programmed") != 5 {
		t.Errorf("while all are served, they say\n%s", all)
	}
	one := said("ns/gw/b")
	for _, want := range []string{
		"  Accepted True ListenersNotValid (1): not accepted are the listeners 'b'\n",
		"  Programmed True Programmed (1)\n",
		"  listener b takes [HTTPRoute GRPCRoute] has 1\n    " + isClosed + "ns/gw/b is in use\n",
		"    Programmed False Pending (1): ns/gw/b is in use\n",
	} {
		if !strings.Contains(one, want) {
			t.Errorf("while b is not served, they do not say %q:\n%s", want, one)
		}
	}
	none := said("ns/gw/a", "ns/gw/b", "ns/gw/ns/more/c")
	for _, want := range []string{
		"  Programmed False AddressNotUsable (1): ns/gw/a is in use\n",
		"  Programmed False Pending (1): ns/gw/ns/more/c is in use\n",
		"  Accepted True ListenersNotValid (1): some listeners are not accepted\n",
	} {
		if !strings.Contains(none, want) {
			t.Errorf("while none is served, they do not say %q:\n%s", want, none)
		}
	}
	if again := said(); again != all {
		t.Errorf("served again, they say\n%s", again)
	}
}

func given(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

func values(before string, all []routing.ValueMatch) string {
	out := ""
	for _, v := range all {
		op := "="
		if v.IsExpression {
			op = "~"
		}
		out += before + v.Name + op + v.Value
	}
	return out
}

func showFilters(b *strings.Builder, indent string, all []routing.Filter) {
	for _, f := range all {
		switch {
		case f.Request != nil:
			fmt.Fprintf(b, "%srequest %+v\n", indent, *f.Request)
		case f.Answer != nil:
			fmt.Fprintf(b, "%sanswer %+v\n", indent, *f.Answer)
		case f.Redirect != nil:
			fmt.Fprintf(b, "%sredirect %s %s %d %d%s\n", indent, f.Redirect.Scheme, f.Redirect.Host, f.Redirect.Port,
				f.Redirect.Code, edit(f.Redirect.Path))
		case f.Rewrite != nil:
			fmt.Fprintf(b, "%srewrite %s%s\n", indent, f.Rewrite.Host, edit(f.Rewrite.Path))
		case f.Mirror != nil:
			fmt.Fprintf(b, "%smirror %+v\n", indent, *f.Mirror)
		case f.CORS != nil:
			fmt.Fprintf(b, "%scors %+v\n", indent, *f.CORS)
		default:
			fmt.Fprintf(b, "%sunknown: %s\n", indent, f.Unknown)
		}
	}
}

func edit(p *routing.PathEdit) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" path %+v", *p)
}

func showStatus(b *strings.Builder, value any) {
	conditions := func(indent string, all []metav1.Condition) {
		for _, c := range all {
			fmt.Fprintf(b, "%s%s %s %s (%d)%s\n", indent, c.Type, c.Status, c.Reason, c.ObservedGeneration,
				given(": ", c.Message))
		}
	}
	kinds := func(all []gatewayv1.RouteGroupKind) (names []string) {
		for _, k := range all {
			names = append(names, string(k.Kind))
		}
		return names
	}
	switch v := value.(type) {
	case *gatewayv1.GatewayClassStatus:
		conditions("  ", v.Conditions)
	case *gatewayv1.GatewayStatus:
		for _, a := range v.Addresses {
			fmt.Fprintf(b, "  address %s %s\n", or(a.Type, gatewayv1.IPAddressType), a.Value)
		}
		fmt.Fprintf(b, "  sets %d\n", or(v.AttachedListenerSets, -1))
		conditions("  ", v.Conditions)
		for _, l := range v.Listeners {
			fmt.Fprintf(b, "  listener %s takes %v has %d\n", l.Name, kinds(l.SupportedKinds), l.AttachedRoutes)
			conditions("    ", l.Conditions)
		}
	case *gatewayv1.ListenerSetStatus:
		conditions("  ", v.Conditions)
		for _, l := range v.Listeners {
			fmt.Fprintf(b, "  listener %s takes %v has %d\n", l.Name, kinds(l.SupportedKinds), l.AttachedRoutes)
			conditions("    ", l.Conditions)
		}
	case *gatewayv1.RouteStatus:
		for _, p := range v.Parents {
			fmt.Fprintf(b, "  parent %s %s%s of %s\n", or(p.ParentRef.Kind, kindGateway), p.ParentRef.Name,
				given(" section ", string(or(p.ParentRef.SectionName, ""))), p.ControllerName)
			conditions("    ", p.Conditions)
		}
	case *gatewayv1.PolicyStatus:
		for _, a := range v.Ancestors {
			fmt.Fprintf(b, "  ancestor %s/%s of %s\n", or(a.AncestorRef.Namespace, ""), a.AncestorRef.Name,
				a.ControllerName)
			conditions("    ", a.Conditions)
		}
	case *networkingv1.IngressStatus:
		fmt.Fprintf(b, "  %+v\n", v.LoadBalancer.Ingress)
	default:
		fmt.Fprintf(b, "  %T\n", v)
	}
}
