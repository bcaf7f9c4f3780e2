package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Without a word of the definition's author, clients of deprecated versions are warned as the API
// server warns them, whatever they ask for.
func TestDeprecatedVersions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "crds.yaml")
	var text strings.Builder
	var collections []string
	// A version that ends in '-' is deprecated, one that ends in '!' is not served.
	for i, versions := range []string{
		"v1alpha1- v1beta1", "v1beta1- v1alpha1", "v1alpha1- v1alpha2- v1beta1- v1beta2 v1!", "v1- v2alpha1 v2beta1",
		"v1- v1beta1- v2 v10 v3-",
		"v2- v1", "odd- v1alpha1 zeta", "v1alpha1- odd", "v1beta1-",
		"v11alpha2- v11alpha10 v11alpha3 v2beta1- v2beta2!",
	} {
		plural := fmt.Sprintf("olds%d", i)
		fmt.Fprintf(&text, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s.deprecated.example.com}\n"+
			"spec:\n  group: deprecated.example.com\n  scope: Namespaced\n  names: {plural: %[1]s, singular: old%d, kind: Old%[2]d, listKind: Old%[2]dList}\n  versions:\n", plural, i)
		for j, v := range strings.Fields(versions) {
			name := strings.TrimRight(v, "-!")
			served := !strings.HasSuffix(v, "!")
			fmt.Fprintf(&text, "  - {name: %s, served: %t, storage: %t, deprecated: %t, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object}}}\n",
				name, served, j == 0, strings.HasSuffix(v, "-"))
			collections = append(collections, "/apis/deprecated.example.com/"+name+"/namespaces/team-a/"+plural)
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := define(file); err != nil {
		t.Fatal(err)
	}
	through := startGateway(t, file)
	warned := 0
	compare := func(method, path, contentType, body string) {
		t.Helper()
		var want answer
		eventually(t, "the storage of a new definition is prepared", func() bool {
			want = ask(t, method, server.HTTP+path, contentType, body)
			return want.code != http.StatusTooManyRequests
		})
		got := ask(t, method, through.url+path, contentType, body)
		// where the request reached the server, its own is there too
		warnings := slices.Compact(slices.Clone(got.header["Warning"]))
		if got.code != want.code || !slices.Equal(warnings, want.header["Warning"]) {
			t.Errorf("%s %s: %d %q, the server: %d %q", method, path, got.code, got.header["Warning"], want.code,
				want.header["Warning"])
		}
		warned += len(want.header["Warning"])
	}
	for _, c := range collections {
		compare("GET", c, "", "")
	}
	const old = "/apis/deprecated.example.com/v1alpha1/namespaces/team-a/olds0"
	for _, r := range []struct{ method, path string }{
		{"GET", old + "/none"}, {"GET", old + "/none/status"}, {"GET", old + "/none/scale"},
		{"GET", old + "/none/other"},
		{"PUT", old + "/none/scale"}, {"DELETE", old + "/none/status"}, {"DELETE", old + "/none"},
		{"GET", old + "?watch=true&timeoutSeconds=1"},
		{"GET", "/apis/deprecated.example.com/v1alpha1/olds0"}, {"POST", "/apis/deprecated.example.com/v1alpha1/olds0"},
		{"GET", "/apis/deprecated.example.com/v1alpha1/olds0/none"},
	} {
		body, contentType := "", ""
		if r.method == "PUT" || r.method == "POST" {
			body, contentType = `{"apiVersion":"deprecated.example.com/v1alpha1","kind":"Old0","metadata":{"name":"none"}}`, "application/json"
		}
		compare(r.method, r.path, contentType, body)
	}
	if warned < len(collections)/2 {
		t.Errorf("the server warned %d times of %d versions", warned, len(collections))
	}
}
