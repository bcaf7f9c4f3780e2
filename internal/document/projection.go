package document

import (
	"errors"
	"maps"
	"slices"
)

// A Projection says which objects and lists in a value are read. The value itself is read, with all of its
// scalars.
type Projection struct {
	Members map[string]*Projection // by name; nil for one that is not read
	Others  *Projection            // of every other member, nil if they are not read
	Items   *Projection            // of every item of a list, nil if they are not read
}

// Along adds what a path of members leads through.
func (p *Projection) Along(path ...string) {
	for _, key := range path {
		if p.Members == nil {
			p.Members = map[string]*Projection{}
		}
		next, found := p.Members[key]
		if !found {
			next = p.Others
		}
		if next == nil {
			next = new(Projection)
		}
		p.Members[key] = next
		p = next
	}
}

// An Outline has the reader pass over the objects and lists that are not among its Parts: of these it
// finds the end, by brackets and strings alone, and reads no other byte of them: they may be no JSON,
// and deeper than the limit. In the document they look as if they were empty, so that nothing but the
// Parts may be looked at or edited. They are printed as they came.
//
// What is read is read as strictly as ever. If anything is wrong in it, or if the end of what is
// passed over cannot be found, all of the text is read, and the error is the one that says.
type Outline struct{ steps []outlineStep }

// An outlineStep is Parts with numbers of others; 0, the root's, stands for one that is not read.
type outlineStep struct {
	names         Names
	members       []uint32 // by name
	others, items uint32
}

// NewOutline prepares the Outline for an object.
func NewOutline(root *Projection) *Outline {
	o := new(Outline)
	o.add(root, map[*Projection]uint32{})
	return o
}

// add adds a step and those behind it, and returns its number. A projection may lead back to itself: numbers has the
// ones that were added.
func (o *Outline) add(p *Projection, numbers map[*Projection]uint32) uint32 {
	if p == nil {
		return 0
	}
	if number, found := numbers[p]; found {
		return number
	}
	number := len(o.steps)
	numbers[p] = uint32(number)
	o.steps = append(o.steps, outlineStep{})
	names := slices.Sorted(maps.Keys(p.Members))
	step := outlineStep{names: NewNames(names), others: o.add(p.Others, numbers), items: o.add(p.Items, numbers)}
	for _, name := range names {
		step.members = append(step.members, o.add(p.Members[name], numbers))
	}
	o.steps[number] = step
	return uint32(number)
}

// inside is the step of a container within one with the step number; 0 if it is not read.
func (o *Outline) inside(number uint32, d *Document, e *entry) uint32 {
	step := &o.steps[number]
	if e.meta&flagMember == 0 {
		return step.items
	}
	if i := step.names.find(d, e); i >= 0 {
		return step.members[i]
	}
	return step.others
}

// errOutline says that a text cannot be read by an Outline; all of it is read then, for whatever reason.
var errOutline = errors.New("the text has to be read as a whole")

// choose begins the container of the latest entry t at i if it is in the outline, and else passes
// over it. It returns where the scanner goes on. Without an outline the container is too deep.
//
// While a container is open, its entry's next is the number of its step. Each container within it
// comes here, because depth, which counts the open ones down, is never more than 0.
func (s *scanner) choose(i int, t *entry) int {
	if s.limits.Outline == nil {
		return s.fail(i, s.n-1, TooDeep, msgTooDeep(s.limits.Depth))
	}
	if open := 1 - s.depth; open >= s.limits.Depth {
		return broken
	}
	if step := s.limits.Outline.inside(s.entry(s.node).next, s.d, t); step != 0 {
		t.next = step
		return s.open(i, t, s.src[i])
	}
	end := s.d.skipper.skip(s.src, i)
	t.off, t.end, t.last, t.count = uint32(i), uint32(end), 0, 0
	t.meta |= kindOf(s.src[i])
	return end
}
