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
	kept string    // the hash of what was kept last
	at   time.Time // when
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
)

// New returns a store, or an error if the key cannot be used.
func New(o Options) (*Store, error) {
	s := &Store{options: o}
	_, err := s.key()
	return s, err
}

// The file is a line with the code that authenticates the rest, and the rest as JSON.
type content struct {
	At            time.Time `json:"at"`
	Configuration string    `json:"configuration"`
	Files         []kept    `json:"files"`
}

type kept struct {
	Name      string      `json:"name"`
	Role      source.Role `json:"role,omitempty"`
	Root      string      `json:"root"`
	IsOutside bool        `json:"isOutside,omitempty"`
	Data      []byte      `json:"data,omitempty"`
	// Withheld is the code of a file with Secrets, whose contents are not kept.
	Withheld string `json:"withheld,omitempty"`
}

// Keep keeps files that are in force at a time. Files that were kept a short while before are not
// written again.
func (s *Store) Keep(files *source.Source, at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == files.Fingerprint() && at.Sub(s.at) < s.options.MaxAge/touches {
		return nil
	}
	key, err := s.key()
	if err != nil {
		return err
	}
	c := content{At: at.UTC().Round(0), Configuration: s.options.Configuration, Files: make([]kept, len(files.Files))}
	for i, f := range files.Files {
		k := kept{Name: f.Name, Role: f.Role, Root: f.Root, IsOutside: f.IsOutside, Data: f.Data}
		if hasSecrets(&f) {
			k.Data, k.Withheld = nil, code(key, f.Data)
		}
		c.Files[i] = k
	}
	data, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	if err := s.write(append([]byte(code(key, data)+"\n"), data...)); err != nil {
		return err
	}
	s.kept, s.at = files.Fingerprint(), at
	return nil
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

// Restore returns the files that were kept, and when they were last without errors. now are the
// files as they are, of which those with Secrets are taken. The error says why the kept files are
// not used.
func (s *Store) Restore(now *source.Source, at time.Time) (*source.Source, time.Time, error) {
	c, err := s.read()
	switch {
	case err != nil:
	case c.Configuration != s.options.Configuration:
		err = ErrForeign
	case at.Sub(c.At) > s.options.MaxAge || c.At.Sub(at) > s.options.MaxAge: // a clock that is wrong is no younger file
		err = fmt.Errorf("%w: it is of %s", ErrOld, c.At.Format(time.RFC3339))
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s may not be used: %w", s.options.Path, err)
	}
	key, err := s.key()
	if err != nil {
		return nil, time.Time{}, err
	}
	files := make([]source.File, len(c.Files))
	for i, k := range c.Files {
		data := k.Data
		if k.Withheld != "" {
			if data = contentOf(now, k.Name); !hmac.Equal([]byte(code(key, data)), []byte(k.Withheld)) {
				return nil, time.Time{}, fmt.Errorf("%s may not be used: %w: %s", s.options.Path, ErrChanged, k.Name)
			}
		}
		files[i] = source.File{Name: k.Name, Data: data, Role: k.Role, Root: k.Root, IsOutside: k.IsOutside}
	}
	restored := source.Of(files)
	restored.Dirs = now.Dirs
	return restored, c.At, nil
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
