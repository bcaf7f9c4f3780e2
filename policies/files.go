package policies

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/manifest"
)

// file is a policy file as it was read.
type file struct {
	name string
	data []byte
	// real is the file behind the links, info what it was like just before it was read.
	real string
	info fs.FileInfo
}

// source is what the policy paths hold at one moment.
type source struct {
	findings
	files []file
	// dirs are the directories that decide what the paths hold, for watching.
	dirs []string
	// hash is the SHA-256 of the contents, whatever the files' names and order.
	hash string
}

// readSource reads the policy files that paths, files and directories, lead to, in the order of their names.
// Directories are read with everything below them, save what is hidden: that is how ConfigMap mounts keep the real
// files ("..data"), which are read through the visible links to them.
//
// What is being replaced while it is read is read again, so that files that change together (a ConfigMap mount changes
// by one link) are of one version.
func readSource(paths []string) *source {
	const attempts, attemptsOnError = 10, 3
	for attempt := 1; ; attempt++ {
		s := readOnce(paths)
		settled := s.unchanged() && (attempt >= attemptsOnError || !HasErrors(s.list))
		if settled || attempt == attempts {
			return s
		}
	}
}

// unchanged tells whether the files still are what was read.
func (s *source) unchanged() bool {
	for _, f := range s.files {
		real, err := filepath.EvalSymlinks(f.name)
		if err != nil || real != f.real {
			return false
		}
		info, err := os.Stat(real)
		if err != nil || !os.SameFile(info, f.info) || info.Size() != f.info.Size() || !info.ModTime().Equal(f.info.ModTime()) {
			return false
		}
	}
	return true
}

func readOnce(paths []string) *source {
	w := &walker{source: &source{}, seenDirs: map[string]bool{}, seenFiles: map[string]bool{}}
	for _, path := range paths {
		w.root(filepath.Clean(path))
	}
	slices.SortStableFunc(w.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	slices.Sort(w.dirs)
	w.dirs = slices.Compact(w.dirs)
	w.hash = hashOf(w.files)
	return w.source
}

func hashOf(files []file) string {
	sums := make([][]byte, len(files))
	for i, f := range files {
		sum := sha256.Sum256(f.data)
		sums[i] = sum[:]
	}
	slices.SortFunc(sums, bytes.Compare)
	all := sha256.New()
	for _, sum := range sums {
		_, _ = all.Write(sum) // a hash takes everything
	}
	return hex.EncodeToString(all.Sum(nil))
}

// walker goes through the paths. A file or directory that several paths or links lead to counts once.
type walker struct {
	*source
	seenDirs, seenFiles map[string]bool
}

func (w *walker) root(path string) {
	w.watch(filepath.Dir(path)) // the path itself may be a link that is replaced
	info, err := os.Stat(path)
	if err != nil {
		w.file(path, "must be a file or directory that can be read: %s", reasonOf(err))
		return
	}
	if info.IsDir() {
		if before := len(w.files); !w.dir(path) && before == len(w.files) {
			w.list = append(w.list, Finding{File: path, Message: "holds no policy files", Severity: Warning})
		}
		return
	}
	switch {
	case isRego(path):
		w.rego(path)
	case !isManifest(path):
		w.file(path, "must have a name that ends in '.yaml', '.yml' or '.json'")
	default:
		w.add(path)
	}
}

// dir reads a directory; it tells whether it holds policy files, of which some may have been read already.
func (w *walker) dir(path string) (found bool) {
	if real, err := filepath.EvalSymlinks(path); err != nil || w.seenDirs[real] {
		return err == nil
	} else {
		w.seenDirs[real] = true
		w.watch(real)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		w.file(path, "must be a directory that can be read: %s", reasonOf(err))
		return true
	}
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			if err != nil {
				if isManifest(name) || isRego(name) {
					w.file(name, "must be a file that can be read: %s", reasonOf(err))
					found = true
				}
				continue
			}
			isDir = info.IsDir()
		}
		switch {
		case isDir:
			found = w.dir(name) || found
		case isRego(name):
			found = true
			w.rego(name)
		case isManifest(name):
			found = true
			w.add(name)
		}
	}
	return found
}

// add reads a file.
func (w *walker) add(name string) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		w.file(name, "must be a file that can be read: %s", reasonOf(err))
		return
	}
	if w.seenFiles[real] {
		return
	}
	w.seenFiles[real] = true
	w.watch(filepath.Dir(real))
	info, err := os.Stat(real)
	if err != nil {
		w.file(name, "must be a file that can be read: %s", reasonOf(err))
		return
	}
	data, err := manifest.ReadBytes(real)
	if err != nil {
		w.file(name, "%s", err.Error())
		return
	}
	if len(data) == 0 {
		// Whoever writes a file in place empties it first, and a set without its policies must not come into force.
		w.file(name, "must not be empty")
	}
	w.files = append(w.files, file{name, data, real, info})
}

func (w *walker) rego(name string) {
	w.file(name, "must not be among the policies: this version of the gateway does not run Rego")
}

func (w *walker) watch(dir string) { w.dirs = append(w.dirs, dir) }

// isManifest tells whether a file is a policy file by its name. Kustomize's own file is no object.
func isManifest(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	if base == "kustomization.yaml" || base == "kustomization.yml" {
		return false
	}
	switch filepath.Ext(base) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

func isRego(name string) bool {
	return strings.EqualFold(filepath.Ext(name), ".rego")
}

// reasonOf is an error of the file system without the name, which stands before it.
func reasonOf(err error) string {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err.Error()
	}
	return err.Error()
}
