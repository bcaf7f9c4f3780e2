package state

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discovery is a Backend that serves the discovery API alone.
type discovery struct {
	server
	answers map[string]string
}

func (d *discovery) Send(_ context.Context, r Request) (Answer, error) {
	d.requests = append(d.requests, r.Target)
	if body, ok := d.answers[r.Target]; ok {
		return Answer{Code: 200, Body: []byte(body)}, nil
	}
	return Answer{Code: 404, Body: []byte(`{}`)}, nil
}

func TestDiscover(t *testing.T) {
	d := &discovery{answers: map[string]string{
		"/apis/example.com": `{"kind":"APIGroup","versions":[{"version":"v1"},{"version":"v2"},{"version":"v3"}]}`,
		"/apis/example.com/v1": `{"resources":[{"name":"things/status","kind":"Thing","namespaced":false},{"name":"things","kind":"Thing","namespaced":true},
			{"name":"worlds","kind":"World","namespaced":false}]}`,
		"/apis/example.com/v2": `{"resources":[{"name":"things","kind":"Thing","namespaced":true}]}`,
		"/apis/example.com/v3": `{"resources":[]}`,
	}}
	m := managerOf(t, d)
	for _, c := range []struct{ version, kind, want string }{
		{"v1", "Thing", "{things true} true <nil>"},
		{"v1", "World", "{worlds false} true <nil>"},
		{"v2", "World", "{ false} false <nil>"},
		{"v4", "Thing", "{ false} false <nil>"},
	} {
		served, found, err := m.Discover(context.Background(), d, schema.GroupVersionKind{Group: "example.com", Version: c.version, Kind: c.kind})
		if got := fmt.Sprint(served, found, err); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.version, c.kind, got, c.want)
		}
	}
	versions, err := m.Versions(context.Background(), d, schema.GroupResource{Group: "example.com", Resource: "things"})
	if got := fmt.Sprint(versions, err); got != "[v1 v2] <nil>" {
		t.Errorf("versions %s", got)
	}
	if versions, err = m.Versions(context.Background(), d, schema.GroupResource{Resource: "pods"}); fmt.Sprint(versions, err) != "[v1] <nil>" {
		t.Errorf("versions of the core group %v, %v", versions, err)
	}
	before := len(d.requests)
	_, _, _ = m.Discover(context.Background(), d, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"})
	if len(d.requests) != before {
		t.Error("what is known was asked for again")
	}
}
