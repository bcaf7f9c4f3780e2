package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// list has the phrases to look for.
type list struct {
	texts  []phrase
	names  map[string]string // a word of a name, and what to write instead
	except [][]string        // runs of words that are the field's own
}

type phrase struct {
	words   *regexp.Regexp
	instead string
}

// parseList reads the lines of phrases.txt, as the head of that file explains them.
func parseList(text string) (*list, error) {
	l := &list{names: map[string]string{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, rest, _ := strings.Cut(line, ":")
		entry, instead, hasInstead := strings.Cut(rest, "->")
		words := strings.Fields(entry)
		instead = strings.TrimSpace(instead)
		if len(words) == 0 || hasInstead == (kind == "except") {
			return nil, fmt.Errorf("line %d: %q: must be \"text: WORDS -> INSTEAD\", \"name: WORDS -> INSTEAD\" or \"except: WORDS\"", number, line)
		}
		switch kind {
		case "text":
			// Between two words of a comment may stand the end of a line and the marks of the next.
			words, err := regexp.Compile(`(?i)\b` + strings.Join(quoted(words), `[\s/*>]+`) + `\b`)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			l.texts = append(l.texts, phrase{words, instead})
		case "name":
			for _, w := range words {
				l.names[w] = instead
			}
		case "except":
			l.except = append(l.except, words)
		default:
			return nil, fmt.Errorf("line %d: %q is not text, name or except", number, kind)
		}
	}
	return l, nil
}

func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = regexp.QuoteMeta(w)
	}
	return all
}

func (l *list) inMarkdown(name string, text []byte) ([]hit, error) {
	return append(l.inName(strings.TrimSuffix(name, filepath.Ext(name)), 1), l.inText(text, 1)...), nil
}

// inGo returns the hits in the comments, strings and declared names of a Go file, and in its own name.
func (l *list) inGo(name string, text []byte) ([]hit, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	hits := l.inName(strings.TrimSuffix(name, ".go"), 1)
	read := func(n ast.Node) {
		from, to := files.Position(n.Pos()), files.Position(n.End())
		hits = append(hits, l.inText(text[from.Offset:to.Offset], from.Line)...)
	}
	for _, group := range f.Comments {
		read(group)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			read(literal)
		}
		for _, id := range declared(n) {
			hits = append(hits, l.inName(id.Name, files.Position(id.Pos()).Line)...)
		}
		return true
	})
	return hits, nil
}

// declared returns the names that the node itself declares. Uses do not count: to mend the declaration mends them.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field: // of a struct, an interface, parameters and results
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return idents(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return idents(n.Key, n.Value)
		}
	}
	return nil
}

func idents(of ...ast.Expr) []*ast.Ident {
	var all []*ast.Ident
	for _, e := range of {
		if id, is := e.(*ast.Ident); is {
			all = append(all, id)
		}
	}
	return all
}

func (l *list) inText(text []byte, line int) []hit {
	var hits []hit
	for _, p := range l.texts {
		for _, at := range p.words.FindAllIndex(text, -1) {
			found := strings.ToLower(strings.Join(strings.Fields(string(text[at[0]:at[1]])), " "))
			hits = append(hits, hit{
				line:    line + bytes.Count(text[:at[0]], []byte("\n")),
				found:   fmt.Sprintf("%q", found),
				instead: p.instead,
			})
		}
	}
	return hits
}

func (l *list) inName(name string, line int) []hit {
	var hits []hit
	words := wordsOf(name)
	for i, w := range words {
		instead, is := l.names[w]
		if is && !l.isExcepted(words, i) {
			hits = append(hits, hit{line: line, found: fmt.Sprintf("%s in the name %s", w, name), instead: instead})
		}
	}
	return hits
}

// isExcepted reports whether the word at i is part of a run of words that is allowed.
func (l *list) isExcepted(words []string, i int) bool {
	for _, run := range l.except {
		for from := max(0, i-len(run)+1); from <= i && from+len(run) <= len(words); from++ {
			if slices.Equal(words[from:from+len(run)], run) {
				return true
			}
		}
	}
	return false
}

// wordsOf splits a name in camel case or with underscores: an HTTPServer_test is http, server, test.
func wordsOf(name string) []string {
	var words []string
	letters := []rune(name)
	start := 0
	end := func(at int) {
		if at > start {
			words = append(words, strings.ToLower(string(letters[start:at])))
		}
		start = at
	}
	for i, r := range letters {
		switch {
		case !unicode.IsLetter(r):
			end(i)
			start = i + 1
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end(i)
		}
	}
	end(len(letters))
	return words
}
