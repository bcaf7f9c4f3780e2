// Crdtables writes the tables of fields in docs/policies from the CustomResourceDefinitions in policies/crds:
//
//	cd tools && go run ./crdtables ..
//
// A page has its table between the lines "<!-- fields of policies/crds/NAME.yaml -->" and "<!-- end of fields -->".
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdtables REPOSITORY")
		os.Exit(2)
	}
	pages, err := render(os.Args[1])
	for path, page := range pages {
		if err == nil {
			err = os.WriteFile(path, page, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdtables:", err)
		os.Exit(1)
	}
}

var section = regexp.MustCompile(`(?s)(<!-- fields of (policies/crds/[a-z]+\.yaml) -->\n).*?(<!-- end of fields -->\n)`)

// render returns the pages of the repository that have tables, by their paths, with the tables that they should have.
func render(repository string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(repository, "docs", "policies", "*.md"))
	if err != nil {
		return nil, err
	}
	pages := map[string][]byte{}
	shown := map[string]bool{}
	for _, path := range paths {
		page, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !section.Match(page) {
			continue
		}
		var failed error
		pages[path] = section.ReplaceAllFunc(page, func(old []byte) []byte {
			m := section.FindSubmatch(old)
			name := string(m[2])
			table, err := tableOf(filepath.Join(repository, name))
			if err != nil {
				failed = fmt.Errorf("%s: %w", name, err)
			}
			shown[name] = true
			return bytes.Join([][]byte{m[1], table, m[3]}, []byte("\n"))
		})
		if failed != nil {
			return nil, failed
		}
	}
	crds, err := filepath.Glob(filepath.Join(repository, "policies", "crds", "*.yaml"))
	for _, crd := range crds {
		if name := "policies/crds/" + filepath.Base(crd); !shown[name] {
			return nil, fmt.Errorf("no page in docs/policies shows the fields of %s", name)
		}
	}
	return pages, err
}
