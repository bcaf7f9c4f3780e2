package gatekeeper

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/open-policy-agent/gatekeeper/v3/apis/mutations/unversioned"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/reader"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/mutators"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/mutation/types"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mutatorOf makes a mutator of Gatekeeper's.
func mutatorOf(u *unstructured.Unstructured) (types.Mutator, error) {
	object, err := reader.ToStructured(scheme, u)
	if err != nil {
		return nil, err
	}
	switch u.GetKind() {
	case "Assign":
		into := &unversioned.Assign{}
		if err := scheme.Convert(object, into, nil); err != nil {
			return nil, err
		}
		return mutators.MutatorForAssign(into)
	case "AssignMetadata":
		into := &unversioned.AssignMetadata{}
		if err := scheme.Convert(object, into, nil); err != nil {
			return nil, err
		}
		return mutators.MutatorForAssignMetadata(into)
	case "ModifySet":
		into := &unversioned.ModifySet{}
		if err := scheme.Convert(object, into, nil); err != nil {
			return nil, err
		}
		return mutators.MutatorForModifySet(into)
	}
	into := &unversioned.AssignImage{}
	if err := scheme.Convert(object, into, nil); err != nil {
		return nil, err
	}
	return mutators.MutatorForAssignImage(into)
}

// randomMutator writes a mutator of objects of a kind. Locations are of the objects that randomObject makes, or close.
func randomMutator(r *rand.Rand, kind string, i int) string {
	applyTo := "applyTo: [{groups: [m.example.com], versions: [v1], kinds: [" + kind + "]" +
		pick(r, "", "", ", operations: [CREATE]", ", operations: [UPDATE, CREATE]", ", operations: ['*']") + "}]"
	match := ""
	if r.IntN(3) == 0 {
		match = ", match: " + randomMatch(r)
	}
	name := fmt.Sprintf("%s-%d", strings.ToLower(kind), i)
	manifest := func(version, of, spec string) string {
		return fmt.Sprintf("apiVersion: mutations.gatekeeper.sh/%s\nkind: %s\nmetadata: {name: %s}\nspec: {%s%s}\n", version, of, name, spec, match)
	}
	value := pick(r, "value: x", "value: why", "value: {p: q}", "value: [x]", "value: true",
		"fromMetadata: {field: name}", "fromMetadata: {field: namespace}")
	tests := ""
	test := func(paths ...string) string {
		if r.IntN(3) > 0 {
			return ""
		}
		return ", pathTests: [{subPath: '" + pick(r, paths...) + "', condition: " +
			pick(r, "MustExist", "MustNotExist") + "}]"
	}
	switch r.IntN(7) {
	case 0:
		tests = test("spec", "spec.a")
		return manifest("v1", "Assign", applyTo+", location: spec.a, parameters: {assign: {"+value+"}"+tests+"}")
	case 1:
		tests = test("spec.o", "spec.o.deep", "spec.o.deep.er")
		return manifest("v1beta1", "Assign", applyTo+", location: spec.o.deep.er, parameters: {assign: {"+value+"}"+
			tests+"}")
	case 2:
		key := pick(r, "'*'", "x", "y", "z", "'quo ted'")
		path := `spec.items[name: ` + strings.Trim(key, "'") + `]`
		if key == "'quo ted'" {
			path = `spec.items[name: "quo ted"]`
		}
		tests = test("spec.items", path, path+".image")
		return manifest("v1", "Assign", applyTo+", location: '"+path+"."+pick(r, "image", "pull")+
			"', parameters: {assign: {"+value+"}"+strings.ReplaceAll(tests, path+".image", path)+"}")
	case 3:
		key := pick(r, "x", "w")
		return manifest("v1", "Assign", applyTo+", location: 'spec.items[name: "+key+
			"]', parameters: {assign: {value: {name: "+key+", new: 'yes'}}}")
	case 4:
		tests = test("spec", "spec.tags")
		return manifest("v1", "ModifySet", applyTo+", location: "+pick(r, "spec.tags", "'spec.items[name: *].args'",
			"spec.more.tags")+", parameters: {operation: "+pick(r, "merge", "prune")+", values: {fromList: "+
			pick(r, "[a, b]", "[c]", "[{k: v}]", "[]")+"}"+strings.ReplaceAll(tests, "spec.tags", "spec")+"}")
	case 5:
		return manifest("v1", "AssignMetadata", "location: metadata."+pick(r, "labels", "annotations")+"."+
			pick(r, "tier", `"example.com/a"`, "n")+", parameters: {assign: {"+
			pick(r, "value: set", "fromMetadata: {field: name}")+"}}")
	}
	return manifest("v1alpha1", "AssignImage", applyTo+", location: 'spec.items[name: "+pick(r, "*", "x")+
		"].image', parameters: {"+
		pick(r, "assignTag: ':v2'", "assignDomain: r.example.com",
			"assignDomain: r.example.com, assignPath: some/where", "assignTag: '@sha256:"+strings.Repeat("0a", 32)+"'")+
		"}")
}

// randomObject is an object that mutators change, or cannot.
func randomObject(r *rand.Rand, kind string) map[string]any {
	spec := map[string]any{}
	maybe := func(name string, values ...any) {
		if r.IntN(2) == 0 {
			spec[name] = values[r.IntN(len(values))]
		}
	}
	maybe("a", "x", "why", map[string]any{"p": "q"}, 5, nil)
	maybe("o", map[string]any{}, map[string]any{"deep": map[string]any{"er": "why", "n": 1}},
		map[string]any{"deep": map[string]any{}}, map[string]any{"deep": "text"})
	maybe("items", []any{}, []any{map[string]any{"name": "x", "image": "nginx"}},
		[]any{map[string]any{"name": "x", "image": "a.b:80/c:1"}, map[string]any{"name": "y", "args": []any{"a"}}},
		[]any{map[string]any{"image": "library/busy:1"},
			map[string]any{"name": "quo ted", "image": "localhost/x@sha256:00"}})
	maybe("tags", []any{"a"}, []any{}, []any{"c", "a", map[string]any{"k": "v"}}, "text")
	maybe("more", map[string]any{})
	metadata := map[string]any{"name": pick(r, "web", "db"), "namespace": pick(r, "team-a", "kube-system")}
	if r.IntN(2) == 0 {
		metadata["labels"] = map[string]any{"tier": pick(r, "prod", "dev")}
	}
	return map[string]any{"apiVersion": "m.example.com/v1", "kind": kind, "metadata": metadata, "spec": spec}
}

// normal is a value as JSON has it.
func normal(t *testing.T, raw []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return value
}

// TestMutation: mutators make the same of the same objects, or fail for the same. Sets of mutators match kinds of their
// own, so that one gateway has them all.
func TestMutation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	system := mutation.NewSystem(mutation.SystemOpts{})
	var files strings.Builder
	const sets = 60
	for set := range sets {
		kind := fmt.Sprintf("Thing%d", set)
		for i := range 1 + r.IntN(3) {
			text := randomMutator(r, kind, i)
			objects := objectsOf(t, text)
			m, err := mutatorOf(objects[0])
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			// Of AssignMetadata there is one at most for each set, which matches all objects; conflicts are refused by
			// the gateway.
			if err := system.Upsert(m); err != nil {
				if err := system.Remove(m.ID()); err != nil {
					t.Fatal(err)
				}
				continue
			}
			files.WriteString("---\n" + text)
		}
	}
	g := start(t, map[string]string{"mutators.yaml": files.String()})
	addNamespaces(g)
	changed, failed := 0, 0
	for range 1000 {
		kind := fmt.Sprintf("Thing%d", r.IntN(sets))
		object := randomObject(r, kind)
		namespace := object["metadata"].(map[string]any)["namespace"].(string)
		q := &request{object: object, namespace: namespace, path: "/apis/m.example.com/v1/namespaces/" + namespace +
			"/" + strings.ToLower(kind) + "s"}
		operation := admissionv1.Create
		if r.IntN(3) == 0 {
			operation = admissionv1.Update
			old := (&unstructured.Unstructured{Object: normal(t, encoded(object)).(map[string]any)}).DeepCopy()
			old.SetResourceVersion("1")
			q.old = old.Object
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(encoded(object)); err != nil {
			t.Fatal(err)
		}
		mutated, err := system.Mutate(context.Background(), &types.Mutable{Object: u, Namespace: namespaceOf(namespace),
			Source: types.SourceTypeOriginal, Operation: operation})
		got := g.send(t, q)
		if err != nil {
			failed++
			if got.code != 500 || !strings.HasPrefix(got.message,
				`admission webhook "mutation.gatekeeper.sh" denied the request: `) || got.written != nil {
				t.Errorf("%s\ngot  %d %s, written %s\nwant the failure %v", encoded(object), got.code, got.message,
					got.written, err)
			}
			continue
		}
		if mutated {
			changed++
		}
		if got.code >= 400 {
			t.Errorf("%s\ngot  %d %s\nwant %s", encoded(object), got.code, got.message, encoded(u.Object))
			continue
		}
		written := normal(t, got.written)
		if q.old != nil {
			delete(written.(map[string]any)["metadata"].(map[string]any), "resourceVersion") // the gateway pins updates
		}
		if want := normal(t, encoded(u.Object)); !reflect.DeepEqual(written, want) {
			t.Errorf("%s %s\ngot  %s\nwant %s", operation, encoded(object), got.written, encoded(want))
		}
	}
	if changed < 200 || failed < 50 {
		t.Errorf("Gatekeeper changed %d objects and failed for %d, which tells too little", changed, failed)
	}
}
