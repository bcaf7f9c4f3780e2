package mutate

import (
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"

	"github.com/admission-gateway/gateway/internal/schema/schematest"
)

// practiceFiles are sets of policies as clusters have them, on widgets in place of pods.
var practiceFiles = []string{
	// The sidecar of Kubernetes' documentation, as a configuration and as a patch.
	"matchConditions: [{name: none, expression: \"!object.spec.?parts.orValue([]).exists(p, p.name == 'mesh')\"}]\nmutations:\n" +
		apply + `"Object{spec: Object.spec{parts: [Object.spec.parts{name: 'mesh', kind: 'mesh/proxy:v1'}]}}"}`,
	"matchConditions: [{name: none, expression: \"!object.spec.?parts.orValue([]).exists(p, p.name == 'mesh')\"}]\nmutations:\n" +
		patch1 + `"has(object.spec.parts) ? [JSONPatch{op: 'add', path: '/spec/parts/-', value: Object.spec.parts{name: 'mesh'}}] : [JSONPatch{op: 'add', path: '/spec/parts', value: [Object.spec.parts{name: 'mesh'}]}]"}`,
	// Labels and annotations if there are none.
	"mutations:\n" + patch1 + `"(has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}]) + [JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/by~'), value: request.userInfo.username}]"}`,
	"mutations:\n" + apply + `"Object{metadata: Object.metadata{labels: {'app.kubernetes.io/managed-by': 'gateway', 'team': namespaceObject.metadata.name}}}"}`,
	"mutations:\n" + apply + `"!has(object.metadata.labels) || !('x' in object.metadata.labels) ? Object{metadata: Object.metadata{labels: {'x': 'set'}}} : Object{}"}`,
	// Pull policies and mirrors of each item.
	"mutations:\n" + apply + `"!has(object.spec) || !has(object.spec.parts) ? Object{} : Object{spec: Object.spec{parts: object.spec.parts.filter(p, !has(p.kind)).map(p, Object.spec.parts{name: p.name, kind: p.name + ':' + string(p.weight)})}}"}`,
	"mutations:\n" + patch1 + `"lists.range(object.spec.?parts.orValue([]).size()).map(i, JSONPatch{op: 'replace', path: '/spec/parts/' + string(i) + '/weight', value: object.spec.parts[i].weight * 2})"}`,
	"mutations:\n" + patch1 + `"object.spec.?parts.orValue([]).map(p, JSONPatch{op: 'test', path: '/spec/size', value: 5})"}`,
	// Sets, atomic lists and maps.
	"mutations:\n" + apply + `"!has(object.spec) || !has(object.spec.tags) ? Object{} : Object{spec: Object.spec{tags: object.spec.tags.map(t, t + '!')}}"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/steps', value: object.spec.?steps.orValue([]) + ['last']}, JSONPatch{op: 'copy', from: '/spec/steps', path: '/spec/tags'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/box', value: object.spec.?box.orValue({}).transformMap(k, v, v + 'x')}, JSONPatch{op: 'add', path: '/spec/any', value: {}}, JSONPatch{op: 'add', path: '/spec/any/deep', value: {'a': ['b']}}, JSONPatch{op: 'move', from: '/spec/any/deep/a', path: '/spec/any/a'}]"}`,
	// What was before.
	"matchConditions: [{name: update, expression: \"request.operation == 'UPDATE'\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{color: oldObject.spec.?color.orValue('none'), ?nick: oldObject.spec.?nick}}"}`,
	"mutations:\n" + apply + `"oldObject == null ? Object{} : Object{metadata: Object.metadata{annotations: {'was': string(oldObject.?spec.?size.orValue(0))}}}"}`,
	"mutations:\n" + patch1 + `"oldObject != null && oldObject.?spec.?color.hasValue() ? [JSONPatch{op: 'add', path: '/spec/color', value: oldObject.spec.color}] : []"}`,
	"variables: [{name: grew, expression: \"oldObject != null && double(object.?spec.?size.orValue(0)) > double(oldObject.?spec.?size.orValue(0))\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{nick: variables.grew ? 'grew' : 'not'}}"}`,
	// Several, each on the result of the previous ones.
	"mutations:\n" + apply + `"Object{spec: Object.spec{color: 'a'}}"}` + "\n---\nmatchConditions: [{name: c, expression: \"object.spec.color == 'a'\"}]\nmutations:\n" + apply + `"Object{spec: Object.spec{nick: object.spec.color + 'b'}}"}` +
		"\n---\nmutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/labels', value: {'all': object.spec.color + object.spec.nick}}]"}`,
	// Writes of fields that a policy may not change, and of fields that no schema has.
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/spec/unknown', value: {'deep': [dyn(1), dyn({'er': null})]}}]"}`,
	"mutations:\n" + patch1 + `"[JSONPatch{op: 'add', path: '/status', value: {'phase': 'Ready'}}]"}`,
}

// TestPractices runs policies that change objects as clusters have them, on creates and updates, here and in
// kube-apiserver's own plugin.
func TestPractices(t *testing.T) {
	k, props := newWidgets(t)
	for _, text := range practiceFiles {
		for i, object := range widgets {
			k.same(t, props, text, object)
			t.Run("update", func(t *testing.T) {
				stored, sent := decode(t, widgets[(i+1)%len(widgets)]), decode(t, object)
				k.validator.Default(stored)
				k.validator.Default(sent)
				object, old := string(schematest.Encode(sent)), string(schematest.Encode(stored))
				policies := files(t, text)
				var hooks []mutating.PolicyHook
				for _, p := range policies {
					hooks = append(hooks, hook(p, bindingOf(p)))
				}
				want, wantErr := k.admit(sent, stored, hooks)
				got, err := admit(t, props, object, old, policies)
				compare(t, text+"\nobject "+object+"\nold "+old, got, err, want, wantErr)
			})
		}
	}
}
