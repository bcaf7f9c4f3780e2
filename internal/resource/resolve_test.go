package resource

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func testRegistry(t testing.TB) *Registry {
	t.Helper()
	r, err := NewRegistry([]*Resource{
		{Group: "lab.example.com", Version: "v1", Names: Names{Kind: "Widget", Plural: "widgets"}, Namespaced: true,
			Subresources: Subresources{Status: true, Scale: &Scaling{}}},
		{Group: "lab.example.com", Version: "v1beta1", Names: Names{Kind: "Widget", Plural: "widgets"},
			Namespaced: true, Subresources: Subresources{Status: true, Scale: &Scaling{}}},
		{Group: "lab.example.com", Version: "v1", Names: Names{Kind: "Gizmo", Plural: "gizmos"}},
		{Group: "shop.example.com", Version: "v2", Names: Names{Kind: "Order", Plural: "orders"}, Envelope: Bare,
			Subresources: Subresources{Status: true, Other: []string{"invoice"}},
			Paths:        []string{"/v2/orders", "/v2/orders/{name}"}},
		{Group: "shop.example.com", Version: "v2", Names: Names{Kind: "Search", Plural: "searches"}, Envelope: Bare,
			Paths: []string{"/v2/orders/search"}},
		{Group: "shop.example.com", Version: "v2", Names: Names{Kind: "Cart", Plural: "carts"}, Envelope: Bare,
			Namespaced: true,
			Paths:      []string{"/v2/carts", "/v2/tenants/{namespace}/carts", "/v2/tenants/{namespace}/carts/{name}"}},
		{Group: "shop.example.com", Version: "v2", Names: Names{Kind: "Stock", Plural: "stocks"}, Namespaced: true,
			Paths: []string{"/api/stock/{namespace}", "/api/stock/{namespace}/{name}"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	widgets = iota
	widgetsBeta
	gizmos
	orders
	searches
	carts
	stocks
	none = -1
)

// RES-1, RES-4: the whole of what is read from accepted requests.
func TestResolve(t *testing.T) {
	r := testRegistry(t)
	lab := func(verb Verb, resource, sub, ns, name string) Info {
		return Info{Verb: verb, IsResource: true, APIPrefix: "apis", Group: "lab.example.com", Version: "v1",
			APIVersion: "lab.example.com/v1",
			Resource:   resource, Subresource: sub, Namespace: ns, Name: name}
	}
	core := func(verb Verb, resource, sub, ns, name string) Info {
		return Info{Verb: verb, IsResource: true, APIPrefix: "api", Version: "v1", APIVersion: "v1", Resource: resource,
			Subresource: sub, Namespace: ns, Name: name}
	}
	connect := func(i Info) Info { i.Connect = true; return i }
	shop := func(verb Verb, resource, sub, ns, name string) Info {
		return Info{Verb: verb, IsResource: true, Group: "shop.example.com", Version: "v2",
			APIVersion: "shop.example.com/v2",
			Resource:   resource, Subresource: sub, Namespace: ns, Name: name}
	}
	options := func(i Info, o Options) Info { i.Options = o; return i }
	tests := []struct {
		method, target string
		want           Info
		resource       int
	}{
		// Kubernetes paths.
		{"GET", "/apis/lab.example.com/v1/namespaces/team-a/widgets", lab(VerbList, "widgets", "", "team-a", ""),
			widgets},
		{"HEAD", "/apis/lab.example.com/v1/namespaces/team-a/widgets", lab(VerbList, "widgets", "", "team-a", ""),
			widgets},
		{"GET", "/apis/lab.example.com/v1/widgets", lab(VerbList, "widgets", "", "", ""), widgets},
		{"GET", "/apis/lab.example.com/v1/widgets?watch=true",
			options(lab(VerbWatch, "widgets", "", "", ""), Options{Watch: true}), widgets},
		{"GET", "/apis/lab.example.com/v1/widgets?watch=0", lab(VerbList, "widgets", "", "", ""), widgets},
		{"POST", "/apis/lab.example.com/v1/namespaces/team-a/widgets", lab(VerbCreate, "widgets", "", "team-a", ""),
			widgets},
		{"DELETE", "/apis/lab.example.com/v1/namespaces/team-a/widgets",
			lab(VerbDeleteCollection, "widgets", "", "team-a", ""), widgets},
		{"GET", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1", lab(VerbGet, "widgets", "", "team-a", "w1"),
			widgets},
		{"GET", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1?watch=1",
			options(lab(VerbGet, "widgets", "", "team-a", "w1"), Options{Watch: true}), widgets},
		{"HEAD", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1", lab(VerbGet, "widgets", "", "team-a", "w1"),
			widgets},
		{"PUT", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1", lab(VerbUpdate, "widgets", "", "team-a", "w1"),
			widgets},
		{"PATCH", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1",
			lab(VerbPatch, "widgets", "", "team-a", "w1"), widgets},
		{"DELETE", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1",
			lab(VerbDelete, "widgets", "", "team-a", "w1"), widgets},
		{"OPTIONS", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1",
			lab(VerbOptions, "widgets", "", "team-a", "w1"), widgets},
		{"PUT", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1/status",
			lab(VerbUpdate, "widgets", "status", "team-a", "w1"), widgets},
		{"GET", "/apis/lab.example.com/v1/namespaces/team-a/widgets/w1/scale",
			lab(VerbGet, "widgets", "scale", "team-a", "w1"), widgets},
		{"GET", "/apis/lab.example.com/v1/gizmos/g1", lab(VerbGet, "gizmos", "", "", "g1"), gizmos},
		{"GET", "/apis/lab.example.com/v1/gizmos/system:node%20a%C3%A4",
			lab(VerbGet, "gizmos", "", "", "system:node aä"), gizmos},

		// Kubernetes paths that are in no policy file.
		{"GET", "/api/v1/namespaces", core(VerbList, "namespaces", "", "", ""), none},
		{"POST", "/api/v1/namespaces", core(VerbCreate, "namespaces", "", "", ""), none},
		{"GET", "/api/v1/namespaces/team-a", core(VerbGet, "namespaces", "", "team-a", "team-a"), none},
		{"PUT", "/api/v1/namespaces/team-a/status", core(VerbUpdate, "namespaces", "status", "team-a", "team-a"), none},
		{"PUT", "/api/v1/namespaces/team-a/finalize", core(VerbUpdate, "namespaces", "finalize", "team-a", "team-a"),
			none},
		{"GET", "/api/v1/namespaces/team-a/pods", core(VerbList, "pods", "", "team-a", ""), none},
		{"GET", "/api/v1/namespaces/team-a/pods/p1/log?container=app&container=app",
			core(VerbGet, "pods", "log", "team-a", "p1"), none},
		{"POST", "/api/v1/namespaces/team-a/pods/p1/eviction", core(VerbCreate, "pods", "eviction", "team-a", "p1"),
			none},
		{"DELETE", "/api/v1/nodes/n1/lease", core(VerbDelete, "nodes", "lease", "", "n1"), none},
		{"GET", "/api/v1/namespaces/team-a/services/https:web:/proxy/",
			connect(core(VerbGet, "services", "proxy", "team-a", "https:web:")), none},
		{"POST", "/api/v1/namespaces/team-a/services/web/proxy/a/b/c/d/e/f/g/h/i/j/k/l/m/n",
			connect(core(VerbCreate, "services", "proxy", "team-a", "web")), none},
		{"GET", "/apis/apps/v1/deployments", Info{Verb: VerbList, IsResource: true, APIPrefix: "apis", Group: "apps",
			Version: "v1", APIVersion: "apps/v1", Resource: "deployments"}, none},

		// Path templates.
		{"GET", "/v2/orders", shop(VerbList, "orders", "", "", ""), orders},
		{"GET", "/v2/orders?watch=True", options(shop(VerbWatch, "orders", "", "", ""), Options{Watch: true}), orders},
		{"POST", "/v2/orders", shop(VerbCreate, "orders", "", "", ""), orders},
		{"DELETE", "/v2/orders", shop(VerbDeleteCollection, "orders", "", "", ""), orders},
		{"GET", "/v2/orders/Order_7", shop(VerbGet, "orders", "", "", "Order_7"), orders},
		{"PUT", "/v2/orders/a%20b", shop(VerbUpdate, "orders", "", "", "a b"), orders},
		{"PATCH", "/v2/orders/o1", shop(VerbPatch, "orders", "", "", "o1"), orders},
		{"DELETE", "/v2/orders/o1", shop(VerbDelete, "orders", "", "", "o1"), orders},
		{"PUT", "/v2/orders/o1/status", shop(VerbUpdate, "orders", "status", "", "o1"), orders},
		{"GET", "/v2/orders/o1/invoice", shop(VerbGet, "orders", "invoice", "", "o1"), orders},
		{"POST", "/v2/orders/search", shop(VerbCreate, "searches", "", "", ""), searches},
		{"GET", "/v2/carts", shop(VerbList, "carts", "", "", ""), carts},
		{"POST", "/v2/tenants/Acme_1/carts", shop(VerbCreate, "carts", "", "Acme_1", ""), carts},
		{"GET", "/v2/tenants/team-a/carts/c1", shop(VerbGet, "carts", "", "team-a", "c1"), carts},
		{"GET", "/api/stock/team-a/s1", shop(VerbGet, "stocks", "", "team-a", "s1"), stocks},
		{"GET", "/api/stock/team-a", shop(VerbList, "stocks", "", "team-a", ""), stocks},

		// Paths that are no resource.
		{"GET", "/", Info{Verb: VerbGet}, none},
		{"GET", "/api", Info{Verb: VerbGet}, none},
		{"GET", "/api/v1", Info{Verb: VerbGet}, none},
		{"GET", "/apis", Info{Verb: VerbGet}, none},
		{"GET", "/apis/lab.example.com", Info{Verb: VerbGet}, none},
		{"GET", "/apis/lab.example.com/v1", Info{Verb: VerbGet}, none},
		{"HEAD", "/openapi/v3?hash=a;b&watch=true&watch=false&dryRun=x", Info{Verb: VerbHead}, none},
		{"POST", "/login", Info{Verb: VerbPost}, none},
		{"OPTIONS", "/login/", Info{Verb: VerbOptions}, none},
		{"GET", "/static/%7Euser/", Info{Verb: VerbGet}, none},
		{"GET", "/v2/customers/7", Info{Verb: VerbGet}, none},
		{"PUT", "/v2/tenants", Info{Verb: VerbPut}, none},

		// Options.
		{"POST", "/v2/orders?fieldValidation=Strict&dryRun=All&timeout=1m30s&x=1&x=2",
			options(shop(VerbCreate, "orders", "", "", ""),
				Options{FieldValidation: FieldValidationStrict, DryRun: true, Timeout: 90 * time.Second}), orders},
		{"PATCH", "/v2/orders/o1?fieldValidation=Ignore",
			options(shop(VerbPatch, "orders", "", "", "o1"), Options{FieldValidation: FieldValidationIgnore}), orders},
		{"PUT", "/v2/orders/o1?fieldValidation=Warn&",
			options(shop(VerbUpdate, "orders", "", "", "o1"), Options{FieldValidation: FieldValidationWarn}), orders},
		{"PUT", "/v2/orders/o1?fieldValidation=", shop(VerbUpdate, "orders", "", "", "o1"), orders},
		{"POST", "/v2/orders?fieldvalidation=Strict", shop(VerbCreate, "orders", "", "", ""), orders},
		{"GET", "/v2/orders?fieldValidation=Sometimes&dryRun=Yes", shop(VerbList, "orders", "", "", ""), orders},
		{"GET", "/v2/orders?timeout=soon&limit=x", shop(VerbList, "orders", "", "", ""), orders},
		{"GET", "/v2/orders?timeout=-1s", shop(VerbList, "orders", "", "", ""), orders},
		{"GET", "/apis/lab.example.com/v1/gizmos?timeout=-1s", lab(VerbList, "gizmos", "", "", ""), gizmos},
		{"GET", "/search?q=100%&r=%zz;s=1", Info{Verb: VerbGet}, -1},
		{"GET", "/apis/lab.example.com/v1/gizmos?timeout=%31s",
			options(lab(VerbList, "gizmos", "", "", ""), Options{Timeout: time.Second}), gizmos},
		{"GET", "/apis/lab.example.com/v1/gizmos?fieldSelector=metadata.name%3Dg1,a!=b&labelSelector=a+in+(b)", lab(VerbList, "gizmos", "", "", ""), gizmos},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			tt.want.Path, tt.want.Query, _ = strings.Cut(tt.target, "?")
			got, res, err := r.Resolve(tt.method, []byte(tt.target))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Template, tt.want.Route = got.Template, got.Route // TestTemplates has them
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, tt.want)
			}
			switch {
			case tt.resource == none && res != nil:
				t.Errorf("got resource %s, want none", res.GroupVersionResource())
			case tt.resource != none && (res == nil || res.ID != tt.resource || r.Resources()[res.ID] != res):
				t.Errorf("got resource %v, want %d", res, tt.resource)
			}
		})
	}
}

// RES-3, RES-4 and each row of "Paths" in the list of hostile input: the code, and the piece of the
// message that says what is wrong.
func TestResolveRefuses(t *testing.T) {
	r := testRegistry(t)
	const ns = "/apis/lab.example.com/v1/namespaces/team-a"
	tests := []struct {
		method, target string
		code           int
		message        string
	}{
		// Everywhere.
		{"GET", "", 400, "must start with '/'"},
		{"GET", "*", 400, "must start with '/'"},
		{"GET", "http://example.com/v2/orders", 400, "must start with '/'"},
		{"GET", "?watch=true", 400, "must start with '/'"},
		{"GET", "//evil/x", 400, "'//'"},
		{"GET", "//", 400, "'//'"},
		{"GET", "/pub//", 400, "'//'"},
		{"GET", "/apis//lab.example.com/v1/widgets", 400, "'//'"},
		{"GET", "/pub/../admin", 400, "'.' or '..'"},
		{"GET", "/pub/./admin", 400, "'.' or '..'"},
		{"GET", "/pub/..", 400, "'.' or '..'"},
		{"GET", "/pub/.", 400, "'.' or '..'"},
		{"GET", "/pub/%2e%2E/admin", 400, "'.' or '..'"},
		{"GET", "/pub/.%2e/admin", 400, "'.' or '..'"},
		{"GET", "/pub/%2e", 400, "'.' or '..'"},
		{"POST", ns + "/../team-b/widgets", 400, "'.' or '..'"},
		{"GET", "/pub/..%2Fadmin", 400, "'%2F'"},
		{"GET", "/a%2fb/c", 400, "'%2F'"},
		{"GET", "/a%5Cb", 400, "'%5C'"},
		{"GET", "/a%00", 400, "'%00'"},
		{"GET", "/a%0d%0a", 400, "'%0d'"},
		{"GET", "/a%7F", 400, "'%7F'"},
		{"GET", "/a%C2%85", 400, "control characters"},
		{"GET", "/a%", 400, "hexadecimal"},
		{"GET", "/a%2", 400, "hexadecimal"},
		{"GET", "/a%zz", 400, "hexadecimal"},
		{"GET", "/a%u002e", 400, "hexadecimal"},
		{"GET", "/a%C0%AE", 400, "UTF-8"},
		{"GET", "/a%ff", 400, "UTF-8"},
		{"GET", "/a%ED%A0%80", 400, "UTF-8"},
		{"GET", "/a%E2%82", 400, "UTF-8"},
		{"GET", "/a;x=1/b", 400, "';'"},
		{"GET", `/a\b`, 400, `'\'`},
		{"GET", "/a#b", 400, "'#'"},
		{"GET", "/a?b#c", 400, "'#'"},
		{"GET", "/a b", 400, "' '"},
		{"GET", "/a{b}", 400, "'{'"},
		{"GET", "/a\x00", 400, "control characters"},
		{"GET", "/a\tb", 400, "control characters"},
		{"GET", "/a\x7f", 400, "control characters"},
		{"GET", "/ä", 400, "percent-encoded"},
		{"GET", "/a?\xff", 400, "percent-encoded"},
		{"GET", "/a?b=\r\n", 400, "control characters"},
		{"GET", "/api/v1/pods?b=%zz", 400, "hexadecimal"},
		{"GET", "/v2/orders?b=%zz", 400, "hexadecimal"},
		{"GET", "/v2/orders?a=1;b=2", 400, "';'"},
		{"GET", "/api/v1/pods?limit=1;watch=true", 400, "';'"},
		{"GET", "/%61pis/lab.example.com/v1/widgets", 400, "'%61'"},
		{"GET", "/%76%32/orders", 400, "'%76'"},
		{"GET", "/x%25y", 400, "'%25'"},

		// In paths of resources.
		{"POST", ns + "/%77idgets", 400, "'%77'"},
		{"POST", ns + "/%2577idgets", 400, "'%25'"},
		{"GET", ns + "/widgets/w%2D1", 400, "'%2D'"},
		{"GET", "/v2/%6frders", 400, "'%6f'"},
		{"GET", "/v2/orders/%6f1", 400, "'%6f'"},
		{"GET", "/v2/customers/%41", 400, "'%41'"},
		{"GET", "/v2/orders/100%25", 400, "'%25'"},
		{"GET", ns + "/widgets/", 400, "must not end in '/'"},
		{"POST", ns + "/widgets/", 400, "must not end in '/'"},
		{"GET", "/apis/", 400, "must not end in '/'"},
		{"GET", "/api/v1/", 400, "must not end in '/'"},
		{"GET", "/v2/orders/", 400, "must not end in '/'"},
		{"GET", "/v2/", 400, "must not end in '/'"},
		{"PUT", ns + "/widgets/w1/status/", 400, "must not end in '/'"},
		{"GET", ns + "/widgets/w1/status/more", 404, "more segments"},
		{"GET", "/api/v1/namespaces/team-a/pods/p1/log/more", 404, "more segments"},
		{"GET", "/api/v1/namespaces/team-a/status/more", 404, "more segments"},
		{"GET", ns + "/widgets/w1/frob", 404, `widgets.lab.example.com "w1" not found`},
		{"GET", "/apis/lab.example.com/v1/gizmos/g1/status", 404, `gizmos.lab.example.com "g1" not found`},
		{"GET", "/v2/orders/o1/frob", 404, "has nothing there"},
		{"GET", "/v2/orders/o1/status/more", 404, "has nothing there"},
		{"GET", "/v2/orders/search/more", 404, "has nothing there"},
		{"GET", "/v2/carts/c1", 404, "has nothing there"},
		{"GET", "/V2/orders", 404, "only in the case of 'V2'"},
		{"POST", "/v2/Orders", 404, "only in the case of 'Orders'"},
		{"GET", "/APIS/lab.example.com/v1/widgets", 404, "only in the case of 'APIS'"},
		{"GET", "/Api/v1/pods", 404, "only in the case of 'Api'"},
		{"GET", "/api/v1/watch/pods", 400, "'/watch/'"},
		{"GET", "/apis/lab.example.com/v1/watch/namespaces/team-a/widgets", 400, "'/watch/'"},
		{"GET", "/api/v1/proxy/nodes/n1", 400, "'/proxy/'"},

		// Forms and scopes.
		{"GET", "/apis/Lab.example.com/v1/widgets", 400, "API group 'Lab.example.com'"},
		{"GET", "/apis/a..b/v1/widgets", 400, "API group 'a..b'"},
		{"GET", "/apis/" + strings.Repeat("a", 254) + "/v1/widgets", 400, "must be no more than 253 bytes"},
		{"GET", "/apis/lab.example.com/V1/widgets", 400, "version 'V1'"},
		{"GET", "/api/v1/Pods", 400, "resource 'Pods'"},
		{"GET", "/api/v1/pods/p1/Log", 400, "subresource 'Log'"},
		{"GET", "/apis/lab.example.com/v1/namespaces/Team/widgets", 400, "namespace 'Team'"},
		{"GET", "/apis/lab.example.com/v1/namespaces/a.b/widgets", 400, "must not contain dots"},
		{"GET", "/apis/lab.example.com/v1/namespaces/a%20b/widgets", 400, "namespace 'a%20b'"},
		{"GET", "/api/stock/Team/s1", 400, "namespace 'Team'"},
		{"GET", "/apis/lab.example.com/v9/namespaces/team-a/widgets", 404, "not served in version 'v9'"},
		{"GET", "/apis/lab.example.com/v1/widgets/w1", 404, "is namespaced"},
		{"GET", "/apis/lab.example.com/v1/namespaces/team-a/gizmos", 404, "not namespaced"},
		{"POST", "/apis/lab.example.com/v1/widgets", 404, "the path of a create must contain"},

		// Methods.
		{"POST", ns + "/widgets/w1", 405, `create is not supported on resources of kind "widgets.lab.example.com"`},
		{"POST", ns + "/widgets/w1/status", 405, "create is not supported"},
		{"DELETE", ns + "/widgets/w1/status", 405, "delete is not supported"},
		{"DELETE", "/apis/lab.example.com/v1/widgets", 405, "deletecollection is not supported"},
		{"POST", "/api/v1/namespaces/team-a", 405, `create is not supported on resources of kind "namespaces"`},
		{"POST", "/v2/orders/o1", 405, "create is not supported"},
		{"PUT", "/v2/orders", 405, "update is not supported"},
		{"PATCH", "/v2/orders", 405, "patch is not supported"},
		{"POST", "/v2/carts", 405, "create is not supported"},
		{"PUT", "/api/v1/namespaces/team-a/pods", 405, "update is not supported"},
		{"PUT", ns + "/widgets", 400, "name must be provided"},
		{"PATCH", ns + "/widgets", 400, "name must be provided"},
		{"TRACE", ns + "/widgets", 405, `TRACE is not supported on resources of kind "widgets.lab.example.com"`},
		{"FOO", "/v2/orders", 405, `FOO is not supported on resources of kind "orders.shop.example.com"`},
		{"get", "/v2/orders", 405, "get is not supported"},
		{"CONNECT", "/x", 405, "CONNECT is not supported"},
		{"TRACE", "/x", 405, "the methods are GET"},

		// Query.
		{"POST", "/v2/orders?_method=DELETE", 400, "'_method'"},
		{"POST", "/x?a=1&_METHOD=DELETE", 400, "'_method'"},
		{"POST", "/x?%5fmethod=DELETE", 400, "'_method'"},
		{"POST", "/x?_m%65thod=DELETE", 400, "'_method'"},
		{"POST", "/v2/orders?fieldValidation=Ignore&fieldValidation=Strict", 400,
			"'fieldValidation' may not be given more than once"},
		{"POST", "/v2/orders?dryRun=All&a=1&dryRun=All", 400, "'dryRun' may not be given more than once"},
		{"POST", "/v2/orders?dryRu%6e=All", 400, "'dryRun' must be written without percent-encoding"},
		{"GET", "/v2/orders?%77atch=true", 400, "'watch' must be written without percent-encoding"},
		{"GET", "/v2/orders?a=1;watch=true", 400, "';'"},
		{"GET", "/v2/orders?watch", 400, "'watch' must be 'true' or 'false'"},
		{"GET", "/v2/orders?watch=yes", 400, "'watch' must be 'true' or 'false'"},
		{"GET", "/v2/orders?watch=%74rue", 400, "'watch' must be 'true' or 'false'"},
		{"GET", "/api/v1/pods?timeout=soon", 400, "'timeout' must be a duration"},
		{"POST", "/v2/orders?fieldValidation=Sometimes", 422, `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Sometimes": supported values: "", "Ignore", "Strict", "Warn"`},
		{"PUT", "/v2/orders/o1?dryRun=Yes", 422, `UpdateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Yes"]: supported values: "All"`},
		{"PATCH", "/v2/orders/o1?dryRun=", 422, `PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: [""]: supported values: "All"`},
		{"DELETE", "/v2/orders/o1?dryRun=all", 422, `DeleteOptions.meta.k8s.io "" is invalid: dryRun`},
	}
	for _, key := range []string{"fieldSelector", "labelSelector", "limit", "continue", "resourceVersion",
		"resourceVersionMatch", "timeoutSeconds", "timeout",
		"pretty", "force", "fieldManager", "propagationPolicy", "gracePeriodSeconds", "orphanDependents",
		"sendInitialEvents", "allowWatchBookmarks",
		"shardSelector", "ignoreStoreReadErrorWithClusterBreakingPotential"} {
		tests = append(tests, struct {
			method, target string
			code           int
			message        string
		}{"GET", fmt.Sprintf("/v2/orders?%s=1s&%s=2s", key, key), 400, "'" + key + "' may not be given more than once"})
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			info, res, err := r.Resolve(tt.method, []byte(tt.target))
			if err == nil {
				t.Fatalf("accepted as %+v", info)
			}
			s := statusOf(t, err)
			if int(s.Code) != tt.code || !strings.Contains(s.Message, tt.message) {
				t.Errorf("got %d %q, want %d with %q", s.Code, s.Message, tt.code, tt.message)
			}
			// The resource is known even if it lacks the method or the subresource.
			own := s.Code == http.StatusMethodNotAllowed || s.Message == "name must be provided" ||
				s.Code == http.StatusNotFound && info.Subresource != ""
			if res != nil && !own {
				t.Errorf("refused with %d %q, and yet resolved to %s", s.Code, s.Message, res.GroupResource())
			}
		})
	}
}

// A Resource must not allocate on the way of a request.
func TestResolveDoesNotAllocate(t *testing.T) {
	r := testRegistry(t)
	for _, target := range []string{
		"/apis/lab.example.com/v1/namespaces/team-a/widgets/w1?fieldValidation=Strict&timeout=10s",
		"/v2/tenants/team-a/carts/c1",
		"/api/v1/namespaces/team-a/pods/p1/log",
	} {
		b := []byte(target)
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := r.Resolve("GET", b); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", target, n)
		}
	}
}

func TestParam(t *testing.T) {
	i := Info{Query: "a=1&labelSelector=x%3Dy+z&a=2&b&limit="}
	for key, want := range map[string]string{"a": "1", "labelSelector": "x=y z", "b": "", "limit": ""} {
		if got, ok := i.Param(key); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", key, got, ok, want)
		}
	}
	if got, ok := i.Param("c"); ok || got != "" {
		t.Errorf("c: got %q, %v", got, ok)
	}
}

func TestObjectNamespace(t *testing.T) {
	r := testRegistry(t)
	for target, want := range map[string]string{
		"/api/v1/namespaces/team-a":                  "",
		"/api/v1/namespaces/team-a/pods/p1":          "team-a",
		"/v2/tenants/team-a/carts/c1":                "team-a",
		"/apis/lab.example.com/v1/gizmos/g1":         "",
		"/apis/lab.example.com/v1/namespaces/team-a": "team-a", // as for Kubernetes, which knows no other reading
	} {
		info, _, err := r.Resolve("GET", []byte(target))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.ObjectNamespace(); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestPluralNamespaces: a resource of another group that has the plural 'namespaces' is one like others.
func TestPluralNamespaces(t *testing.T) {
	type want struct {
		namespace, object, name, subresource string
		hasSegments                          bool
	}
	const inNamespaces, inNone = "/apis/bus.example.com/v1/", "/apis/cluster.example.com/v1/"
	names := Names{Kind: "Namespace", Plural: "namespaces"}
	r, err := NewRegistry([]*Resource{
		{Group: "bus.example.com", Version: "v1", Names: names, Namespaced: true,
			Subresources: Subresources{Status: true}},
		{Group: "cluster.example.com", Version: "v1", Names: names, Subresources: Subresources{Status: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]want{
		inNamespaces + "namespaces":                        {},
		inNamespaces + "namespaces/a/namespaces":           {"a", "a", "", "", true},
		inNamespaces + "namespaces/a/namespaces/x":         {"a", "a", "x", "", true},
		inNamespaces + "namespaces/a/namespaces/a/status":  {"a", "a", "a", "status", true},
		inNamespaces + "namespaces/a":                      {"a", "a", "a", "", false}, // as for Kubernetes
		inNamespaces + "namespaces/a/status":               {"a", "a", "a", "status", false},
		inNone + "namespaces/a":                            {"", "", "a", "", false},
		inNone + "namespaces/a/status":                     {"", "", "a", "status", false},
		"/apis/other.example.com/v1/namespaces/a/things/x": {"a", "a", "x", "", true},
		"/api/v1/namespaces/a":                             {"a", "", "a", "", false},
		"/api/v1/namespaces/a/status":                      {"a", "", "a", "status", false},
		"/api/v1/namespaces/a/pods/x/log":                  {"a", "a", "x", "log", true},
	} {
		info, _, err := r.Resolve("GET", []byte(target))
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if got := (wantOf(info)); got != [5]any{want.namespace, want.object, want.name, want.subresource,
			want.hasSegments} {
			t.Errorf("%s: got %v, want %v", target, got, want)
		}
	}
	if _, _, err := r.Resolve("GET", []byte(inNone+"namespaces/a/namespaces/a")); err == nil {
		t.Error("a cluster-scoped resource has a path in a namespace")
	}
}

func wantOf(i Info) [5]any {
	return [5]any{i.Namespace, i.ObjectNamespace(), i.Name, i.Subresource, i.HasNamespaceSegments()}
}

func BenchmarkResolve(b *testing.B) {
	r := testRegistry(b)
	for name, target := range map[string]string{
		"Kubernetes":    "/apis/lab.example.com/v1/namespaces/team-a/widgets/widget-1",
		"Query":         "/apis/lab.example.com/v1/namespaces/team-a/widgets?fieldManager=kubectl&fieldValidation=Strict&timeout=10s",
		"Template":      "/v2/orders/o1",
		"NotRegistered": "/api/v1/namespaces/team-a/pods/pod-1",
	} {
		b.Run(name, func(b *testing.B) {
			t := []byte(target)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Resolve("GET", t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
