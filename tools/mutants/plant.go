package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// helpers are compiled into the package beside the faults. Its names cannot clash with any that people write.
//
// A test binary that is to record writes the number of each fault that is reached to a file, once: a fault that no test
// reaches survives without a run.
const helpers = `package %s

import (
	mutantOS "os"
	mutantStrconv "strconv"
	mutantAtomic "sync/atomic"
)

var mutantActive, _ = mutantStrconv.Atoi(mutantOS.Getenv("MUTANT"))

var mutantRecord, _ = mutantOS.OpenFile(mutantOS.Getenv("MUTANT_REACHED"), mutantOS.O_APPEND|mutantOS.O_WRONLY, 0)

var mutantReached [%d]mutantAtomic.Bool

func mutantOn(id int) bool {
	if mutantRecord != nil && !mutantReached[id].Swap(true) {
		mutantRecord.WriteString(mutantStrconv.Itoa(id) + "\n")
	}
	return id == mutantActive
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

func mutantNegated[T mutantNumber](id int, v T) T {
	if mutantOn(id) {
		return -v
	}
	return v
}

func mutantMore[T mutantNumber](id int, v T) T {
	if mutantOn(id) {
		return v + 1
	}
	return v
}
`

// A planter writes a file again with its faults.
type planter struct {
	fset  *token.FileSet
	text  []byte
	spots map[ast.Node]*spot // those that have a fault
}

// plant returns the text of a file with all faults of its spots that have a number.
func plant(fset *token.FileSet, file *ast.File, text []byte, spots []*spot) []byte {
	p := &planter{fset: fset, text: text, spots: map[ast.Node]*spot{}}
	for _, s := range spots {
		for _, f := range s.faults {
			if f.id != 0 {
				p.spots[s.node] = s
			}
		}
	}
	return []byte(p.inside(file, 0, len(text)))
}

// inside writes the text between two offsets of a node, with the faults of the nodes inside it.
func (p *planter) inside(n ast.Node, from, to int) string {
	var b strings.Builder
	ast.Inspect(n, func(child ast.Node) bool {
		if child == nil || child == n {
			return child != nil
		}
		if child.Pos() == token.NoPos || p.spots[child] == nil {
			return true
		}
		start, end := p.offset(child.Pos()), p.offset(child.End())
		if start < from || end > to {
			return true
		}
		b.Write(p.text[from:start])
		b.WriteString(p.spot(p.spots[child], start, end))
		from = end
		return false
	})
	b.Write(p.text[from:to])
	return b.String()
}

func (p *planter) offset(pos token.Pos) int { return p.fset.Position(pos).Offset }

// node writes a node with its faults.
func (p *planter) node(n ast.Node) string {
	start, end := p.offset(n.Pos()), p.offset(n.End())
	if s := p.spots[n]; s != nil {
		return p.spot(s, start, end)
	}
	return p.inside(n, start, end)
}

func (p *planter) spot(s *spot, start, end int) string {
	text := p.inside(s.node, start, end)
	switch id := s.faults[0].id; s.kind {
	case condition:
		return p.condition(s, text)
	case sum:
		return fmt.Sprintf("mutantNegated[%s](%d, %s)", s.typed, id, text)
	case number:
		return fmt.Sprintf("mutantMore[%s](%d, %s)", s.typed, id, text)
	case statement:
		return fmt.Sprintf("if !mutantOn(%d) { %s }", id, text)
	default:
		return fmt.Sprintf("{ if mutantOn(%d) { return %s }; %s", id, s.typed, text[1:])
	}
}

// condition writes each variant behind the question whether it is active, and last the condition as it was written.
func (p *planter) condition(s *spot, text string) string {
	var variants, none strings.Builder
	for i, f := range s.faults {
		if f.id == 0 {
			continue
		}
		variant := "!(" + text + ")"
		if b, ok := s.node.(*ast.BinaryExpr); ok {
			variant = p.node(b.X) + " " + s.to[i] + " " + p.node(b.Y)
			if s.to[i] == "&&" {
				variant = "(" + p.node(b.X) + ") && (" + p.node(b.Y) + ")"
			}
		}
		fmt.Fprintf(&variants, "mutantOn(%d) && (%s) || ", f.id, variant)
		fmt.Fprintf(&none, "!mutantOn(%d) && ", f.id)
	}
	return "(" + variants.String() + none.String() + "(" + text + "))"
}
