package gatekeeper

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// suitesDir is the folder with the recorded suites, which have Gatekeeper's library.
func suitesDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SUITES_DIR")
	switch {
	case dir == "":
		dir = filepath.Join("..", "..", "..", "shared", "suites")
	case !filepath.IsAbs(dir):
		dir = filepath.Join("..", "..", dir) // it is relative to the root of the repository
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	return dir
}

// library returns the templates of Gatekeeper's library and their constraints, by names of their own.
func library(t *testing.T, dir string) (all []*unstructured.Unstructured) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "data", "gatekeeper-library", "library"),
		func(name string, entry os.DirEntry, err error) error {
			base := filepath.Base(name)
			if err != nil || base != "template.yaml" && !strings.HasPrefix(base, "constraint") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, o := range objectsOf(t, string(text)) {
				if base != "template.yaml" {
					o.SetName(fmt.Sprintf("c%d-%s", len(all), o.GetName()))
				}
				all = append(all, o)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// requests carry the objects of the recorded cases.
func requests(t *testing.T, dir string) (all []*request) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "cases", "rego-gatekeeper.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c struct {
			Input struct {
				Review struct {
					Namespace string
					Operation string
					Object    map[string]any
				} `json:"review"`
			} `json:"input"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, requestAbout(c.Input.Review.Object, c.Input.Review.Operation))
	}
	return all
}

// requestAbout is a request that creates or updates an object.
func requestAbout(object map[string]any, operation string) *request {
	o := &unstructured.Unstructured{Object: object}
	gvk := o.GroupVersionKind()
	plural := strings.ToLower(gvk.Kind) + "s"
	switch {
	case strings.HasSuffix(plural, "ss"):
		plural = strings.TrimSuffix(plural, "s") + "es"
	case strings.HasSuffix(plural, "ys"):
		plural = strings.TrimSuffix(plural, "ys") + "ies"
	}
	q := &request{object: object, path: "/apis/" + gvk.GroupVersion().String()}
	if gvk.Group == "" {
		q.path = "/api/v1"
	}
	switch gvk.Kind {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PersistentVolume":
	default:
		q.namespace = "default"
		o.SetNamespace(q.namespace)
		q.path += "/namespaces/" + q.namespace
	}
	q.path += "/" + plural
	if operation == "UPDATE" {
		old := o.DeepCopy()
		old.SetResourceVersion("1")
		old.SetUID("u")
		q.old = old.Object
	}
	return q
}

// TestLibrary: all templates and constraints of the library together say the same of all objects, by either engine.
func TestLibrary(t *testing.T) {
	dir := suitesDir(t)
	for name, expressionsFirst := range map[string]bool{"Rego": false, "K8sNativeValidation": true} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, expressionsFirst)
			all := library(t, dir)
			add(t, c, all)
			files := map[string]string{}
			for i, o := range all {
				if o.GetKind() == "ConstraintTemplate" {
					annotations := o.GetAnnotations()
					if annotations == nil {
						annotations = map[string]string{}
					}
					annotations["admission-gateway.io/engine"] = name
					o.SetAnnotations(annotations)
				}
				files[fmt.Sprintf("%d.json", i)] = string(encoded(o.Object))
			}
			g := start(t, files)
			addNamespaces(g)
			refused := 0
			for _, q := range requests(t, dir) {
				denied, warnings := ask(t, c, q)
				compare(t, q, g.send(t, q), denied, warnings)
				if denied != "" {
					refused++
				}
			}
			if refused < 50 {
				t.Errorf("Gatekeeper refused %d requests, which tells too little", refused)
			}
		})
	}
}
