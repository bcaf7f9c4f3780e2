package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// TestPolicyPatch: what patches of policies may do beyond RFC 6902.
func TestPolicyPatch(t *testing.T) {
	const object = `{"a":[1,2,3],"b":{"c":null},"m~n":1}`
	for _, c := range []struct{ patch, want string }{
		{`[{"op":"replace","path":"/b/d","value":1}]`, `{"a":[1,2,3],"b":{"c":null,"d":1},"m~n":1}`},
		{`[{"op":"replace","path":"/b/d"}]`, `{"a":[1,2,3],"b":{"c":null,"d":null},"m~n":1}`},
		{`[{"op":"add","path":"/b/d"}]`, `{"a":[1,2,3],"b":{"c":null,"d":null},"m~n":1}`},
		{`[{"op":"copy","from":"/b/x","path":"/b/d"}]`, `{"a":[1,2,3],"b":{"c":null,"d":null},"m~n":1}`},
		{`[{"op":"add","path":"/a/-1","value":4}]`, `{"a":[1,2,3,4],"b":{"c":null},"m~n":1}`},
		{`[{"op":"add","path":"/a/-4","value":0}]`, `{"a":[0,1,2,3],"b":{"c":null},"m~n":1}`},
		{`[{"op":"remove","path":"/a/-1"},{"op":"remove","path":"/a/00"}]`, `{"a":[2],"b":{"c":null},"m~n":1}`},
		{`[{"op":"remove","path":"spec/m~n"}]`, `{"a":[1,2,3],"b":{"c":null}}`},
		{`[{"op":"replace","path":"","value":{"x":1}}]`, `{"x":1}`},
		{`[{"op":"test","path":"/b/x"},{"op":"test","path":"/b/c"},{"op":"remove","path":"/a"}]`, `{"b":{"c":null},"m~n":1}`},

		{`[{"op":"test","path":"/b/c","value":null}]`, "test failed"},
		{`[{"op":"test","path":"/a/0","value":2}]`, "test failed"},
		{`[{"op":"test","path":"/a/0"}]`, "test failed"},
		{`[{"op":"remove","path":"/b/x"}]`, "JSON patch: operation 0 ('remove' at '/b/x'): member 'x' must exist"},
		{`[{"op":"remove","path":"/a"},{"op":"add","path":"/x/y","value":1}]`,
			"JSON patch: operation 1 ('add' at '/x/y'): member 'x' must exist"},
		{`[{"op":"add","path":"","value":{}}]`, "JSON patch: operation 0 ('add' at ''): the whole document may only be replaced or tested"},
		{`[{"op":"copy","from":"","path":"/x"}]`, "JSON patch: operation 0 ('copy' at '/x'): 'from': the whole document may only be replaced or tested"},
		{`[{"op":"replace","path":"","value":1}]`, "JSON patch: operation 0 ('replace' at ''): the whole document must be replaced by an object or a list"},
		{`[{"op":"add","path":"/a/x","value":1}]`, "JSON patch: operation 0 ('add' at '/a/x'): the index of a list must be a number, not less than minus its length"},
		{`[{"op":"add","path":"/a/9","value":1}]`, "JSON patch: operation 0 ('add' at '/a/9'): index 9 must be less than the length of the list, 3"},
		{`[{"op":"replace","path":"/a/-4","value":1}]`, "JSON patch: operation 0 ('replace' at '/a/-4'): the index of a list must be a number, not less than minus its length"},
		{`[{"op":"add","path":"x","value":1}]`, "JSON patch: operation 0 ('add' at 'x'): 'path' must have a '/'"},
		{`[{"op":"merge","path":"/a"}]`, "JSON patch: operation 0 ('merge' at '/a'): 'op' must be one of 'add', 'copy', 'move', 'remove', 'replace', 'test'"},
	} {
		d, p := mustParse(t, object), mustParse(t, c.patch)
		err := d.ApplyPolicyPatch(p.Root(), Limits{})
		got := string(d.AppendTo(nil))
		var failed *PatchError
		if errors.As(err, &failed) {
			if got != object {
				t.Errorf("%s: a patch that fails left %s", c.patch, got)
			}
			if got = failed.Error(); failed.Code == PatchTestFailed {
				got = "test failed"
			}
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.patch, got, c.want)
		}
	}
}

// patchWriter makes random objects and patches of them.
type patchWriter struct{ *rand.Rand }

func (w patchWriter) value(depth int) any {
	switch n := w.IntN(8); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range w.IntN(4) {
			m[w.name()] = w.value(depth - 1)
		}
		return m
	case n < 4 && depth > 0:
		l := []any{}
		for range w.IntN(4) {
			l = append(l, w.value(depth-1))
		}
		return l
	case n < 7:
		return w.IntN(3)
	}
	return w.name()
}

func (w patchWriter) name() string { return []string{"a", "b", "~", "/", "0"}[w.IntN(5)] }

func (w patchWriter) pointer() string {
	p := ""
	if w.IntN(10) == 0 {
		return p
	}
	for range 1 + w.IntN(3) {
		p += "/" + []string{"a", "b", "~0", "~1", "~", "0", "1", "-1", "-2", "-", "01", ""}[w.IntN(12)]
	}
	return p
}

func (w patchWriter) patch() []map[string]any {
	ops := []map[string]any{}
	for range 1 + w.IntN(3) {
		op := map[string]any{"op": []string{"add", "remove", "replace", "move", "copy", "test"}[w.IntN(6)],
			"path": w.pointer()}
		if w.IntN(8) != 0 {
			op["value"] = w.value(2)
		}
		if op["op"] == "move" || op["op"] == "copy" {
			op["from"] = w.pointer()
		}
		ops = append(ops, op)
	}
	return ops
}

// byLibrary applies a patch as Kubernetes' patcher of policies does.
func byLibrary(object []byte, ops []map[string]any) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	var patch jsonpatch.Patch
	for _, op := range ops {
		o := jsonpatch.Operation{}
		for key, value := range op {
			raw, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			message := json.RawMessage(raw)
			o[key] = &message
		}
		patch = append(patch, o)
	}
	return patch.Apply(object)
}

func policyPatch(t *testing.T, w patchWriter) (applied bool) {
	t.Helper()
	object, err := json.Marshal(map[string]any{"a": w.value(3), "b": w.value(3), "0": w.value(2)})
	if err != nil {
		t.Fatal(err)
	}
	ops := w.patch()
	text, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	d, p := mustParse(t, string(object)), mustParse(t, string(text))
	failure := d.ApplyPolicyPatch(p.Root(), Limits{})
	got := d.AppendTo(nil)
	want, wantErr := byLibrary(object, ops)
	if wantErr != nil && wantErr.Error()[:5] == "panic" {
		return false
	}
	var failed *PatchError
	tested := errors.As(failure, &failed) && failed.Code == PatchTestFailed
	if (failure == nil) != (wantErr == nil) || tested != errors.Is(wantErr, jsonpatch.ErrTestFailed) {
		t.Fatalf("object %s\npatch %s\ngot  %s, %v\nwant %s, %v", object, text, got, failure, want, wantErr)
	}
	if failure != nil {
		return false
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Fatalf("object %s\npatch %s\ngot  %s\nwant %s", object, text, got, want)
	}
	return true
}

// TestPolicyPatchLikeKubernetes: random patches give what the library gives by which kube-apiserver applies the patches
// of policies.
func TestPolicyPatchLikeKubernetes(t *testing.T) {
	w := patchWriter{rand.New(rand.NewPCG(1, 2))}
	applied := 0
	for range 50_000 {
		if policyPatch(t, w) {
			applied++
		}
	}
	if applied < 3000 {
		t.Errorf("only %d patches were applied", applied)
	}
}

// FuzzPolicyPatch is the same with patches that the fuzzer chooses.
func FuzzPolicyPatch(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, one, two uint64) { policyPatch(t, patchWriter{rand.New(rand.NewPCG(one, two))}) })
}
