package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/document"
)

// maxDataNodes bounds the values in a bundle's data, and maxDataDepth how deep they are nested.
const (
	maxDataNodes = 4 << 20
	maxDataDepth = 256
)

// folder is a place in the document data: what its own files say of it, and the places below.
type folder struct {
	own   []rego.Value
	below map[string]*folder
}

// dataOf reads the data files. A file's path in the document data is the path of its folder in the
// bundle, within the roots.
func dataOf(all []entry, roots []string, o *Options) (rego.Value, error) {
	root := &folder{}
	for _, e := range all {
		if !isData(path.Base(e.path)) {
			continue
		}
		at := root
		dir := path.Dir(e.path)
		if dir == "." {
			dir = ""
		}
		for name := range strings.SplitSeq(dir, "/") {
			if name != "" {
				at = at.folder(name)
			}
		}
		v, err := readData(&e, dir, roots, o)
		if err != nil {
			return rego.Value{}, fmt.Errorf("bundle load failed on /%s: %w", e.path, err)
		}
		at.own = append(at.own, v)
	}
	return root.value("")
}

func (f *folder) folder(name string) *folder {
	if f.below == nil {
		f.below = map[string]*folder{}
	}
	if f.below[name] == nil {
		f.below[name] = &folder{}
	}
	return f.below[name]
}

// value joins what the files say of a place. Two files must not say different things of one.
func (f *folder) value(at string) (rego.Value, error) {
	all := f.own
	if len(f.below) > 0 || len(all) == 0 {
		members := make([]rego.Member, 0, len(f.below))
		for _, name := range slices.Sorted(maps.Keys(f.below)) {
			v, err := f.below[name].value(at + "/" + name)
			if err != nil {
				return rego.Value{}, err
			}
			members = append(members, rego.Member{Name: name, Value: v})
		}
		all = append(all, rego.Object(members...))
	}
	joined := all[0]
	for _, more := range all[1:] {
		var ok bool
		if joined, ok = rego.Join(joined, more); !ok {
			return rego.Value{}, fmt.Errorf("two data files say different things of '%s'", at+"/")
		}
	}
	return joined, nil
}

// readData reads a data file.
func readData(e *entry, dir string, roots []string, o *Options) (rego.Value, error) {
	text := e.text
	if isYAML(path.Base(e.path)) {
		var err error
		if text, err = readYAML(text, o); err != nil {
			return rego.Value{}, err
		}
	}
	limits := document.Limits{Bytes: max(len(text), 1), Depth: maxDataDepth, Nodes: maxDataNodes}
	if o.Memory != nil {
		limits.Memory = o.Memory
	}
	d, err := document.Parse(text, limits)
	if err != nil {
		var at *document.Error
		if errors.As(err, &at) && at.Code == document.NoMemory {
			return rego.Value{}, errNoMemory
		}
		return rego.Value{}, fmt.Errorf("the data: %w", err)
	}
	defer d.Release()
	if dir == "" && d.Root().Kind() != document.Object {
		return rego.Value{}, fmt.Errorf("must hold an object, not %s", d.Root().Kind().WithArticle())
	}
	if at := outside(d.Root(), dir, roots); at != "" {
		return rego.Value{}, fmt.Errorf("manifest roots %v do not permit data at path '/%s'", roots, at)
	}
	v, err := rego.ValueWithin(d.Root(), o.Memory)
	if errors.Is(err, rego.ErrNoMemory) {
		return rego.Value{}, errNoMemory
	}
	if err != nil {
		return rego.Value{}, fmt.Errorf("the data: %w", err)
	}
	return v, nil
}

// readYAML makes JSON of YAML, which means what it means to OPA.
func readYAML(text []byte, o *Options) ([]byte, error) {
	weight, err := o.weighYAML(text)
	if err != nil {
		return nil, err
	}
	if !o.take(weight) {
		return nil, errNoMemory
	}
	defer o.giveBack(weight)
	var v any
	if err := util.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// outside returns the path of data that is not below a root; empty if all is.
func outside(n document.Node, at string, roots []string) string {
	if opa.RootPathsContain(roots, at) {
		return ""
	}
	leads := slices.ContainsFunc(roots, func(root string) bool { return at == "" || strings.HasPrefix(root, at+"/") })
	if !leads || n.Kind() != document.Object {
		return at
	}
	for m := n.Children(); m.Valid(); m.Next() {
		if found := outside(m.Node(), strings.TrimPrefix(at+"/"+m.Key(), "/"), roots); found != "" {
			return found
		}
	}
	return ""
}
