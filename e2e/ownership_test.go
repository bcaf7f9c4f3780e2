package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/e2e/apiserver"
)

// owned has the parts of an object that say who owns its fields.
type owned struct {
	Metadata struct {
		ResourceVersion string
		Labels          map[string]string
		ManagedFields   []struct {
			Manager, Operation string
			FieldsV1           map[string]any
		}
	}
}

// owners are the managers with the fields that they own.
func (o *owned) owners() []string {
	var lines []string
	for _, m := range o.Metadata.ManagedFields {
		lines = append(lines, m.Manager+" "+m.Operation+": "+strings.Join(leaves("", m.FieldsV1), " "))
	}
	slices.Sort(lines)
	return lines
}

// leaves are the fields of a set, as paths.
func leaves(at string, set map[string]any) []string {
	var paths []string
	for key, below := range set {
		members, _ := below.(map[string]any)
		key = strings.TrimPrefix(key, "f:")
		switch {
		case key == ".":
		case len(members) == 0:
			paths = append(paths, at+key)
		default:
			paths = append(paths, leaves(at+key+".", members)...)
		}
	}
	slices.Sort(paths)
	return paths
}

// What policies set has no owner if the API server's own admission sets it, and to the
// manager of the write that set it where the gateway does. Nothing else differs, and no applier is
// refused for it (RW-3).
func TestOwnership(t *testing.T) {
	through := startGateway(t, "testdata/stamping.yaml")
	native := server.HTTP + "/apis/e2e.example.com/v1/namespaces/" + apiserver.StampedNamespace + "/widgets"
	const create = "application/json"
	widget := func(name, members string) string {
		return `{"apiVersion":"e2e.example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"` + members + `}`
	}
	for _, step := range []struct {
		name, method, path, contentType, body string
		code                                  int
		native, gateway                       []string
	}{
		{
			"an apply creates", "PATCH", "/owned?fieldManager=m", applyPatch,
			widget("owned", `,"labels":{"app":"web"}},"spec":{"parts":[{"name":"m"}]}`), 201,
			[]string{`m Apply: metadata.labels.app spec.parts.k:{"name":"m"}.name`},
			[]string{`m Apply: metadata.labels.app metadata.labels.parts metadata.labels.team spec.parts.k:{"name":"m"}.name`},
		},
		{
			"another applier changes what policies set", "PATCH", "/owned?fieldManager=n", applyPatch,
			widget("owned", `},"spec":{"parts":[{"name":"n"}]}`), 200,
			[]string{`m Apply: metadata.labels.app spec.parts.k:{"name":"m"}.name`,
				`n Apply: spec.parts.k:{"name":"n"}.name`},
			[]string{`m Apply: metadata.labels.app metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.parts spec.parts.k:{"name":"n"}.name`},
		},
		{
			"the first one applies the same again", "PATCH", "/owned?fieldManager=m", applyPatch,
			widget("owned", `,"labels":{"app":"web"}},"spec":{"parts":[{"name":"m"}]}`), 200,
			[]string{`m Apply: metadata.labels.app spec.parts.k:{"name":"m"}.name`,
				`n Apply: spec.parts.k:{"name":"n"}.name`},
			[]string{`m Apply: metadata.labels.app metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.parts spec.parts.k:{"name":"n"}.name`},
		},
		{
			"a conflict over what is asked for", "PATCH", "/owned?fieldManager=n", applyPatch,
			widget("owned", `,"labels":{"app":"db"}},"spec":{"parts":[{"name":"n"},{"name":"n2"}]}`), 409,
			[]string{`m Apply: metadata.labels.app spec.parts.k:{"name":"m"}.name`,
				`n Apply: spec.parts.k:{"name":"n"}.name`},
			[]string{`m Apply: metadata.labels.app metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.parts spec.parts.k:{"name":"n"}.name`},
		},
		{
			"forced", "PATCH", "/owned?fieldManager=n&force=true", applyPatch,
			widget("owned", `,"labels":{"app":"db"}},"spec":{"parts":[{"name":"n"}]}`), 200,
			[]string{`m Apply: spec.parts.k:{"name":"m"}.name`,
				`n Apply: metadata.labels.app spec.parts.k:{"name":"n"}.name`},
			[]string{`m Apply: metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.app metadata.labels.parts spec.parts.k:{"name":"n"}.name`},
		},
		{
			"a merge patch that changes nothing of policies", "PATCH", "/owned?fieldManager=editor", mergePatch,
			`{"spec":{"image":"b"}}`, 200,
			[]string{`editor Update: spec.image`, `m Apply: spec.parts.k:{"name":"m"}.name`,
				`n Apply: metadata.labels.app spec.parts.k:{"name":"n"}.name`},
			[]string{`editor Update: spec.image`, `m Apply: metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.app metadata.labels.parts spec.parts.k:{"name":"n"}.name`},
		},
		{
			"a JSON patch that does", "PATCH", "/owned?fieldManager=editor", jsonPatch,
			`[{"op":"add","path":"/spec/parts/-","value":{"name":"e"}}]`, 200,
			[]string{`editor Update: spec.image spec.parts.k:{"name":"e"}.name`,
				`m Apply: spec.parts.k:{"name":"m"}.name`,
				`n Apply: metadata.labels.app spec.parts.k:{"name":"n"}.name`},
			[]string{`editor Update: metadata.labels.parts spec.image spec.parts.k:{"name":"e"}.name`,
				`m Apply: metadata.labels.team spec.parts.k:{"name":"m"}.name`,
				`n Apply: metadata.labels.app spec.parts.k:{"name":"n"}.name`},
		},
		{
			"an applier after that", "PATCH", "/owned?fieldManager=n", applyPatch,
			widget("owned", `,"labels":{"app":"db"}},"spec":{"parts":[{"name":"n"},{"name":"n2"}]}`), 200,
			[]string{`editor Update: spec.image spec.parts.k:{"name":"e"}.name`, `m Apply: spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.app spec.parts.k:{"name":"n"}.name spec.parts.k:{"name":"n2"}.name`},
			[]string{`editor Update: spec.image spec.parts.k:{"name":"e"}.name`, `m Apply: metadata.labels.team spec.parts.k:{"name":"m"}.name`, `n Apply: metadata.labels.app metadata.labels.parts spec.parts.k:{"name":"n"}.name spec.parts.k:{"name":"n2"}.name`},
		},
		{
			"a create", "POST", "?fieldManager=cli", create, widget("made", `},"spec":{"image":"a"}`), 201,
			[]string{`cli Update: spec.image spec.replicas`},
			[]string{`cli Update: metadata.labels.parts metadata.labels.team spec.image spec.replicas`},
		},
		{
			"an update that changes nothing of policies", "PUT", "/made?fieldManager=other", create, widget("made", `,"labels":{"team":"a","parts":"0"},"resourceVersion":"$RV"},"spec":{"image":"b"}`), 200,
			[]string{`cli Update: spec.replicas`, `other Update: spec.image`},
			[]string{`cli Update: metadata.labels.parts metadata.labels.team spec.replicas`,
				`other Update: spec.image`},
		},
		{
			"an update that leaves out what policies set", "PUT", "/made?fieldManager=other", create,
			widget("made", `,"resourceVersion":"$RV"},"spec":{"image":"b","parts":[{"name":"x"}]}`), 200,
			[]string{`cli Update: spec.replicas`, `other Update: spec.image spec.parts.k:{"name":"x"}.name`},
			[]string{`cli Update: metadata.labels.team spec.replicas`,
				`other Update: metadata.labels.parts spec.image spec.parts.k:{"name":"x"}.name`},
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			var bodies, labels [2]string
			for i, side := range []struct {
				collection, stored string
				want               []string
			}{{native, native, step.native}, {through.url + widgets, server.HTTP + widgets, step.gateway}} {
				name := "owned"
				if strings.Contains(step.body, `"made"`) {
					name = "made"
				}
				body := step.body
				if strings.Contains(body, "$RV") {
					body = strings.Replace(body, "$RV", ownedAt(t, side.stored+"/"+name).Metadata.ResourceVersion, 1)
				}
				a := ask(t, step.method, side.collection+step.path, step.contentType, body)
				if a.code != step.code {
					t.Errorf("%s answered %d %s", side.collection, a.code, a.body)
				}
				stored := ownedAt(t, side.stored+"/"+name)
				bodies[i], labels[i] = a.body, fmt.Sprint(stored.Metadata.Labels)
				if got := stored.owners(); !slices.Equal(got, side.want) {
					t.Errorf("%s: owned by\n%s\nwant\n%s", side.collection, strings.Join(got, "\n"),
						strings.Join(side.want, "\n"))
				}
			}
			if labels[0] != labels[1] {
				t.Errorf("the labels are %s without and %s with the gateway", labels[0], labels[1])
			}
			if step.code == http.StatusConflict && bodies[0] != bodies[1] {
				t.Errorf("the conflict is told as %s without and %s with the gateway", bodies[0], bodies[1])
			}
		})
	}
}

func ownedAt(t *testing.T, url string) (o owned) {
	t.Helper()
	if err := json.Unmarshal([]byte(ask(t, "GET", url, "", "").body), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// An apply that creates, asked for as a dry run, is answered as by the server: without a version,
// which nothing stored has.
func TestDryRunOfCreation(t *testing.T) {
	through := startGateway(t, "testdata/mutating.yaml")
	const body = "apiVersion: e2e.example.com/v1\nkind: Widget\nmetadata: {name: never, labels: {team: a}}\nspec: {replicas: 2}\n"
	for _, url := range []string{server.HTTP, through.url} {
		a := ask(t, "PATCH", url+widgets+"/never?fieldManager=cli&dryRun=All", applyPatch, body)
		var o owned
		if err := json.Unmarshal([]byte(a.body), &o); err != nil || a.code != http.StatusCreated ||
			o.Metadata.ResourceVersion != "" {
			t.Errorf("%s answered %d %s", url, a.code, a.body)
		}
	}
	if a := ask(t, "GET", server.HTTP+widgets+"/never", "", ""); a.code != http.StatusNotFound {
		t.Errorf("it is stored: %s", a.body)
	}
}
