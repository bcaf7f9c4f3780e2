// Pagewords counts the words of the documentation:
//
//	cd tools && go run ./pagewords ..
//
// It prints, for each page, the words of its text, of its tables, of the tables that a command makes of the code or
// that a test compares with it, and of its blocks of code. Only the text counts for the limit, which a test keeps.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// limit is how many words the text of all pages may have.
const limit = 39_000

// ofCode are the beginnings of what is made of the code, or compared with it: up to the end of a table, or to a comment
// "<!-- end of … -->".
var ofCode = []string{
	"<!-- fields of policies/crds/",                           // crdtables
	"<!-- built-in functions of admission/rego/builtin -->",   // TestDocs there
	"| field | with `ECS` | is |", "| metric | labels | is |", // TestDocsOfLog, TestDocsOfMetrics
	"| key | comes into force | because |", // TestDocsOfSettings
}

// listsOfCode are pages all of whose tables are compared with the code: TestMessages, and the library's own tests.
var listsOfCode = []string{"docs/messages.md", "docs/library.md"}

// words are the counts of a page.
type words struct{ text, tables, ofCode, blocks int }

func (w *words) add(o words) {
	w.text += o.text
	w.tables += o.tables
	w.ofCode += o.ofCode
	w.blocks += o.blocks
}

// count counts the words of a page.
func count(path, page string) (w words) {
	inBlock, inSection, inTable := false, false, false
	for line := range strings.Lines(page) {
		n := wordsOf(line)
		line = strings.TrimSpace(line)
		isRow := strings.HasPrefix(line, "|")
		begins := slices.ContainsFunc(ofCode, func(s string) bool { return strings.HasPrefix(line, s) })
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
			continue
		case inBlock:
			w.blocks += n
			continue
		case begins && isRow:
			inTable = true
		case begins:
			inSection = true
		case strings.HasPrefix(line, "<!-- end of "):
			inSection = false
		case !isRow:
			inTable = false
		}
		switch {
		case strings.HasPrefix(line, "<!--"):
		case inSection, inTable, isRow && slices.Contains(listsOfCode, path):
			w.ofCode += n
		case isRow:
			w.tables += n
		default:
			w.text += n
		}
	}
	return w
}

// wordsOf counts what has a letter or a digit: no bars of tables, and no marks of lists.
func wordsOf(line string) (n int) {
	for word := range strings.FieldsSeq(line) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// pages returns README and the pages of docs/, by their paths in the repository.
func pages(repository string) (all map[string]words, err error) {
	all = map[string]words{}
	read := func(path string) error {
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, path)
		all[filepath.ToSlash(name)] = count(filepath.ToSlash(name), string(page))
		return err
	}
	if err := read(filepath.Join(repository, "README.md")); err != nil {
		return nil, err
	}
	return all, filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		return read(path)
	})
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pagewords REPOSITORY")
		os.Exit(2)
	}
	all, err := pages(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pagewords:", err)
		os.Exit(1)
	}
	paths := make([]string, 0, len(all))
	var sum words
	for path, w := range all {
		paths = append(paths, path)
		sum.add(w)
	}
	slices.SortFunc(paths, func(a, b string) int { return all[b].text - all[a].text })
	print := func(w words, name string) {
		fmt.Printf("%6d %6d %6d %6d  %s\n", w.text, w.tables, w.ofCode, w.blocks, name)
	}
	fmt.Println("  text tables ofcode blocks  page")
	for _, path := range paths {
		print(all[path], path)
	}
	print(sum, fmt.Sprintf("in all; the text may have %d", limit))
}
