package cel

import (
	"github.com/admission-gateway/gateway/internal/cel/plan"
	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A Sequence is conditions that are evaluated one after another over the same variables, such as
// the validations of a policy. The frame is prepared once for conditions that follow each other and
// are true, which takes longer than most of them. Each has its own limit, and costs what it costs
// alone. A Sequence is immutable and safe for concurrent use.
type Sequence struct {
	programs []*Program
	size     plan.FrameSize // the most that one with a native plan needs
}

// NewSequence returns the sequence of some conditions.
func NewSequence(programs []*Program) Sequence {
	s := Sequence{programs: programs, size: plan.FrameSize{Native: true}}
	var roots [value.Slots]bool
	for _, p := range programs {
		if !p.size.Native {
			continue
		}
		s.size.Locals = max(s.size.Locals, p.size.Locals)
		for _, slot := range p.size.Roots {
			if !roots[slot] {
				roots[slot] = true
				s.size.Roots = append(s.size.Roots, slot)
			}
		}
	}
	return s
}

// Next evaluates conditions from position i on, up to the first that is not true. It returns the
// position of that one, and its error, an [*Error], if it has no value; if all are true it returns
// how many there are. The conditions after it are evaluated by a further call.
func (s *Sequence) Next(f *Frame, v *Vars, i int) (int, error) {
	for i < len(s.programs) {
		isTrue, err := false, error(nil)
		if p := s.programs[i]; f.own.tracer == nil && p.joins() {
			i, isTrue, err = s.run(f, v, i)
		} else {
			isTrue, err = p.EvalBool(f, v)
		}
		if err != nil || !isTrue {
			return i, err
		}
		i++
	}
	return i, nil
}

// joins reports whether the program can share the preparation of the frame with others.
func (p *Program) joins() bool { return p.test != nil && p.observed == nil }

// run evaluates the conditions from position i on that can be evaluated together, up to the first
// that is not true. It returns the position and the result of the last one that it evaluated.
func (s *Sequence) run(f *Frame, v *Vars, i int) (last int, isTrue bool, err error) {
	last = i
	p := s.programs[i]
	f.enter(p, &s.size, v)
	defer f.finish(&err)
	for {
		switch p.test(&f.Machine) {
		case plan.IsTrue:
		case plan.IsFalse:
			return last, false, nil
		default:
			return last, false, p.failure(f.Err, "bool")
		}
		if last+1 == len(s.programs) || !s.programs[last+1].joins() {
			return last, true, nil
		}
		last++
		p = s.programs[last]
		f.program = p
		f.Again(p.optionalOld, ExpressionLimit)
	}
}
