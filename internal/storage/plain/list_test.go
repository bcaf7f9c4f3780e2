package plain

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
)

// RES-6: selectors choose from stored objects what Kubernetes' own choose from its sets of labels and fields.
func TestSelection(t *testing.T) {
	sets := []labels.Set{nil, {"a": "b"}, {"a": ""}, {"a": "c", "x.y/z": "5"}, {"x.y/z": "12", "b": "b"}}
	for _, text := range []string{"a", "!a", "a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b,)", "x.y/z>5", "x.y/z<6",
		"a,b", "a!=,!q", "a=", "b notin (b)"} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range sets {
			object := `{"metadata":{"name":"n","namespace":"s"}}`
			if set != nil {
				object = fmt.Sprintf(`{"metadata":{"name":"n","namespace":"s","labels":{%s}}}`, jsonMembers(set))
			}
			s := selection{labels: selector}
			if got, want := selects(t, &s, object), selector.Matches(set); got != want {
				t.Errorf("%s of %v: %v, want %v", text, set, got, want)
			}
		}
	}
	r := &resource.Resource{Fields: resource.Fields{Selectable: []resource.FieldPath{{"spec", "color"}, {"spec", "n"},
		{"spec", "on"}}}}
	set := fields.Set{"metadata.name": "n", "metadata.namespace": "s", "spec.color": "red", "spec.n": "3",
		"spec.on": "true"}
	const object = `{"metadata":{"name":"n"},"spec":{"color":"red","n":3,"on":true}}`
	for _, text := range []string{"metadata.name=n", "metadata.name!=n", "metadata.namespace=s", "metadata.namespace=t",
		"spec.color=red,spec.n=3", "spec.on=true",
		"spec.on!=true", "spec.color=", "spec.color!="} {
		selector, err := fields.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		s := selection{fields: selector, resource: r, namespace: "s"}
		if got, want := selects(t, &s, object), selector.Matches(set); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		bare := selection{fields: selector, resource: r, namespace: "s"}
		if got, want := selects(t, &bare, `{}`),
			selector.Matches(fields.Set{"metadata.name": "", "metadata.namespace": "s", "spec.color": "", "spec.n": "",
				"spec.on": ""}); got != want {
			t.Errorf("%s of an object with nothing: %v, want %v", text, got, want)
		}
	}
}

func selects(t *testing.T, s *selection, object string) bool {
	t.Helper()
	d, err := document.Parse([]byte(object), document.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	return s.selects(d.Root())
}

func jsonMembers(set labels.Set) (s string) {
	for key, value := range set {
		if s != "" {
			s += ","
		}
		s += fmt.Sprintf("%q:%q", key, value)
	}
	return s
}

// Pages never repeat an item and never leave one out, while others come and go.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second []string
		page, rest    string
		expired       bool
	}{
		{"sorted", []string{"a", "b", "c"}, []string{"a", "b", "c"}, "[a b]", "[c]", false},
		{"sorted, one is gone", []string{"a", "b", "c"}, []string{"a", "c"}, "[a b]", "[c]", false},
		{"sorted, one has come", []string{"a", "b", "d"}, []string{"a", "b", "c", "d"}, "[a b]", "[c d]", false},
		{"sorted no more", []string{"a", "b", "d"}, []string{"b", "a", "d"}, "[a b]", "", true},
		{"in another order", []string{"c", "a", "b"}, []string{"c", "a", "b"}, "[c a]", "[b]", false},
		{"in another order, one is gone", []string{"c", "a", "b"}, []string{"c", "b"}, "[c a]", "", true},
	} {
		r := &resource.Resource{Backend: resource.Backend{Versions: resource.NativeVersions}}
		list := func(l *listPass, names []string) (string, error) {
			l.resource, l.names = r, []string{}
			for _, name := range names {
				d, err := document.Parse(fmt.Appendf(nil, `{"metadata":{"name":%q,"namespace":"s"}}`, name),
					document.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				_ = l.take(d.Root()) // what is left out is not in the names
				d.Release()
			}
			_, err := l.appendFoot(nil)
			return fmt.Sprint(l.names), err
		}
		var one, two listPass
		one.options.Limit, two.options.Limit = 2, 10
		page, err := list(&one, c.first)
		if err != nil || page != c.page {
			t.Errorf("%s: page %s, %v, want %s", c.name, page, err, c.page)
		}
		if err := two.after.read(one.last.token()); err != nil {
			t.Fatal(err)
		}
		two.skipping = true
		rest, err := list(&two, c.second)
		if (err != nil) != c.expired || err == nil && rest != c.rest {
			t.Errorf("%s: rest %s, %v, want %s", c.name, rest, err, c.rest)
		}
	}
}
