// Package lastgood keeps the policy files that were last in force, so that a gateway which starts
// while the files have errors can begin with those.
package lastgood

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	regular "github.com/admission-gateway/gateway/internal/file"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/policies/source"
)

// Options say where the files are kept, and for whom.
type Options struct {
	// Path is the file that keeps them. Its folder must exist.
	Path string
	// KeyFile has the key that authenticates the file: 32 bytes or more, without the white space around them.
	KeyFile string
	// MaxAge is how long after they were last seen without errors the files may be used.
	MaxAge time.Duration
	// Configuration is the hash of the configuration that they belong to.
	Configuration string
}

// Store keeps the files. Its methods may be called at the same time.
type Store struct {
	options Options

	mu   sync.Mutex
	kept string               // what was kept last
	at   map[string]time.Time // when it was last without errors, by folder
}

const (
	minKeyBytes, maxKeyBytes = 32, 1 << 16
	// maxBytes bounds the file, which is read whole.
	maxBytes = 256 << 20
	// touches is how often within MaxAge files that have not changed are kept anew.
	touches = 20
)

// The reasons for which kept files are not used, in the errors of Restore.
var (
	ErrForged  = errors.New("it was not written with the key of `keyFile`")
	ErrForeign = errors.New("it belongs to another configuration")
	ErrOld     = errors.New("it is older than `maxAgeSeconds`")
	ErrChanged = errors.New("it leaves out a file with Secrets, which has changed since")
	ErrNone    = errors.New("it has none of these files")
)

// New returns a store, or an error if the key cannot be used.
func New(o Options) (*Store, error) {
	s := &Store{options: o}
	_, err := s.key()
	return s, err
}

// The file is a line with the code that authenticates the rest, and the rest as JSON.
type content struct {
	Configuration string   `json:"configuration"`
	Folders       []folder `json:"folders"`
}

// folder is what one owner has of the files.
type folder struct {
	Name  string    `json:"name"`
	At    time.Time `json:"at"`
	Files []kept    `json:"files"`
}

type kept struct {
	Name      string      `json:"name"`
	Role      source.Role `json:"role,omitempty"`
	Root      string      `json:"root"`
	IsOutside bool        `json:"isOutside,omitempty"`
	IsUnused  bool        `json:"isUnused,omitempty"`
	Data      []byte      `json:"data,omitempty"`
	// Withheld is the code of a file with Secrets, whose contents are not kept.
	Withheld string `json:"withheld,omitempty"`
}

// A Part is the files of one folder that are in force, and when they were last without errors.
type Part struct {
	Folder string
	Files  *source.Source
	At     time.Time
}

// Keep keeps the files of all folders. Those that were kept a short while before are not written again.
func (s *Store) Keep(parts []Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all strings.Builder
	isNew := false
	for _, p := range parts {
		all.WriteString(p.Folder + "\n" + p.Files.Fingerprint() + "\n\n")
		isNew = isNew || p.At.Sub(s.at[p.Folder]) >= s.options.MaxAge/touches
	}
	if s.kept == all.String() && !isNew {
		return nil
	}
	key, err := s.key()
	if err != nil {
		return err
	}
	c, times := content{Configuration: s.options.Configuration, Folders: make([]folder, len(parts))},
		map[string]time.Time{}
	for i, p := range parts {
		c.Folders[i], times[p.Folder] = folderOf(&p, key), p.At
	}
	data, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	if err := s.write(append([]byte(code(key, data)+"\n"), data...)); err != nil {
		return err
	}
	s.kept, s.at = all.String(), times
	return nil
}

// folderOf returns what is kept of the files of a folder.
func folderOf(p *Part, key []byte) folder {
	f := folder{Name: p.Folder, At: p.At.UTC().Round(0), Files: make([]kept, len(p.Files.Files))}
	for i, file := range p.Files.Files {
		k := kept{Name: file.Name, Role: file.Role, Root: file.Root, IsOutside: file.IsOutside, IsUnused: file.IsUnused,
			Data: file.Data}
		if hasSecrets(&file) {
			k.Data, k.Withheld = nil, code(key, file.Data)
		}
		f.Files[i] = k
	}
	return f
}

// write replaces the file at once.
func (s *Store) write(data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(s.options.Path), "."+filepath.Base(s.options.Path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), s.options.Path)
}

// Restore returns the files of a folder that were kept, and when they were last without errors. now are the
// files as they are, of which those with Secrets are taken. The error says why the kept files are
// not used.
func (s *Store) Restore(name string, now *source.Source, at time.Time) (*source.Source, time.Time, error) {
	var f *folder
	c, err := s.read()
	if err == nil {
		f, err = s.usable(c, name, at)
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s may not be used: %w", s.options.Path, err)
	}
	key, err := s.key()
	if err != nil {
		return nil, time.Time{}, err
	}
	files := make([]source.File, len(f.Files))
	for i, k := range f.Files {
		data := k.Data
		if k.Withheld != "" {
			if data = contentOf(now, k.Name); !hmac.Equal([]byte(code(key, data)), []byte(k.Withheld)) {
				return nil, time.Time{}, fmt.Errorf("%s may not be used: %w: %s", s.options.Path, ErrChanged, k.Name)
			}
		}
		files[i] = source.File{Name: k.Name, Data: data, Role: k.Role, Root: k.Root, IsOutside: k.IsOutside,
			IsUnused: k.IsUnused}
	}
	restored := source.Of(files)
	restored.Dirs = now.Dirs
	return restored, f.At, nil
}

// usable returns the folder of a name if it may be used at a time.
func (s *Store) usable(c *content, name string, at time.Time) (*folder, error) {
	if c.Configuration != s.options.Configuration {
		return nil, ErrForeign
	}
	i := slices.IndexFunc(c.Folders, func(f folder) bool { return f.Name == name })
	if i < 0 {
		return nil, ErrNone
	}
	f := &c.Folders[i]
	if at.Sub(f.At) > s.options.MaxAge || f.At.Sub(at) > s.options.MaxAge { // a clock that is wrong is no younger file
		return nil, fmt.Errorf("%w: it is of %s", ErrOld, f.At.Format(time.RFC3339))
	}
	return f, nil
}

func (s *Store) read() (*content, error) {
	key, err := s.key()
	if err != nil {
		return nil, err
	}
	data, _, err := regular.Read(s.options.Path, maxBytes)
	if err != nil {
		return nil, err
	}
	mac, rest, _ := bytes.Cut(data, []byte("\n"))
	if !hmac.Equal(mac, []byte(code(key, rest))) {
		return nil, ErrForged
	}
	var c content
	if err := json.Unmarshal(rest, &c); err != nil {
		return nil, err
	}
	return &c, nil
}

func (s *Store) key() ([]byte, error) {
	data, _, err := regular.Read(s.options.KeyFile, maxKeyBytes)
	if err != nil {
		return nil, err
	}
	key := bytes.TrimSpace(data)
	if len(key) < minKeyBytes {
		return nil, fmt.Errorf("the key in %s must have at least %d bytes", s.options.KeyFile, minKeyBytes)
	}
	return key, nil
}

func code(key, data []byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(data) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

func contentOf(s *source.Source, name string) []byte {
	for i := range s.Files {
		if s.Files[i].Name == name {
			return s.Files[i].Data
		}
	}
	return nil
}

// hasSecrets reports whether a file has an object of Kubernetes' kind Secret, or may have one.
func hasSecrets(f *source.File) bool {
	if f.Role == source.Module || !bytes.Contains(f.Data, []byte("Secret")) && bytes.IndexByte(f.Data, '\\') < 0 {
		return false // neither the word, nor an escape that may be a part of it
	}
	objects, errs := manifest.Read(f.Name, f.Data)
	for _, o := range objects {
		if o.Kind == "Secret" || o.Kind == "SecretList" || o.Kind == "List" {
			return true
		}
	}
	return len(errs) > 0
}
