// Sbom writes the software bill of materials of a program that Go built, in the format CycloneDX: the modules that are
// in the binary, with their versions and checksums, as `go version -m` shows them. The same binary always has the same
// bill.
//
// Usage: sbom BINARY
package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		encoder := cdx.NewBOMEncoder(os.Stdout, cdx.BOMFileFormatJSON)
		encoder.SetPretty(true)
		err = encoder.Encode(bill(info, os.Getenv("VERSION")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bill returns the bill of a binary. The version replaces the one in the binary, if it is not
// empty.
func bill(info *debug.BuildInfo, version string) *cdx.BOM {
	main := info.Main
	if version != "" {
		main.Version = version
	}
	program := component(&main)
	program.Type = cdx.ComponentTypeApplication
	components := []cdx.Component{{
		Type: cdx.ComponentTypeLibrary, BOMRef: "pkg:golang/std@" + goVersion(info), Name: "std",
		Version:    goVersion(info),
		PackageURL: "pkg:golang/std@" + goVersion(info),
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, component(m))
	}
	refs := make([]string, len(components))
	for i := range components {
		refs[i] = components[i].BOMRef
	}
	slices.Sort(refs)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program, Properties: settings(info)}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom
}

// component returns a module. Its checksum of go.sum is of a tree of files, for which CycloneDX has no kind of hash.
func component(m *debug.Module) cdx.Component {
	url := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: m.Path, Version: m.Version, PackageURL: url}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

func goVersion(info *debug.BuildInfo) string { return strings.TrimPrefix(info.GoVersion, "go") }

// settings are the flags and the platform that the binary was built with.
func settings(info *debug.BuildInfo) *[]cdx.Property {
	all := []cdx.Property{}
	for _, s := range info.Settings {
		all = append(all, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	return &all
}
