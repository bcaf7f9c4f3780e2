package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sourcesOfMessages are the files whose messages clients of documented operations meet, beside the failures of schemas.
var sourcesOfMessages = []string{
	"internal/contract/*.go", "internal/storage/plain/precondition.go", "internal/storage/plain/bodies.go",
	"internal/storage/plain/patch.go",
	"internal/storage/complete.go", "internal/storage/subject.go", "internal/status/wording.go",
	"internal/resource/path.go", "internal/resource/slashes.go", "internal/resource/query.go",
	"internal/resource/plain.go",
	"internal/schema/graph/alternatives.go", "internal/schema/graph/check.go", "internal/schema/graph/items.go",
	"internal/schema/graph/members.go",
	"internal/schema/wording/alternatives.go",
	"proxy/admission.go", "proxy/answer.go", "proxy/connect.go", "proxy/contract.go", "proxy/documented.go",
	"proxy/form.go", "proxy/mediatype.go",
	"proxy/patch.go", "proxy/refusal.go", "proxy/request.go", "proxy/resolve.go", "proxy/stages.go", "proxy/write.go",
}

// TestMessages: the page of messages has each message by which a request of a documented operation is refused, as the
// code writes it, with '…' in place of what differs.
func TestMessages(t *testing.T) {
	text, err := os.ReadFile("../../docs/messages.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ") // lists are wrapped
	found := 0
	for _, pattern := range sourcesOfMessages {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "contract/answer.go") {
				continue
			}
			for _, message := range messagesIn(t, file) {
				if found++; !strings.Contains(page, message) {
					t.Errorf("%s: no row of docs/messages.md has\n%s", file, message)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d messages are found in the code", found)
	}
}

var (
	verb   = regexp.MustCompile(`%[0-9.]*[a-z]`)
	demand = regexp.MustCompile(`(^|[a-z'] )(must|may) `)
)

// messagesIn returns the messages of a file that demand something, or that it makes an answer of.
func messagesIn(t *testing.T, file string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if call, isCall := n.(*ast.CallExpr); isCall && isOfStatus(call.Fun) {
			for _, argument := range call.Args {
				if message, isText := textOf(argument); isText && strings.Contains(message, " ") &&
					!slices.Contains(all, message) {
					all = append(all, message)
				}
			}
		}
		e, isExpression := n.(ast.Expr)
		if !isExpression {
			return true
		}
		message, isText := textOf(e)
		if isText && demand.MatchString(message) && !slices.Contains(all, message) {
			all = append(all, message)
		}
		return !isText
	})
	return all
}

// isOfStatus reports whether a function is one of the package of answers.
func isOfStatus(function ast.Expr) bool {
	of, isSelector := function.(*ast.SelectorExpr)
	if !isSelector {
		return false
	}
	name, isName := of.X.(*ast.Ident)
	return isName && name.Name == "status"
}

// textOf returns the text of a literal or of a sum with one, with '…' for what is known only when it runs.
func textOf(e ast.Expr) (text string, isText bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return strings.ReplaceAll(verb.ReplaceAllString(text, "…"), "%%", "%"), err == nil
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		if !isLeft {
			left = "…"
		}
		if !isRight {
			right = "…"
		}
		return left + right, true
	}
	return "", false
}
