// Phrases counts, for each folder, the phrases of phrases.txt at which a stranger to the project stops: in the comments,
// strings and declared names of Go files, and in Markdown. The counts are compared with limits.txt, which may only
// shrink.
//
// Usage: phrases [-w] [-v FOLDER] DIR. With -v it prints where the phrases stand in the folders that begin with FOLDER
// ("." is all), and what to write instead.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/tools/limits"
)

func main() {
	folder := flag.String("v", "", "print the phrases in the folders that begin with this, and compare nothing")
	limits.Main("phrases", "phrases/limits.txt", func(dir string) (limits.Counts, error) {
		text, err := os.ReadFile("phrases/phrases.txt")
		if err != nil {
			return nil, err
		}
		list, err := parseList(string(text))
		if err != nil {
			return nil, fmt.Errorf("phrases/phrases.txt: %w", err)
		}
		hits, err := list.search(dir)
		if err != nil {
			return nil, err
		}
		if *folder != "" {
			for _, h := range hits {
				if *folder == "." || strings.HasPrefix(h.folder, *folder) {
					fmt.Println(h)
				}
			}
			os.Exit(0)
		}
		counts := limits.Counts{}
		for _, h := range hits {
			counts[h.folder]++
		}
		return counts, nil
	})
}

// hit is one place where a phrase stands.
type hit struct {
	folder, file string
	line         int
	found        string
	instead      string
}

func (h hit) String() string {
	return fmt.Sprintf("%s:%d: %s: write %s", filepath.Join(h.folder, h.file), h.line, h.found, h.instead)
}

// search returns the hits in all Go files and Markdown below dir, without data of tests.
func (l *list) search(dir string) ([]hit, error) {
	var hits []hit
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != dir && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "bin", "vendor", "node_modules"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		in := l.inMarkdown
		switch filepath.Ext(name) {
		case ".md":
		case ".go":
			in = l.inGo
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := in(name, text)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, h := range found {
			h.folder, h.file = filepath.ToSlash(folder), name
			hits = append(hits, h)
		}
		return nil
	})
	return hits, err
}
