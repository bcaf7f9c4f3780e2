// Package source reads the policy files that paths lead to, whole and of one version.
package source

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	regular "github.com/admission-gateway/gateway/internal/file"
	"sigs.k8s.io/yaml"

	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/finding"
)

// File is a policy file as it was read.
type File struct {
	Name string
	Data []byte
	// Role says what the file holds.
	Role Role
	// Root is the folder of policy files that the file is in: a path that was given, or the folder of a file
	// that was given.
	Root string
	// IsOutside says that a link leads out of that folder.
	IsOutside bool
	// IsUnused says that a file Settings of its folder, or of one above, has `unused: Allow`: it is meant that some of
	// what it says can never apply.
	IsUnused bool
	// Folder is the index of the Folder of the Source that the file is of.
	Folder int
	// real is the file behind the links, info what it was like as it was opened.
	real string
	info fs.FileInfo
	sum  [sha256.Size]byte // of the data
}

// Sum returns the SHA-256 of the contents.
func (f *File) Sum() [sha256.Size]byte { return f.sum }

// Settings is the name of the file that says how the files of its folder, and of those below it, are meant.
const Settings = ".admission-gateway.yaml"

// Role says what a file holds.
type Role uint8

// The roles.
const (
	// Objects are in all other files.
	Objects Role = iota
	// Module is a module in Rego.
	Module
	// Data is the document data of the modules in the file's folder: a file 'data.json', 'data.yaml'
	// or 'data.yml' beside a module, as in OPA's bundles.
	Data
	// Reference is a file that OpenAPI documents refer to. It is beside a file that was given, and was not
	// given itself.
	Reference
)

// roleOf is the role of a file; beside is set if there are modules in its folder.
func roleOf(name string, beside bool) Role {
	base := strings.ToLower(filepath.Base(name))
	switch {
	case isRego(name):
		return Module
	case beside && (base == "data.json" || base == "data.yaml" || base == "data.yml"):
		return Data
	}
	return Objects
}

// Source has the contents of the policy paths at one moment.
type Source struct {
	finding.List
	Files []File
	// Dirs are the directories that decide what the paths hold, for watching.
	Dirs []string
	// Hash is the SHA-256 of the contents, whatever the files' names and order, and of which folders are left out.
	Hash string
	// Folders are the owners' parts of the files; nil if the files are not told apart by owners. Held are those whose
	// files are left out because they have errors.
	Folders []Folder
	Held    []*Folder
	// Focus is the file that findings are wanted about; "" means all. Errors are found in every file,
	// but what takes long and is only advice is left out of the others.
	Focus string
}

// Read reads the policy files that paths, files and directories, lead to, in the order of their names.
// Directories are read with everything below them, save what is hidden: that is how ConfigMap mounts keep the real
// files ("..data"), which are read through the visible links to them.
//
// What is being replaced while it is read is read again, so that files that change together (a ConfigMap mount changes
// by one link) are of one version.
//
// What is being read at a time is noted in p.
func Read(paths []string, p *Progress) *Source {
	defer p.file.Store(nil)
	const attempts, attemptsOnError = 10, 3
	for attempt := 1; ; attempt++ {
		s := readOnce(paths, p)
		complete := s.unchanged() && (attempt >= attemptsOnError || !finding.HasErrors(s.Found))
		if complete || attempt == attempts {
			return s
		}
	}
}

// Of makes a source of files whose contents are known. Each needs a name.
func Of(files []File) *Source {
	s := &Source{Files: files, Hash: hashOf(files, nil)}
	slices.SortStableFunc(s.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// unchanged reports whether the files still are as they were read.
func (s *Source) unchanged() bool {
	for _, f := range s.Files {
		real, err := filepath.EvalSymlinks(f.Name)
		if err != nil || real != f.real {
			return false
		}
		info, err := os.Stat(real)
		if err != nil || !os.SameFile(info, f.info) || info.Size() != f.info.Size() ||
			!info.ModTime().Equal(f.info.ModTime()) {
			return false
		}
	}
	return true
}

func readOnce(paths []string, p *Progress) *Source {
	w := &walker{Source: &Source{}, progress: p, seenDirs: map[string]bool{}, seenFiles: map[string]bool{}}
	for _, path := range paths {
		w.root(filepath.Clean(path))
	}
	w.references()
	slices.SortStableFunc(w.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(w.Dirs)
	w.Dirs = slices.Compact(w.Dirs)
	w.Hash = hashOf(w.Files, nil)
	return w.Source
}

// hashOf notes the sum of each file, and returns that of all.
func hashOf(files []File, held []*Folder) string {
	sums := make([][]byte, len(files))
	for i := range files {
		if f := &files[i]; f.sum == ([sha256.Size]byte{}) {
			f.sum = sha256.Sum256(f.Data)
		}
		sums[i] = files[i].sum[:]
	}
	slices.SortFunc(sums, bytes.Compare)
	all := sha256.New()
	for _, sum := range sums {
		_, _ = all.Write(sum) // a hash takes everything
	}
	for _, f := range held {
		_, _ = all.Write([]byte("\nheld " + f.Name()))
	}
	return hex.EncodeToString(all.Sum(nil))
}

// walker goes through the paths. A file or directory that several paths or links lead to counts once.
type walker struct {
	*Source
	progress            *Progress
	seenDirs, seenFiles map[string]bool
	dirRoot, realRoot   string // the folder of what is read, and the one behind its links
	isUnused            bool   // the settings of the folder that is read, or of one above
}

// enter begins to read what is in a folder of policy files.
func (w *walker) enter(root string) {
	w.dirRoot, w.realRoot = root, root
	if real, err := filepath.EvalSymlinks(root); err == nil {
		w.realRoot = real
	}
}

func (w *walker) root(path string) {
	w.progress.Reading(path)
	w.watch(filepath.Dir(path)) // the path itself may be a link that is replaced
	info, err := os.Stat(path)
	if err != nil {
		w.List.File(path, "must be a file or directory that can be read: %s", reasonOf(err))
		return
	}
	if info.IsDir() {
		w.enter(path)
		if before := len(w.Files); !w.dir(path) && before == len(w.Files) {
			w.Found = append(w.Found, finding.Finding{File: path, Message: "holds no policy files",
				Severity: finding.Warning})
		}
		return
	}
	switch {
	case !IsManifest(path) && !isRego(path):
		w.List.File(path, "must have a name that ends in '.yaml', '.yml', '.json' or '.rego'")
	default:
		w.enter(filepath.Dir(path))
		w.add(path, roleOf(path, false))
	}
}

// maxReferences bounds how many files are read because others refer to them.
const maxReferences = 1000

// references reads the files that documents refer to, and that the paths do not lead to. The documents are not
// parsed yet: a file may be read to which no other refers in the end. That does no harm.
func (w *walker) references() {
	end := len(w.Files) + maxReferences
	for i := 0; i < len(w.Files); i++ {
		f := w.Files[i]
		if f.Role != Objects && f.Role != Reference {
			continue
		}
		for name := range Mentioned(f.Name, f.Data) {
			if !IsWithin(f.Root, name) || !IsManifest(name) || len(w.Files) >= end {
				continue
			}
			w.watch(filepath.Dir(name))
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				w.enter(f.Root)
				w.add(name, Reference)
			}
		}
	}
}

// Mentioned are the files that a text seems to refer to by '$ref', named as the file of the text is.
func Mentioned(name string, text []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		key := []byte("$ref")
		for at := bytes.Index(text, key); at >= 0; at = bytes.Index(text, key) {
			text = bytes.TrimLeft(text[at+len(key):], "\"' \t:")
			end := bytes.IndexAny(text, "#\"'\r\n,}")
			if end <= 0 {
				continue
			}
			ref := string(bytes.TrimSpace(text[:end]))
			if file, isFile := Referred(name, ref); isFile && !yield(file) {
				return
			}
		}
	}
}

// Referred returns the file that a reference in a file leads to; false if it leads to no file beside that.
func Referred(name, ref string) (file string, isFile bool) {
	ref, _, _ = strings.Cut(ref, "#")
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" || u.Path[0] == '/' {
		return "", false
	}
	return filepath.Join(filepath.Dir(name), filepath.FromSlash(u.Path)), true
}

// IsWithin reports whether a name is below a folder.
func IsWithin(root, name string) bool {
	to, err := filepath.Rel(root, name)
	return err == nil && to != ".." && !strings.HasPrefix(to, ".."+string(filepath.Separator))
}

// dir reads a directory, and reports whether it has policy files. Some of them may have been read
// already.
func (w *walker) dir(path string) (found bool) {
	w.progress.Reading(path)
	if real, err := filepath.EvalSymlinks(path); err != nil || w.seenDirs[real] {
		return err == nil
	} else {
		w.seenDirs[real] = true
		w.watch(real)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		w.List.File(path, "must be a directory that can be read: %s", reasonOf(err))
		return true
	}
	above := w.isUnused
	defer func() { w.isUnused = above }()
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == Settings }) {
		w.settings(filepath.Join(path, Settings))
	}
	modules := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isRego(e.Name()) })
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(name)
			if err != nil {
				if IsManifest(name) || isRego(name) {
					w.List.File(name, "must be a file that can be read: %s", reasonOf(err))
					found = true
				}
				continue
			}
			isDir = info.IsDir()
		}
		switch {
		case isDir:
			found = w.dir(name) || found
		case isRego(name), IsManifest(name):
			found = true
			w.add(name, roleOf(name, modules))
		}
	}
	return found
}

// settings reads the settings of a folder.
func (w *walker) settings(name string) {
	data, _, err := regular.Read(name, maxSettings)
	if err != nil {
		w.List.File(name, "%s", err.Error())
		return
	}
	var said struct {
		Unused string `json:"unused"`
	}
	switch err := yaml.UnmarshalStrict(data, &said); {
	case err != nil:
		w.List.File(name, "must have `unused: Allow`, and nothing else: %s", err.Error())
	case said.Unused != "Allow":
		w.List.File(name, "must have `unused: Allow`")
	default:
		w.isUnused = true
	}
}

// maxSettings bounds the settings of a folder.
const maxSettings = 64 << 10

// add reads a file.
func (w *walker) add(name string, role Role) {
	w.progress.Reading(name)
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		w.List.File(name, "must be a file that can be read: %s", reasonOf(err))
		return
	}
	if w.seenFiles[real] {
		return
	}
	w.seenFiles[real] = true
	w.watch(filepath.Dir(real))
	data, info, err := regular.Read(real, manifest.MaxBytes)
	if err != nil {
		w.List.File(name, "%s", err.Error())
		return
	}
	if len(data) == 0 {
		// A program that writes a file in place empties it first, and a set without its policies
		// must not come into force.
		w.List.File(name, "must not be empty")
	}
	w.Files = append(w.Files, File{
		Name: name, Data: data, Role: role, Root: w.dirRoot, IsOutside: !IsWithin(w.realRoot, real),
		IsUnused: w.isUnused, real: real, info: info,
	})
}

func (w *walker) watch(dir string) { w.Dirs = append(w.Dirs, dir) }

// IsManifest reports whether a file is a policy file by its name. Kustomize's own file is no
// object.
func IsManifest(name string) bool {
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

// reasonOf is an error of the file system without the name, which precedes it.
func reasonOf(err error) string {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// Fingerprint changes with whatever would change the outcome of compiling the source.
func (s *Source) Fingerprint() string {
	var b strings.Builder
	b.WriteString(s.Hash)
	for _, f := range s.Files { // documents and overlays name other files
		b.WriteByte('\n')
		b.WriteString(f.Name)
		if f.IsUnused {
			b.WriteString(" unused")
		}
	}
	for _, f := range s.Found {
		b.WriteByte('\n')
		b.WriteString(f.String())
	}
	return b.String()
}

// Progress is the file that is being read, and none while the files that were read are compiled.
type Progress struct{ file atomic.Pointer[string] }

// Reading notes the file or directory that is read next.
func (p *Progress) Reading(name string) { p.file.Store(&name) }

// File returns the file that is being read; false while there is none.
func (p *Progress) File() (name string, reading bool) {
	if at := p.file.Load(); at != nil {
		return *at, true
	}
	return "", false
}
