package policies

import "testing"

// TestOddDefinitions: what definitions in the wild look like does not keep them from being loaded.
func TestOddDefinitions(t *testing.T) {
	set, found := Load([]string{"testdata/odd.yaml"})
	const want = `odd.yaml:25: spec.version: warning: unknown field; did you mean ` + "`versions`" + `?
odd.yaml:43: spec.versions[0].schema.openAPIV3Schema.x-kubernetes-group-version-kind: warning: unknown field
odd.yaml:56: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties: warning: the key 'on' is read as 'true', as in YAML 1.1; to mean the word it must be in quotes
odd.yaml:59: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[fmt].format: warning: Invalid value: "quantity": unrecognized format, which is not checked
odd.yaml:60: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[u].format: warning: Invalid value: "uint32": unrecognized format, which is not checked
odd.yaml:63: spec.versions[0].schema.openAPIV3Schema.properties.spec.properties: warning: the key 'n' is read as 'false', as in YAML 1.1; to mean the word it must be in quotes
`
	if got := text("testdata", found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if set == nil || len(set.Registry().Resources()) != 3 {
		t.Error("not all versions that are served are resources")
	}
}
