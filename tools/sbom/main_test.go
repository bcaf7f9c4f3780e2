package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestBill(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: "example.com/program", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.2.3", Sum: "h1:a="},
			{Path: "example.com/b", Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: "h1:b="}},
		},
		Settings: []debug.BuildSetting{{Key: "-trimpath", Value: "true"}},
	}
	var got bytes.Buffer
	if err := cdx.NewBOMEncoder(&got, cdx.BOMFileFormatJSON).Encode(bill(info, "v0.1.0")); err != nil {
		t.Fatal(err)
	}
	want := `"metadata":{"component":{"bom-ref":"pkg:golang/example.com/program@v0.1.0","type":"application","name":"example.com/program","version":"v0.1.0","purl":"pkg:golang/example.com/program@v0.1.0"},"properties":[{"name":"go:build:-trimpath","value":"true"}]},` +
		`"components":[{"bom-ref":"pkg:golang/std@1.26.8","type":"library","name":"std","version":"1.26.8","purl":"pkg:golang/std@1.26.8"},` +
		`{"bom-ref":"pkg:golang/example.com/a@v1.2.3","type":"library","name":"example.com/a","version":"v1.2.3","purl":"pkg:golang/example.com/a@v1.2.3","properties":[{"name":"go:sum","value":"h1:a="}]},` +
		`{"bom-ref":"pkg:golang/example.com/fork@v1.0.1","type":"library","name":"example.com/fork","version":"v1.0.1","purl":"pkg:golang/example.com/fork@v1.0.1","properties":[{"name":"go:sum","value":"h1:b="}]}],` +
		`"dependencies":[{"ref":"pkg:golang/example.com/program@v0.1.0","dependsOn":["pkg:golang/example.com/a@v1.2.3","pkg:golang/example.com/fork@v1.0.1","pkg:golang/std@1.26.8"]}]}`
	if !strings.HasSuffix(strings.TrimSpace(got.String()), want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got.String(), want)
	}
}

// A program's bill has all modules that `go version -m` shows of it, once.
func TestBillOfThisProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range *bill(info, "").Components {
		if seen[c.BOMRef] {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		seen[c.BOMRef] = true
	}
	for _, m := range info.Deps {
		if !seen["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("%s is not there", m.Path)
		}
	}
}
