// Columns checks that lines of Go code have at most 120 columns, of which a tab counts 4.
//
// Usage: columns [-w] DIR. With -w it breaks the lines that are longer. The exit code is 1 if anything is found.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("w", false, "break the lines that are longer, as far as that is possible")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	found, err := check(dir, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "columns:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// check returns a sentence for each line that is too long, of all Go files of a folder and below it. If write is set
// the files are mended first.
func check(dir string, write bool) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == "node_modules" || e.Name() == "bin"):
			return fs.SkipDir
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != dir:
			return fs.SkipDir
		case e.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil || isGenerated(src) {
			return err
		}
		if write {
			mended, err := mend(src)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if string(mended) != string(src) {
				if err := os.WriteFile(path, mended, 0o644); err != nil {
					return err
				}
			}
			src = mended
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		for _, l := range read(src) {
			if w := l.width(); w > maxColumns && !l.isExempt() {
				found = append(found, fmt.Sprintf("%s:%d: the line has %d columns, which are more than %d", name,
					l.number, w, maxColumns))
			}
		}
		return nil
	})
	return found, err
}

// isGenerated reports whether a program has written the file, as it says itself.
func isGenerated(src []byte) bool {
	for line := range strings.Lines(string(src)) {
		if strings.HasPrefix(line, "// Code generated ") && strings.Contains(line, " DO NOT EDIT") {
			return true
		}
		if strings.HasPrefix(line, "package ") {
			return false
		}
	}
	return false
}
