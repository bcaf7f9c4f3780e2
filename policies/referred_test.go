package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// cluster is a backend that answers by the target.
type cluster struct {
	plain   bool
	answers map[string]string
	asked   []string
	served  *discovery.Client
}

// Discovery implements state.Backend: the cluster lists the group that it has resources of.
func (c *cluster) Discovery() *discovery.Client {
	if c.plain {
		return nil
	}
	if c.served == nil {
		c.served = discovery.New(
			discovery.Options{Ask: func(ctx context.Context, q discovery.Request) (discovery.Response, error) {
				a, err := c.Send(ctx, state.Request{Target: q.Target})
				if q.Target == "/apis" {
					a.Code, a.Body = 200, c.groups()
				}
				return discovery.Response{Code: a.Code, Body: a.Body}, err
			}})
	}
	return c.served
}

// groups lists the groups and versions that have an answer.
func (c *cluster) groups() []byte {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
	for _, target := range slices.Sorted(maps.Keys(c.answers)) {
		if segments := strings.Split(strings.TrimPrefix(target, "/apis/"), "/"); len(segments) == 2 &&
			strings.HasPrefix(target, "/apis/") {
			list.Groups = append(list.Groups,
				metav1.APIGroup{Name: segments[0], Versions: []metav1.GroupVersionForDiscovery{{Version: segments[1]}}})
		}
	}
	body, _ := json.Marshal(list)
	return body
}

func (c *cluster) Backend(string, string) state.Backend { return c }

func (c *cluster) API() state.API {
	if c.plain {
		return state.OrdinaryAPI
	}
	return state.APIServer
}

func (c *cluster) Send(_ context.Context, r state.Request) (state.Response, error) {
	c.asked = append(c.asked, r.Target)
	if body, ok := c.answers[r.Target]; ok {
		return state.Response{Code: 200, Body: []byte(body)}, nil
	}
	return state.Response{Code: 404}, nil
}

func (c *cluster) Open(context.Context, string, time.Duration) (int, io.ReadCloser, error) {
	return 403, io.NopCloser(strings.NewReader("")), nil
}

// refer returns the objects that a request to a path of the backend can refer to, with the policy
// files.
func refer(t *testing.T, b *cluster, method, path string, files ...string) *Referred {
	t.Helper()
	all := map[string]string{}
	for i, f := range files {
		all[fmt.Sprintf("%d.yaml", i)] = f
	}
	dir := testutil.WriteFiles(t, all)
	set, found := Load([]string{dir})
	if set == nil {
		t.Fatal(text(dir, found))
	}
	m, err := state.NewManager(state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Apply(set.States())
	m.Start(b)
	testutil.Becomes(t, nil, m.Synced)
	info, _, err := set.Registry().Resolve(method, []byte(path))
	if err != nil {
		t.Fatal(err)
	}
	r := &Referred{}
	r.Begin(context.Background(), set, m, b, &info, nil, time.Time{})
	t.Cleanup(r.Reset)
	return r
}

const filed = `apiVersion: v1
kind: ConfigMap
metadata: {name: filed, namespace: team-a, labels: {use: limits}}
data: {from: file}
---
apiVersion: example.com/v1
kind: Limit
metadata: {name: one}
from: file
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {from: file}}
`

func live(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"team-a","labels":{"use":"limits"}},"data":{"from":"backend"}}`, name)
}

func summary(n document.Node) string {
	name := nameOf(n)
	kind, _ := n.Get("kind")
	data, _ := n.Get("data")
	from, _ := data.Get("from")
	return name + "/" + kind.Str() + "/" + from.Str()
}

// TestReferredObjects: from the files, else from a StateSource, else from the backend, each asked once for a request.
func TestReferredObjects(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	limit := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	for _, c := range []struct {
		about           string
		kind            schema.GroupVersionKind
		namespace, name string
		plain           bool
		want            string
		asked           string
	}{
		{"in the files", configMap, "team-a", "filed", false, "filed/ConfigMap/file", ""},
		{"in the files, of no known scope", limit, "", "one", false, "one/Limit/", ""},
		{"at the backend", configMap, "team-a", "other", false, "other/ConfigMap/backend",
			"/api/v1/namespaces/team-a/configmaps/other"},
		{"nowhere", configMap, "team-a", "none", false, "<none>", "/api/v1/namespaces/team-a/configmaps/none"},
		{"native, at an ordinary API", configMap, "team-a", "other", true, "<none>", ""},
		{"described, at an ordinary API", widget, "team-a", "w1", true, "w1/Widget/backend",
			"/apis/example.com/v1/namespaces/team-a/widgets/w1"},
		{"discovered", schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, "", "g1", false,
			"g1/Gadget/backend", "/api /apis /apis/example.com/v1 /apis/example.com/v1/gadgets/g1"},
		{"not discovered", schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"}, "", "u",
			false, "<none>", "/api /apis /apis/example.com/v1"},
		{"unknown, at an ordinary API", schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unknown"},
			"", "u", true, "<none>", ""},
		{"a namespace in the files", namespace, "", "team-a", true, "team-a/Namespace/", ""},
		{"a namespace of an ordinary API", namespace, "", "team-b", true, "the namespace 'team-b' is in no policy file, and the backend is no Kubernetes API server that could be asked for it", ""},
	} {
		b := &cluster{plain: c.plain, answers: map[string]string{
			"/api/v1/namespaces/team-a/configmaps/other":               live("other"),
			"/apis/example.com/v1/namespaces/team-a/widgets/w1":        live("w1"),
			"/apis/example.com/v1/gadgets/g1":                          live("g1"),
			"/apis/example.com/v1":                                     `{"kind":"APIResourceList","resources":[{"name":"gadgets","kind":"Gadget","namespaced":false}]}`,
			"/api/v1/namespaces/team-a/configmaps?labelSelector=a%3Db": "",
		}}
		r := refer(t, b, "POST", "/api/v1/namespaces/team-a/pods", filed, widgets)
		for range 2 {
			n, err := r.Object(context.Background(), c.kind, c.namespace, c.name)
			got := "<none>"
			switch {
			case err != nil:
				got = err.Error()
			case n.Valid():
				got = summary(n)
			}
			if got != c.want || strings.Join(b.asked, " ") != c.asked {
				t.Errorf("%s: %s after %q", c.about, got, b.asked)
			}
		}
	}
}

// TestReferredSources: a StateSource that covers a kind answers for it, and says what happens while it cannot.
func TestReferredSources(t *testing.T) {
	source := stateSource("maps", "resource: {apiVersion: v1, resource: configmaps}, mode: Poll, periodSeconds: 3600")
	list := `{"kind":"ConfigMapList","apiVersion":"v1","items":[` + live("b") + `,` + live("a") +
		`,{"metadata":{"name":"a","namespace":"team-b","labels":{"use":"limits"}}}]}`
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	selector := labels.SelectorFromSet(labels.Set{"use": "limits"})

	b := &cluster{answers: map[string]string{"/api/v1/configmaps?limit=500": list,
		"/api/v1/namespaces/team-a/configmaps/new": live("new")}}
	r := refer(t, b, "POST", "/api/v1/namespaces/team-a/pods", source, filed)
	found, err := r.Objects(context.Background(), configMap, "team-a", selector)
	var got []string
	for _, n := range found {
		got = append(got, summary(n))
	}
	if text := strings.Join(got, " "); text != "a/ConfigMap/backend b/ConfigMap/backend filed/ConfigMap/file" ||
		err != nil {
		t.Errorf("selected %s, %v", text, err)
	}
	if n, err := r.Object(context.Background(), configMap, "team-a", "b"); summary(n) != "b/ConfigMap/backend" ||
		err != nil {
		t.Errorf("b is %s, %v", summary(n), err)
	}
	if len(b.asked) != 1 {
		t.Errorf("asked %q", b.asked)
	}
	if n, err := r.Object(context.Background(), configMap, "team-a", "new"); summary(n) != "new/ConfigMap/backend" ||
		err != nil {
		t.Errorf("what is not among them yet is %s, %v", summary(n), err)
	}

	for _, c := range []struct{ more, want string }{
		{"", "the state 'maps' has not been read yet: the backend answered 404 Not Found"},
		{", whenMissing: Skip", "the policy is left out, because a state that it reads is not known"},
	} {
		r := refer(t, &cluster{}, "POST", "/api/v1/namespaces/team-a/pods",
			strings.Replace(source, "3600", "3600"+c.more, 1))
		if _, err := r.Objects(context.Background(), configMap, "team-a", selector); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v", c.more, err)
		}
		if _, err := r.Object(context.Background(), configMap, "team-a", "a"); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v", c.more, err)
		}
	}
}

// TestReferredScopes: whether a kind belongs to namespaces.
func TestReferredScopes(t *testing.T) {
	b := &cluster{answers: map[string]string{"/apis/example.com/v1": `{"kind":"APIResourceList","resources":[{"name":"gadgets","kind":"Gadget","namespaced":true}]}`}}
	for kind, want := range map[string]string{
		"/v1 ConfigMap":            "true <nil>",
		"/v1 Namespace":            "false <nil>",
		"example.com/v1 Widget":    "true <nil>",
		"example.com/v1 Limit":     "false <nil>",
		"example.com/v1 Gadget":    "true <nil>",
		"example.com/v1 Undefined": "false neither the policy files nor the backend know it",
	} {
		version, name, _ := strings.Cut(kind, " ")
		group, version, _ := strings.Cut(version, "/")
		r := refer(t, b, "POST", "/api/v1/namespaces/team-a/pods", filed, widgets)
		namespaced, err := r.Namespaced(context.Background(),
			schema.GroupVersionKind{Group: group, Version: version, Kind: name})
		if got := fmt.Sprint(namespaced, " ", err); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
	r := refer(t, &cluster{plain: true}, "POST", "/api/v1/namespaces/team-a/pods")
	if _, err := r.Namespaced(context.Background(), schema.GroupVersionKind{Group: "example.com", Version: "v1",
		Kind: "Undefined"}); err == nil {
		t.Error("an ordinary API knows everything")
	}
}

// TestConvert: between the versions of a definition whose strategy is 'None', and between the two groups of events.
func TestConvert(t *testing.T) {
	two := strings.Replace(widgets, "  - name: v1\n", "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n  - name: v1\n", 1)
	webhook := strings.Replace(two, "  scope: Namespaced\n", "  scope: Namespaced\n  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'https://example.com'}}}\n", 1)
	widgetV1 := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	core := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	modern := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	const coreEvent = `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Pod"},"message":"m","source":{},"count":1,"reportingComponent":"c","type":"Normal"}`
	const modernEvent = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"},"regarding":{"kind":"Pod"},"note":"m","deprecatedSource":{},"deprecatedCount":1,"reportingController":"c","type":"Normal"}`
	const autoscalers = `{"kind":"APIResourceList","resources":[{"name":"horizontalpodautoscalers","kind":"HorizontalPodAutoscaler","namespaced":true}]}`
	autoscaling := map[string]string{
		"/apis/autoscaling/v1": autoscalers, "/apis/autoscaling/v2": autoscalers,
	}
	for _, c := range []struct {
		about, crd, path, object string
		to                       schema.GroupVersionResource
		others, want             string
	}{
		{"None", two, "/apis/example.com/v2/namespaces/a/widgets",
			`{"apiVersion":"example.com/v2","kind":"Widget","x":1}`, widgetV1, "v1",
			`{"apiVersion":"example.com/v1","kind":"Widget","x":1}`},
		{"Webhook", webhook, "/apis/example.com/v2/namespaces/a/widgets", `{}`, widgetV1, "v1",
			"'widgets.example.com' cannot be converted from version 'v2' to 'v1'"},
		{"one version", widgets, "/apis/example.com/v1/namespaces/a/widgets", `{}`,
			schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}, "",
			"'widgets.example.com' cannot be converted from version 'v1' to 'v2'"},
		{"an autoscaler", "", "/apis/autoscaling/v1/namespaces/a/horizontalpodautoscalers", `{"apiVersion":"autoscaling/v1","metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":2,"targetCPUUtilizationPercentage":5}}`,
			schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
			"v2",
			`{"apiVersion":"autoscaling/v2","metadata":{"name":"h"},"spec":{"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":2,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5}}}]}}`},
		{"a newer event", "", "/api/v1/namespaces/a/events", coreEvent, modern, "v1", modernEvent},
		{"an older event", "", "/apis/events.k8s.io/v1/namespaces/a/events", modernEvent, core, "v1", coreEvent},
	} {
		files := []string{}
		if c.crd != "" {
			files = append(files, c.crd)
		}
		r := refer(t, &cluster{answers: autoscaling}, "POST", c.path, files...)
		others, err := r.Equivalents(context.Background())
		var versions []string
		for _, o := range others {
			versions = append(versions, o.Version)
		}
		if got := strings.Join(versions, " "); got != c.others || err != nil {
			t.Errorf("%s: equivalents %s, %v", c.about, got, err)
		}
		d, err := document.Parse([]byte(c.object), document.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		converted, _, err := r.Convert(d, c.to)
		got := fmt.Sprint(err)
		if err == nil {
			got = string(converted.AppendTo(nil))
		}
		if !sameMembers(got, c.want) {
			t.Errorf("%s: %s\nwant %s", c.about, got, c.want)
		}
		if err == nil {
			back, _, err := r.Convert(converted, r.info.GroupVersionResource())
			if err != nil || !sameMembers(string(back.AppendTo(nil)), c.object) {
				t.Errorf("%s: back it is %v, %v", c.about, back, err)
			}
		}
		if string(d.AppendTo(nil)) != c.object {
			t.Errorf("%s: the object itself became %s", c.about, d.AppendTo(nil))
		}
	}
}

// sameMembers compares objects whatever the order of their members, and other texts as they are.
func sameMembers(a, b string) bool {
	x, errX := document.Parse([]byte(a), document.Limits{})
	y, errY := document.Parse([]byte(b), document.Limits{})
	if errX != nil || errY != nil {
		return a == b
	}
	return document.EqualNodes(x.Root(), y.Root())
}

// TestReferredIsForOneRequest: what was answered stays, until the request is over.
func TestReferredIsForOneRequest(t *testing.T) {
	b := &cluster{answers: map[string]string{"/api/v1/namespaces/team-a/configmaps/c": live("c")}}
	r := refer(t, b, "POST", "/api/v1/namespaces/team-a/pods")
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	var _ admission.Lookup = r
	before, err := r.Object(context.Background(), configMap, "team-a", "c")
	if err != nil {
		t.Fatal(err)
	}
	b.answers["/api/v1/namespaces/team-a/configmaps/c"] = live("changed")
	if again, _ := r.Object(context.Background(), configMap, "team-a", "c"); again != before {
		t.Error("the object changed within the request")
	}
	decision, reason, err := r.Authorizer().Authorize(context.Background(),
		authorizer.AttributesRecord{ResourceRequest: true, Verb: "get", Resource: "pods"})
	if decision != authorizer.DecisionNoOpinion || reason != "" ||
		fmt.Sprint(err) != "the backend answered 404 Not Found" {
		t.Errorf("the authorizer says %v %q %v", decision, reason, err)
	}
	if _, err := r.State("none"); fmt.Sprint(err) != "no StateSource has the name 'none'" {
		t.Errorf("an unknown state: %v", err)
	}
	r.Reset()
	r.Begin(context.Background(), empty(), nil, nil, &resource.Info{}, nil, time.Time{})
	if len(r.answers) != 0 {
		t.Error("answers outlive the request")
	}
}

// TestEquivalentsBesideFiles: a server may serve a resource in versions that the files do not
// describe. A policy whose rules name one of them matches requests in the others all the same.
func TestEquivalentsBesideFiles(t *testing.T) {
	const list = `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","namespaced":true}]}`
	b := &cluster{answers: map[string]string{"/apis/example.com/v1": list, "/apis/example.com/v2": list}}
	r := refer(t, b, "POST", "/apis/example.com/v1/namespaces/a/widgets", widgets)
	if _, err := b.Discovery().All(context.Background()); err != nil { // as a gateway that runs has asked
		t.Fatal(err)
	}
	others, err := r.Equivalents(context.Background())
	want := []schema.GroupVersionResource{{Group: "example.com", Version: "v2", Resource: "widgets"}}
	if !slices.Equal(others, want) || err != nil {
		t.Errorf("the other versions are %v, %v; want %v", others, err, want)
	}
}
