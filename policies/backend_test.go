package policies

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/testutil"
)

const (
	everything = resource.StatusSubresource | resource.ScaleSubresource | resource.ResourceVersions |
		resource.GeneratedNames |
		resource.SystemMetadata | resource.Selectors | resource.DryRun | resource.Deletion | resource.ListEnvelope
	kubernetesOrders = orders + "  envelope: Kubernetes\n"
)

// What the gateway supplies on a plain backend: two presets, and what files say besides.
func TestBackend(t *testing.T) {
	annotated := func(lines ...string) string {
		text := "  annotations:\n"
		for _, l := range lines {
			text += "    backend.admission-gateway.io/" + l + "\n"
		}
		return strings.Replace(widgets, "  name: widgets.example.com\n", "  name: widgets.example.com\n"+text, 1)
	}
	backend := func(lines ...string) string { return "  backend: {" + strings.Join(lines, ", ") + "}\n" }
	for _, c := range []struct {
		name, file    string
		emulated      resource.Capabilities
		versions      resource.Versions
		concurrency   resource.Concurrency
		field         string
		unconditional bool // and creates
	}{
		{"a definition", widgets, everything &^ resource.ScaleSubresource, resource.ETagVersions, resource.Optimistic,
			"", false},
		{"a definition with settings", annotated("status: Native", "patch: Native", "generate-name: Native",
			"system-metadata: Native", "selectors: Native",
			"dry-run: Native", "deletion: Native", "list-envelope: Native", "existing-names: Emulated",
			"versions: Native", "concurrency: BestEffort"),
			resource.ExistingNames, resource.NativeVersions, resource.BestEffort, "", false},
		{"a definition on a backend without versions", annotated("versions: None", "concurrency: BestEffort"),
			everything &^ resource.ScaleSubresource, resource.NoVersions, resource.BestEffort, "", false},
		{"a definition with versions in a field", annotated("versions: Field", "version-field: spec.rev"),
			everything &^ (resource.ScaleSubresource | resource.Deletion), resource.FieldVersions, resource.Optimistic,
			"spec.rev", false},
		{"an ordinary object", orders, resource.DryRun, resource.ETagVersions, resource.Optimistic, "", true},
		{"an ordinary object with a version", orders + "  fields: {version: rev, status: state}\n",
			resource.StatusSubresource | resource.DryRun | resource.ResourceVersions,
			resource.ETagVersions, resource.Optimistic, "rev", true},
		{"an ordinary object with a scale", orders + "  scale: {specReplicasPath: .pieces, statusReplicasPath: .done}\n  statusSubresource: Disabled\n",
			resource.ScaleSubresource | resource.DryRun, resource.ETagVersions, resource.Optimistic, "", true},
		{"Kubernetes' envelope", kubernetesOrders, everything &^ resource.ScaleSubresource, resource.ETagVersions,
			resource.Optimistic, "", true},
		{"a strict API", kubernetesOrders + "  unconditionalUpdate: Refused\n  createOnUpdate: Refused\n",
			everything &^ resource.ScaleSubresource,
			resource.ETagVersions, resource.Optimistic, "", false},
		{"all native", kubernetesOrders + "  statusSubresource: Native\n" + backend("versions: Native", "scale: Native",
			"patch: Native", "generateName: Native",
			"systemMetadata: Native", "selectors: Native", "dryRun: Native", "deletion: Native",
			"listEnvelope: Native"),
			0, resource.NativeVersions, resource.Optimistic, "", true},
		{"versions in a field", kubernetesOrders + "  fields: {version: spec.rev}\n" +
			backend("versions: Field", "existingNames: Emulated") + "  concurrency: BestEffort\n",
			everything&^resource.ScaleSubresource | resource.ExistingNames, resource.FieldVersions, resource.BestEffort,
			"spec.rev", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustLoad(t, map[string]string{"a.yaml": c.file}).Registry().Resources()[0]
			if r.Backend.Emulated != c.emulated || r.Backend.Versions != c.versions ||
				r.Backend.Concurrency != c.concurrency || strings.Join(r.Fields.Version, ".") != c.field ||
				r.Writes.UnconditionalUpdate != c.unconditional || r.Writes.CreateOnUpdate != c.unconditional {
				t.Errorf("got %011b %s %s %v %v %v, want %011b %s %s %s %v", r.Backend.Emulated, r.Backend.Versions,
					r.Backend.Concurrency, r.Fields.Version, r.Writes.UnconditionalUpdate, r.Writes.CreateOnUpdate,
					c.emulated, c.versions, c.concurrency, c.field, c.unconditional)
			}
		})
	}
}

func TestBackendFindings(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\n"
	annotated := func(lines ...string) string {
		text := "  annotations:\n"
		for _, l := range lines {
			text += "    backend.admission-gateway.io/" + l + "\n"
		}
		return strings.Replace(widgets, crd, crd+text, 1)
	}
	const needs = "must not be 'None' unless the concurrency is 'BestEffort': these need writes that are pinned to a version: "
	const transition = "              size: {type: integer, default: 1}\n"
	rule := "              size: {type: integer, default: 1, x-kubernetes-validations: [{rule: self >= oldSelf, message: may not shrink}]}\n"
	native := func(names ...string) string {
		text := "  statusSubresource: Disabled\n  backend: {versions: None"
		for _, n := range names {
			text += ", " + n + ": Native"
		}
		return text + "}\n"
	}
	policy := strings.Replace(strings.Replace(policyP, "[CREATE]", "[UPDATE]", 1), "object.spec.size < 5",
		"object.size >= oldObject.size", 1)
	policy = strings.NewReplacer("apiGroups: [example.com]", "apiGroups: ['']", "apiVersions: [v1]",
		"apiVersions: [v2]", "resources: [widgets]", "resources: [orders]").Replace(policy)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"an unknown setting", map[string]string{"a.yaml": annotated("dryrun: Native")},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/dryrun]: must be one of the settings 'concurrency', 'data-maps', 'deletion', 'dry-run', 'error-format', 'error-template', 'errors', 'existing-names', " +
				"'generate-name', 'list-envelope', 'patch', 'preconditions', 'scale', 'selectors', 'status', 'system-metadata', 'version-field', 'versions'\n"},
		{"a setting in camel case", map[string]string{"a.yaml": annotated("dryRun: Native")},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/dryRun]: must be one of the settings 'concurrency', 'data-maps', 'deletion', 'dry-run', 'error-format', 'error-template', 'errors', 'existing-names', " +
				"'generate-name', 'list-envelope', 'patch', 'preconditions', 'scale', 'selectors', 'status', 'system-metadata', 'version-field', 'versions'\n"},
		{"wrong values", map[string]string{"a.yaml": annotated("patch: native", "versions: Etag", "concurrency: None")},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/patch]: Unsupported value: \"native\": supported values: 'Emulated', 'Native', 'Refused'\n" +
				"a.yaml:7: metadata.annotations[backend.admission-gateway.io/versions]: Unsupported value: \"Etag\": supported values: 'ETag', 'Field', 'Native', 'None'\n" +
				"a.yaml:8: metadata.annotations[backend.admission-gateway.io/concurrency]: Unsupported value: \"None\": supported values: 'Optimistic', 'BestEffort'\n"},
		{"no version field", map[string]string{"a.yaml": annotated("versions: Field")},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/versions]: must not be 'Field' unless `backend.admission-gateway.io/version-field` names the field\n"},
		{"a definition without versions", map[string]string{"a.yaml": annotated("versions: None")},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/versions]: " + needs +
				"status, versions, systemMetadata, deletion, patch\n"},
		{"an ordinary object without versions",
			map[string]string{"a.yaml": orders + "  fields: {status: status}\n  backend: {versions: None}\n"},
			"a.yaml:10: spec.backend.versions: " + needs + "status\n"},
		{"an ordinary object without versions that needs none", map[string]string{"a.yaml": orders + native("patch")},
			""},
		{"a transition rule",
			map[string]string{"a.yaml": strings.Replace(annotated("versions: None", "status: Native", "patch: Native",
				"system-metadata: Native",
				"deletion: Native"), transition, rule, 1)},
			"a.yaml:6: metadata.annotations[backend.admission-gateway.io/versions]: " + needs +
				"versions, rules of the schema about the stored object\n"},
		{"a policy", map[string]string{"a.yaml": orders + native("patch"), "b.yaml": policy, "c.yaml": bindingB},
			"a.yaml:10: spec.backend.versions: " + needs + "policies about the stored object\n"},
		{"creates that cannot be pinned", map[string]string{"a.yaml": orders + "  fields: {version: rev}\n  backend: {versions: Field, existingNames: Emulated}\n"},
			"a.yaml:10: spec.backend.versions: must be 'ETag', or the concurrency 'BestEffort', where the gateway emulates `existingNames`\n"},
		{"what ordinary objects cannot have", map[string]string{"a.yaml": orders + "  backend: {versions: Native, generateName: Emulated, systemMetadata: Emulated}\n"},
			"a.yaml:9: spec.backend.versions: Invalid value: must not be 'Native' unless `envelope` is 'Kubernetes'\n" +
				"a.yaml:9: spec.backend.generateName: Invalid value: must not be 'Emulated' unless `envelope` is 'Kubernetes', because only its objects have metadata\n" +
				"a.yaml:9: spec.backend.systemMetadata: Invalid value: must not be 'Emulated' unless `envelope` is 'Kubernetes', because only its objects have metadata\n"},
		{"a field of versions without the field",
			map[string]string{"a.yaml": orders + "  backend: {versions: Field}\n"},
			"a.yaml:5: spec.fields: Required value: must name the `version` where `backend.versions` is 'Field'\n"},
		{"scale paths",
			map[string]string{"a.yaml": orders + "  scale: {specReplicasPath: pieces, statusReplicasPath: '.a[0]'}\n"},
			"a.yaml:9: spec.scale.specReplicasPath: Invalid value: \"pieces\": must be member names, each behind a dot, such as '.spec.replicas'\n" +
				"a.yaml:9: spec.scale.statusReplicasPath: Invalid value: \".a[0]\": must be member names, each behind a dot, such as '.spec.replicas'\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, c.files)
			if got := text(dir, Check([]string{dir})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Every capability has a name of its own in files, in both forms.
func TestCapabilityNames(t *testing.T) {
	var all resource.Capabilities
	for _, name := range resource.CapabilityNames() {
		one := resource.CapabilityNamed(name)
		if one == 0 || all&one != 0 || camelCase(kebabCase(name)) != name {
			t.Errorf("%s is %b, and %s in annotations", name, one, kebabCase(name))
		}
		all |= one
	}
	if all != everything|resource.ExistingNames {
		t.Errorf("the names stand for %s", fmt.Sprintf("%b", all))
	}
}

// TestDataMaps: an APIResource and a definition name the fields whose keys are data.
func TestDataMaps(t *testing.T) {
	want := []resource.FieldPath{{"spec", "settings"}, {"spec", "more"}}
	for name, file := range map[string]string{
		"an APIResource": kubernetesOrders + "  dataMaps: [spec.settings, spec.more]\n",
		"a definition": strings.Replace(widgets, "  name: widgets.example.com\n",
			"  name: widgets.example.com\n  annotations: {backend.admission-gateway.io/data-maps: 'spec.settings, spec.more'}\n", 1),
	} {
		if got := mustLoad(t,
			map[string]string{"a.yaml": file}).Registry().Resources()[0].Fields.DataMaps; !reflect.DeepEqual(got,
			want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestBestEffortIsWarnedOf: the gateway keeps writers apart as far as it is one, and says so.
func TestBestEffortIsWarnedOf(t *testing.T) {
	const message = "warning: the writes to one object come one after the other in one gateway only: where several gateways run, or others write to the backend, " +
		"an update may be lost unless the backend compares If-Match with a strong ETag\n"
	for _, c := range []struct{ name, file, want string }{
		{"optimistic", kubernetesOrders, ""},
		{"ETags", kubernetesOrders + "  concurrency: BestEffort\n", "a.yaml:10: spec.concurrency: " + message},
		{"none", kubernetesOrders + "  concurrency: BestEffort\n  backend: {versions: None}\n",
			"a.yaml:10: spec.concurrency: " + message},
		{"versions in a field, which the backend compares", kubernetesOrders + "  fields: {version: spec.rev}\n  backend: {versions: Field}\n  concurrency: BestEffort\n", ""},
		{"versions of its own, which it compares", kubernetesOrders +
			"  backend: {versions: Native}\n  concurrency: BestEffort\n", ""},
		{"a definition", strings.Replace(widgets, "  name: widgets.example.com\n",
			"  name: widgets.example.com\n  annotations: {backend.admission-gateway.io/concurrency: BestEffort}\n", 1), "a.yaml:5: metadata.annotations[backend.admission-gateway.io/concurrency]: " + message},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testutil.WriteFiles(t, map[string]string{"a.yaml": c.file})
			got := ""
			for _, f := range Check([]string{dir}) {
				got += strings.TrimPrefix(f.String(), dir+"/") + "\n"
			}
			if got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}
