package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A place is where a walk is: the names and indexes that lead there from the root. Walks write it for every value they
// visit and read it only when something is wrong. The names are not copied.
type place struct {
	steps []step
}

type step struct {
	name  string // of a member
	index int    // of an item
	kind  stepKind
}

type stepKind uint8

const (
	stepMember stepKind = iota // of an object, by the name of a property
	stepKey                    // of a map
	stepItem                   // of a list
)

func (p *place) push(s step) { p.steps = append(p.steps, s) }
func (p *place) pop() {
	last := len(p.steps) - 1
	p.steps[last].name = "" // it belongs to a document
	p.steps = p.steps[:last]
}
func (p *place) at(i int)    { p.steps[len(p.steps)-1].index = i }
func (p *place) in(n string) { p.steps[len(p.steps)-1].name = n }
func (p *place) depth() int  { return len(p.steps) }

// as also says how the name is to be written.
func (p *place) as(name string, kind stepKind) {
	s := &p.steps[len(p.steps)-1]
	s.name, s.kind = name, kind
}

// path is the place as field errors write it, nil at the root.
func (p *place) path() *field.Path { return pathOf(p.steps) }

// outer is the path of the object or list that the place is in.
func (p *place) outer() *field.Path { return pathOf(p.steps[:len(p.steps)-1]) }

func pathOf(steps []step) *field.Path {
	var path *field.Path
	for _, s := range steps {
		switch s.kind {
		case stepMember:
			path = path.Child(clip(s.name))
		case stepKey:
			path = path.Key(clip(s.name))
		case stepItem:
			path = path.Index(s.index)
		}
	}
	return path
}

// unknown is the place as Kubernetes writes unknown fields: keys of maps stand behind dots, other than on the way to
// the metadata of embedded resources. The result has about limit bytes at most.
func (p *place) unknown(limit int, o origin) string {
	var b strings.Builder
	for i, s := range p.steps {
		if b.Len() > limit {
			b.WriteString("…")
			break
		}
		if s.kind == stepItem {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if s.kind == stepKey && o == inEmbeddedMetadata {
			b.WriteString("[" + clip(s.name) + "]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(clip(s.name))
	}
	return b.String()
}

// maxShown is how many bytes of a name or value of the request a message repeats.
const maxShown = 512

// clip copies a string of a document, shortened to what a message may repeat.
func clip(s string) string {
	if len(s) <= maxShown {
		return strings.Clone(s)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
