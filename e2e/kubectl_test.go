package e2e

import (
	"strings"
	"testing"
)

const manifest = `apiVersion: e2e.example.com/v1
kind: Widget
metadata: {name: NAME, namespace: team-a}
spec: {replicas: 2, image: a, parts: [{name: left, size: 1}]}
`

// kubectl works through the gateway as it does without it; policies decide.
func TestKubectl(t *testing.T) {
	through := startGateway(t, "testdata/policies.yaml")
	const denied = "denied request: replicas must be less than or equal to 5"
	object := strings.ReplaceAll(manifest, "NAME", "kubectl")
	for _, c := range []struct {
		args  string
		stdin string
		want  string // part of what it prints
		fails bool
	}{
		{args: "apply -f -", stdin: object, want: "widget.e2e.example.com/kubectl created"},
		{args: "apply -f -", stdin: object, want: "widget.e2e.example.com/kubectl unchanged"},
		{args: "apply -f -", stdin: strings.Replace(object, "replicas: 2", "replicas: 3", 1),
			want: "widget.e2e.example.com/kubectl configured"},
		{args: "apply -f -", stdin: strings.Replace(object, "replicas: 2", "replicas: 9", 1), want: denied,
			fails: true},
		// 1: there are differences
		{args: "diff -f -", stdin: strings.Replace(object, "replicas: 2", "replicas: 4", 1), want: "+  replicas: 4",
			fails: true},
		{args: "apply --server-side --force-conflicts -f -", stdin: object,
			want: "widget.e2e.example.com/kubectl serverside-applied"},
		{args: "apply --server-side --force-conflicts -f -",
			stdin: strings.Replace(object, "replicas: 2", "replicas: 9", 1), want: denied, fails: true},
		{args: "get widgets kubectl -n team-a", want: "NAME      REPLICAS\nkubectl   2"},
		{args: "get wd kubectl -n team-a -o jsonpath={.spec.replicas}", want: "2"},
		{args: "patch widget kubectl -n team-a --type merge -p {\"spec\":{\"image\":\"b\"}}", want: "patched"},
		{args: "patch widget kubectl -n team-a --type merge -p {\"spec\":{\"replicas\":7}}", want: denied, fails: true},
		{args: "patch widget kubectl -n team-a --type json -p [{\"op\":\"replace\",\"path\":\"/spec/image\",\"value\":\"c\"}]", want: "patched"},
		{args: "label widget kubectl -n team-a tier=front", want: "labeled"},
		{args: "annotate widget kubectl -n team-a note=x", want: "annotated"},
		{args: "scale widget kubectl -n team-a --replicas 4", want: "scaled"},
		{args: "explain widget.spec.replicas", want: "FIELD: replicas"},
		{args: "replace -f -", stdin: object, want: "replaced"},
		{args: "delete widget kubectl -n team-a --cascade=background", want: "deleted"},
		{args: "get widget kubectl -n team-a", want: "NotFound", fails: true},
	} {
		out, ok := kubectl(t, through.url, c.stdin, strings.Fields(c.args)...)
		if !strings.Contains(out, c.want) || ok == c.fails {
			t.Errorf("kubectl %s\nsucceeded: %v, printed:\n%s\nwant %q", c.args, ok, out, c.want)
		}
	}
}
