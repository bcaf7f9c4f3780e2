package manifest

import (
	"github.com/admission-gateway/gateway/internal/document"
	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// keys are the keys of a mapping that were met, with their lines.
type keys struct {
	list  []keyLine
	index map[string]int // of many
}

type keyLine struct {
	key  string
	line int
}

const fewKeys = 16

func (k *keys) line(key string) (line int, met bool) {
	if k.index != nil {
		i, met := k.index[key]
		if !met {
			return 0, false
		}
		return k.list[i].line, true
	}
	for _, l := range k.list {
		if l.key == key {
			return l.line, true
		}
	}
	return 0, false
}

func (k *keys) add(key string, line int) {
	k.list = append(k.list, keyLine{key, line})
	switch {
	case k.index != nil:
		k.index[key] = len(k.list) - 1
	case len(k.list) > fewKeys:
		k.index = make(map[string]int, 2*len(k.list))
		for i, l := range k.list {
			k.index[l.key] = i
		}
	}
}

// merged is a member that a '<<' brings, with its value at from.json[start:end].
type merged struct {
	key        string
	at         position
	from       *text
	start, end int
}

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }

// mergeConflicts refuses a '<<' after a member that it would bring too: some readers let the merge win there, others
// the member.
func (t *translator) mergeConflicts(brought []merged, set *keys, at position, path string) bool {
	if len(set.list) == 0 {
		return true
	}
	bring := make(map[string]bool, len(brought))
	for _, m := range brought {
		bring[m.key] = true
	}
	for _, l := range set.list {
		if bring[l.key] {
			t.fail(at, path, "must have the merge key '<<' before `%s`, which it would bring too", l.key)
			return false
		}
	}
	return true
}

// merge returns the members that a '<<' brings: of a mapping, or of several. Among these the first
// to have a key wins.
func (t *translator) merge(n *yaml.Node, path string, depth int) ([]merged, bool) {
	out, size := t.text, t.size
	t.text, t.size = &text{bare: out.bare}, 0
	t.mark(positionOf(n))
	ok := t.value(n, path, depth)
	from, isWhole := t.text, t.size == len(t.json)
	t.text, t.size = out, size
	if !ok {
		return nil, false
	}
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, source := range sources {
		is := source
		if is.Kind == yaml.AliasNode {
			is = is.Alias
		}
		if is.Kind != yaml.MappingNode {
			t.fail(positionOf(source), path, "must merge a mapping or a list of mappings with '<<'")
			return nil, false
		}
	}
	if !isWhole {
		return nil, true // for an error that is certain
	}
	d, err := document.Parse(from.json, limitsOf(from.json)) // never released: its keys are kept
	if err != nil {
		t.fail(positionOf(n), path, notReadable, err)
		return nil, false
	}
	var brought []merged
	var seen keys
	add := func(source document.Node) {
		for m := source.First(); m.Valid(); m = m.Next() {
			key := m.Key()
			if _, twice := seen.line(key); twice {
				continue
			}
			offset, _ := m.Offset()
			at := from.position(offset)
			seen.add(key, at.line)
			start := offset + len(document.AppendString(nil, key)) + len(":")
			brought = append(brought, merged{key, at, from, start, start + len(m.Raw())})
		}
	}
	if root := d.Root(); root.Kind() == document.Object {
		add(root)
	} else {
		for source := root.First(); source.Valid(); source = source.Next() {
			add(source)
		}
	}
	return brought, true
}
