package main

import (
	"path/filepath"
	"testing"
)

// TestInit: the configuration that `gateway init` writes serves the policies beside it: nothing is wrong with them
// together.
func TestInit(t *testing.T) {
	for _, backend := range []string{"Kubernetes", "Plain"} {
		for _, action := range []string{"Warn", "Deny"} {
			dir := filepath.Join(t.TempDir(), "new")
			if r := run("init", "--backend", backend, "--enforce", action, dir); r.code != 0 {
				t.Fatalf("%s, %s: %+v", backend, action, r)
			}
			if r := run("check", "--config", filepath.Join(dir, "gateway.yaml")); r.code != 0 {
				t.Errorf("%s, %s: %+v", backend, action, r)
			}
		}
	}
}
