package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The schema is what values.go and the schema of the configuration make of it.
func TestSchemaIsCurrent(t *testing.T) {
	const repository = "../.."
	want, err := render(repository)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(repository, written))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what tools/chart says: run 'make chart'", written)
	}
}
