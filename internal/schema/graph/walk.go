package graph

import (
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/schema/list"
	"github.com/admission-gateway/gateway/internal/schema/wording"
)

// markers is the begin of a set of members or items among the marks of a walk; none if no caller needs them.
type markers int

const none markers = -1

// newMarkers begins a set of at most n.
func (w *walk) newMarkers(n int) markers {
	m := markers(len(w.marks))
	for range (n + 63) / 64 {
		w.marks = append(w.marks, 0)
	}
	return m
}

func (w *walk) mark(m markers, i int) {
	if m != none {
		w.marks[int(m)+i/64] |= 1 << (i % 64)
	}
}

func (w *walk) isMarked(m markers, i int) bool { return w.marks[int(m)+i/64]>>(i%64)&1 != 0 }

func (w *walk) markAll(m markers, n int) {
	for i := range n {
		w.mark(m, i)
	}
}

// walk is one check of a value.
type walk struct {
	use        Use
	except     *document.Names // members of the whole whose values are not looked at; nil if there are none
	files      *document.Names // members of the whole whose texts are names of files; nil if there are none
	top        document.Node
	frames     []frame
	failures   []Failure
	more       int
	probing    int  // nesting of checks that only ask whether, not what
	choosing   int  // nesting of alternatives
	explaining int  // nesting of explanations
	isWrong    bool // the short way has found that something is
	score      int  // how much of the value is right
	budget     int
	marks      []uint64 // sets of members and items, see markers
	items      list.Items
	repeated   []document.Node
	decoded    []byte // of text
}

// frame is a schema and the value that is checked against it.
type frame struct {
	schema *node
	node   document.Node
	index  int // of the item of a list that is looked at
}

var walks = sync.Pool{New: func() any { return &walk{} }}

// Work that a walk may do: schemas that it applies to a value.
const (
	baseBudget  = 1 << 20
	valueBudget = 64
)

// kept bounds what a walk that is given back keeps of each of its lists.
const kept = 4 << 10

// release gives the walk back without anything of the value.
func (w *walk) release() {
	clear(w.failures)
	clear(w.frames[:cap(w.frames)])
	clear(w.repeated[:cap(w.repeated)])
	w.items.Release()
	frames, failures, marks, repeated, decoded := w.frames[:0], w.failures[:0], w.marks[:0], w.repeated[:0],
		w.decoded[:0]
	if cap(repeated) > kept {
		repeated = nil
	}
	if cap(decoded) > kept {
		decoded = nil
	}
	if cap(marks) > kept {
		marks = nil
	}
	if cap(frames) > kept {
		frames = nil
	}
	*w = walk{frames: frames, failures: failures, marks: marks, items: w.items, repeated: repeated, decoded: decoded}
	walks.Put(w)
}

// fails reports whether a failure is all that matters: nothing has to be said of it.
func (w *walk) fails() bool {
	if w.probing > 0 {
		return true
	}
	if len(w.failures) >= MaxFailures {
		w.more++
		return true
	}
	return false
}

func (w *walk) add(at document.Node, err *field.Error) {
	w.failures = append(w.failures, Failure{Err: err, At: at})
}

// str is the value of a string until the next call.
func (w *walk) str(v document.Node) string {
	if s, ok := v.Text(); ok {
		return s
	}
	w.decoded = v.AppendStr(w.decoded[:0])
	return unsafe.String(unsafe.SliceData(w.decoded), len(w.decoded))
}

// path is the place of a value within the whole: names that its schema lists stand behind dots, and
// other keys in brackets.
func (w *walk) path(v document.Node) *field.Path {
	if v == w.top || !v.Valid() {
		return nil
	}
	of := v.Parent()
	path := w.path(of)
	if of.Kind() == document.Array {
		return path.Index(w.indexIn(of))
	}
	if w.isKey(of, v) {
		return path.Key(wording.Clip(v.Key()))
	}
	return path.Child(wording.Clip(v.Key()))
}

// indexIn is the position of the item of a list that is looked at.
func (w *walk) indexIn(list document.Node) int {
	for i := len(w.frames) - 1; i >= 0; i-- {
		if f := &w.frames[i]; f.node == list && f.schema.list != nil {
			return f.index
		}
	}
	return 0
}

// isKey reports whether the name of a member is one that clients choose.
func (w *walk) isKey(of, member document.Node) bool {
	isKey := false
	for i := range w.frames {
		f := &w.frames[i]
		if f.node != of || f.schema.object == nil {
			continue
		}
		o := f.schema.object
		if i := o.names.Member(member); i >= 0 && o.properties[i].schema != nil {
			return false
		}
		isKey = isKey || o.additional != nil && !o.additional.isNever || len(o.patterns) > 0
	}
	return isKey
}
