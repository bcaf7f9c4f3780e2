package outbound

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// makers are what makes a client or a transport, by the package that has it. Of the types a pointer is allowed.
var makers = map[string][]string{
	"net/http": {
		"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm",
	},
	"net/http/httputil":                         {"ReverseProxy", "NewSingleHostReverseProxy"},
	"github.com/valyala/fasthttp":               {"Client", "HostClient", "PipelineClient", "LBClient", "Get", "Post", "Do"},
	"k8s.io/client-go/rest":                     {"HTTPClientFor", "TransportFor", "RESTClientFor"},
	"k8s.io/client-go/transport":                {"New"},
	"k8s.io/client-go/kubernetes":               {"NewForConfig"},
	"k8s.io/client-go/dynamic":                  {"NewForConfig"},
	"oras.land/oras-go/v2/registry/remote/auth": {"DefaultClient"},
}

// TestOnlyClient: no other package of the gateway makes an HTTP client, so that the rules of this one hold for all.
func TestOnlyClient(t *testing.T) {
	root := filepath.Join("..", "..")
	apart := []string{"e2e", "bench", "tools", filepath.Join("internal", "outbound")}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains(apart, name) || d.Name() == "testdata" || name != "." &&
				strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			files++
			for _, found := range made(t, path) {
				t.Errorf("%s makes an HTTP client of its own; use internal/outbound", found)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files are read, %v", files, err)
	}
}

// TestMade: the rule finds what it is meant to find.
func TestMade(t *testing.T) {
	want := []string{
		"testdata/makes.go:11 Client", "testdata/makes.go:12 Transport", "testdata/makes.go:13 Client",
		"testdata/makes.go:14 DefaultTransport", "testdata/makes.go:15 Get", "testdata/makes.go:16 HTTPClientFor",
		"testdata/makes.go:20 Client",
	}
	if got := made(t, filepath.Join("testdata", "makes.go")); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// made returns the places in a file that make a client.
func made(t *testing.T, path string) (found []string) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string][]string{} // the makers by the name of their package in the file
	for _, i := range f.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := of[strings.LastIndexByte(of, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		if makers[of] != nil {
			imported[name] = makers[of]
		}
	}
	if len(imported) == 0 {
		return nil
	}
	pointed := map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			pointed[n.X] = true
		case *ast.SelectorExpr:
			of, isName := n.X.(*ast.Ident)
			if isName && !pointed[n] && slices.Contains(imported[of.Name], n.Sel.Name) {
				at := files.Position(n.Pos())
				found = append(found, filepath.ToSlash(at.Filename)+":"+strconv.Itoa(at.Line)+" "+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
