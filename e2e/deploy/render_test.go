package deploy

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	bases    = "../../deploy/kustomize"
	helm     = "../../deploy/helm"
	examples = helm + "/examples"
)

// kustomized are the ways in which the folders are used, as kustomizations that refer to them.
var kustomized = map[string]string{
	"ingress":    "resources: [kustomize/ingress]\ncomponents: [kustomize/monitoring]\n",
	"controller": "resources: [kustomize/controller]\ncomponents: [kustomize/monitoring]\nnamespace: gateway-system\n",
	"apiserver":  "resources: [kustomize/apiserver]\ncomponents: [kustomize/monitoring]\nnamespace: gateway-system\n",
	"sidecar": "resources: [api.yaml]\ncomponents: [kustomize/sidecar]\n" +
		"configMapGenerator:\n- {name: gateway-policies, files: [kustomize/ingress/policies.yaml], options: {disableNameSuffixHash: true}}\n",
}

// api is a Deployment of the user's own, which gets a sidecar.
const api = `apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, labels: {admission-gateway.io/sidecar: enabled}}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: orders, image: orders}]}
`

// kustomize renders a kustomization that refers to copies of the folders, as users have them elsewhere.
func kustomize(t *testing.T, kustomization string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "kustomize"), os.DirFS(bases)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "api.yaml"), api)
	for from, to := range map[string]string{"gateway.yaml": "gateway.yaml", "policies.yaml": "limits.yaml"} {
		if err := os.Link(filepath.Join(dir, "kustomize/ingress", from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "kustomization.yaml"), kustomization)
	var stderr bytes.Buffer
	command := exec.Command(kubectl, "kustomize", dir)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if stderr.Len() > 0 {
		t.Errorf("kustomize warns: %s", &stderr)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// template renders the chart with the values, as `helm template gateway` does.
func template(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = chartutil.KubeVersion{Version: "v" + latest + ".0", Major: "1",
		Minor: strings.TrimPrefix(latest, "1.")}
	return templateFor(t, values, cluster)
}

// templateFor renders it for a cluster.
func templateFor(t *testing.T, values map[string]any, cluster *chartutil.Capabilities) (string, error) {
	t.Helper()
	c, err := loader.Load(helm)
	if err != nil {
		t.Fatal(err)
	}
	if values["mode"] == "Sidecar" {
		c, values = asDependency(t, c), map[string]any{"gateway": values}
	}
	all, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: "gateway", Namespace: "gateway-system", IsInstall: true}, cluster)
	if err != nil {
		return "", err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Fprintf(&b, "---\n# Source: %s\n%s\n", name, files[name])
		}
	}
	return b.String(), nil
}

// asDependency returns the chart of an API that has the gateway's chart as a dependency, and its sidecar in its Pods.
func asDependency(t *testing.T, sidecar *chart.Chart) *chart.Chart {
	t.Helper()
	deployment := strings.Replace(api, "    spec: {containers: [{name: orders, image: orders}]}\n", `    spec:
      initContainers:
        {{- include "gateway.sidecar" .Subcharts.gateway | nindent 8 }}
      containers: [{name: orders, image: orders}]
      volumes:
        {{- include "gateway.sidecar.volumes" .Subcharts.gateway | nindent 8 }}
`, 1)
	c := &chart.Chart{
		Metadata: &chart.Metadata{APIVersion: "v2", Name: "orders", Version: "1.0.0",
			Dependencies: []*chart.Dependency{{Name: "gateway", Version: "*"}}},
		Templates: []*chart.File{{Name: "templates/deployment.yaml", Data: []byte(deployment)}},
	}
	c.AddDependency(sidecar)
	return c
}

// example returns the values of a file in examples.
func example(t *testing.T, name string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValuesFile(filepath.Join(examples, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// rendered returns what both ways render of an example. Only Helm has a test of what is installed.
func rendered(t *testing.T, name string) map[string]string {
	t.Helper()
	values := example(t, name)
	values["helmTest"] = map[string]any{"enabled": false}
	chart, err := template(t, values)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"kustomize": kustomize(t, kustomized[name]), "helm": chart}
}

// labelled is a kustomization that adds labels, to selectors too.
const labelled = "resources: [kustomize/ingress]\ncomponents: [kustomize/monitoring]\n" +
	"labels:\n- {pairs: {app.kubernetes.io/instance: orders}, includeSelectors: true}\n"

// renderings returns all that is rendered, by the example and the way.
func renderings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"labelled/kustomize": kustomize(t, labelled),
		"page/kustomize": kustomize(t, shown(t, "By kustomize"))}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(shown(t, "By Helm")), &values); err != nil {
		t.Fatal(err)
	}
	text, err := template(t, values)
	if err != nil {
		t.Fatal(err)
	}
	all["page/helm"] = text
	for name := range kustomized {
		for way, text := range rendered(t, name) {
			all[name+"/"+way] = text
		}
	}
	return all
}

// shown returns the YAML below a heading of docs/install.md. It refers to the folders in the repository of their own;
// here they are beside it, and the namespace is the test's.
func shown(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	_, block, opened := strings.Cut(section, "```yaml\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !opened || !closed {
		t.Fatalf("docs/install.md shows no YAML under %q", heading)
	}
	return strings.NewReplacer("github.com/admission-gateway/gateway/deploy/", "", "namespace: payments",
		"namespace: gateway-system").Replace(block)
}

// objects returns the objects of YAML, by kind and name.
func objects(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	documents := k8syaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	for {
		b := make([]byte, len(text)+1)
		n, err := documents.Read(b)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(b[:n], &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, b[:n])
		}
		if len(o.Object) == 0 {
			continue
		}
		key := o.GetKind() + " " + o.GetName()
		if all[key] != nil {
			t.Errorf("there are two of %s", key)
		}
		all[key] = o
	}
}
