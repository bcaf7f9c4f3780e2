package resource

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestVerbsAreKubernetes compares the table of verbs with how Kubernetes reads the methods.
func TestVerbsAreKubernetes(t *testing.T) {
	factory := &request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}
	verbOf := func(method, path, query string) string {
		info, err := factory.NewRequestInfo(&http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}})
		if err != nil {
			t.Fatal(err)
		}
		return info.Verb
	}
	const collection, object = "/apis/apps/v1/namespaces/a/deployments", "/apis/apps/v1/namespaces/a/deployments/web"
	for v := range Verbs {
		row := &verbs[v]
		if VerbNamed(row.name) != v || row.name != strings.ToLower(row.name) || len(row.methods) == 0 {
			t.Errorf("%d: %+v must have a name of its own, and methods", v, row)
			continue
		}
		query := ""
		if row.lasts {
			query = "watch=true"
		}
		for _, method := range row.methods {
			if v.OfResource() && verbOf(method, object, "") == "" {
				continue // Kubernetes does not know the method
			}
			switch {
			case row.object:
				if got := verbOf(method, object, query); got != row.name {
					t.Errorf("%s of an object is '%s' to Kubernetes, not '%s'", method, got, row.name)
				}
			case row.collection:
				if got := verbOf(method, collection, query); got != row.name {
					t.Errorf("%s of a collection is '%s' to Kubernetes, not '%s'", method, got, row.name)
				}
			}
			if got := verbOf(method, "/healthz", ""); got != methodOf(method).verbs().path.String() {
				t.Errorf("%s of no resource is '%s' to Kubernetes, not '%s'", method, got,
					methodOf(method).verbs().path)
			}
		}
	}
}

// TestVerbsAreWhole: what the columns of a row say goes together.
func TestVerbsAreWhole(t *testing.T) {
	for v := range Verbs {
		row := &verbs[v]
		switch {
		case row.reads && row.operation != 0, row.isSafe && row.operation != 0:
			t.Errorf("%s is admitted, and reads", v)
		case (row.operation != 0) != (row.options != ""):
			t.Errorf("%s is admitted without options, or has options and is not admitted", v)
		case row.reads && row.object || row.reads && row.collection:
			if row.schema != SchemaOfReads {
				t.Errorf("%s reads objects of another schema", v)
			}
		case !v.OfResource() && (row.operation != 0 || row.hasBody || row.selects || row.everywhere || row.part):
			t.Errorf("%s is none of a resource, and has an operation, a body or objects", v)
		}
		if row.variant != VerbOther &&
			(verbs[row.variant].object != row.object || verbs[row.variant].collection != row.collection) {
			t.Errorf("%s is no variant of %s", v, row.variant)
		}
	}
	if VerbOther.OfResource() || VerbOther.Operation() != 0 || VerbOther.String() != "" || VerbOther.Method() != "" ||
		VerbOther.Documented() != VerbOther {
		t.Error("VerbOther says something")
	}
}

func TestMethodsHaveVerbs(t *testing.T) {
	for m := range eachMethod {
		if methodOf(methods[m]) != m || m.verbs().path == VerbOther {
			t.Errorf("%s is method %d, and '%s' of a path", methods[m], methodOf(methods[m]), m.verbs().path)
		}
	}
	for _, name := range []string{"", "get", "TRACE", "PURGE", "CONNECT"} {
		if m := methodOf(name); m != methodOther || VerbOf(name, true) != VerbOther ||
			VerbOf(name, false) != VerbOther {
			t.Errorf("'%s' is a method: %d", name, m)
		}
	}
	for _, c := range []struct {
		method   string
		ofObject bool
		want     Verb
	}{
		{"GET", true, VerbGet}, {"GET", false, VerbList}, {"HEAD", true, VerbOther}, {"POST", false, VerbCreate},
		{"POST", true, VerbCreate},
		{"PUT", true, VerbUpdate}, {"PATCH", true, VerbPatch}, {"DELETE", true, VerbDelete},
		{"DELETE", false, VerbDeleteCollection},
		{"OPTIONS", true, VerbOther},
	} {
		if got := VerbOf(c.method, c.ofObject); got != c.want {
			t.Errorf("%s %t: %s, want %s", c.method, c.ofObject, got, c.want)
		}
	}
}

func TestVerbSet(t *testing.T) {
	for _, c := range []struct {
		names []string
		has   []Verb
		lacks []Verb
	}{
		{nil, []Verb{VerbOther, VerbGet, VerbOptions}, nil},
		{[]string{"get", "*"}, []Verb{VerbOther, VerbWatch}, nil},
		{[]string{"get", "options"}, []Verb{VerbGet, VerbOptions}, []Verb{VerbOther, VerbList, VerbPut}},
		{[]string{"none"}, nil, []Verb{VerbOther, VerbGet}},
	} {
		s := NewVerbSet(c.names...)
		for _, v := range c.has {
			if !s.Has(v) {
				t.Errorf("%v lacks '%s'", c.names, v)
			}
		}
		for _, v := range c.lacks {
			if s.Has(v) {
				t.Errorf("%v has '%s'", c.names, v)
			}
		}
	}
}

// TestOperationsOfVerbs: what kube-apiserver's handlers admit the requests of each verb as.
func TestOperationsOfVerbs(t *testing.T) {
	want := map[Verb]string{
		VerbCreate: "CREATE", VerbUpdate: "UPDATE", VerbPatch: "UPDATE", VerbDelete: "DELETE",
		VerbDeleteCollection: "DELETE",
	}
	for v := range Verbs {
		if o := v.Operation(); o != 0 && o.String() != want[v] || o == 0 && want[v] != "" {
			t.Errorf("%s is admitted as %s, want %s", v, o, want[v])
		}
	}
}
