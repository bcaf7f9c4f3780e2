package source

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
	"github.com/admission-gateway/gateway/policies/finding"
)

// write makes a directory of files.
func write(t *testing.T, names ...string) string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		files[name] = "kind: " + name
	}
	return testutil.WriteFiles(t, files)
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestPaths(t *testing.T) {
	dir := write(t, "one.yaml", "sub/two.yaml", "other.txt")
	// A ConfigMap as a kubelet mounts it: the visible names are links into a hidden directory.
	mount := write(t, "..2024/w.yaml")
	link(t, "..2024", filepath.Join(mount, "..data"))
	link(t, filepath.Join("..data", "w.yaml"), filepath.Join(mount, "w.yaml"))
	link(t, mount, filepath.Join(dir, "mounted"))
	link(t, dir, filepath.Join(dir, "sub", "loop"))
	link(t, "nowhere", filepath.Join(dir, "broken.yaml"))
	tests := []struct {
		name  string
		paths []string
		files []string
		want  string
	}{
		{"a file", []string{"one.yaml"}, []string{"one.yaml"}, ""},
		{"a file and its directory", []string{"one.yaml", "sub", "one.yaml"}, []string{"one.yaml", "sub/loop/mounted/w.yaml", "sub/two.yaml"}, "sub/loop/broken.yaml: must be a file that can be read: no such file or directory\n"},
		{"a mount", []string{"mounted"}, []string{"mounted/w.yaml"}, ""},
		{"everything once", []string{"."}, []string{"mounted/w.yaml", "one.yaml", "sub/two.yaml"},
			"broken.yaml: must be a file that can be read: no such file or directory\n"},
		{"what is not there", []string{"none", "none.yaml"}, nil, "none: must be a file or directory that can be read: no such file or directory\nnone.yaml: must be a file or directory that can be read: no such file or directory\n"},
		{"a file of another type", []string{"other.txt"}, nil,
			"other.txt: must have a name that ends in '.yaml', '.yml', '.json' or '.rego'\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var paths []string
			for _, p := range test.paths {
				paths = append(paths, filepath.Join(dir, p))
			}
			s := Read(paths, &Progress{})
			var found strings.Builder
			for _, f := range finding.Sort(s.Found) {
				found.WriteString(strings.TrimPrefix(f.String(), dir+"/") + "\n")
			}
			if got := found.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			var names []string
			for _, f := range s.Files {
				name, err := filepath.Rel(dir, f.Name)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
			if !reflect.DeepEqual(names, test.files) {
				t.Errorf("got %q, want %q", names, test.files)
			}
		})
	}
}
