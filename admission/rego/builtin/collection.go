package builtin

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// members is a container that has at most the members of the operands.
func members(o operands) need { return need{memory: 256 + multiply(itemBytes, o.count())} }

// sorted is a list that is sorted. To compare numbers that are no whole ones takes longest.
func sorted(o operands) need {
	n := int64(lenOf(o.of[0]))
	each := int64(2)
	forEach(o.of[0].Value, func(t *ast.Term) {
		if number, ok := t.Value.(ast.Number); ok {
			if _, ok := number.Int64(); !ok {
				each = max(each, 24+square(int64(len(number)), 64))
			}
		}
	})
	return need{memory: 64 * n, steps: multiply(each, n*int64(bits.Len64(uint64(n))))}
}

// merged is a copy of all that the operands have.
func merged(o operands) need {
	sum := int64(0)
	for i := range o.of {
		sum = add(sum, multiply(4, o.deep(i)))
	}
	return need{memory: 256 + sum}
}

// flattened is a list of the items of lists.
func flattened(o operands) need {
	count := int64(lenOf(o.of[0]))
	forEach(o.of[0].Value, func(t *ast.Term) {
		if nested, ok := t.Value.(*ast.Array); ok {
			count += int64(nested.Len())
		}
	})
	return need{memory: 256 + 64*count}
}

// united is a set of the members of sets.
func united(o operands) need {
	count := int64(0)
	forEach(o.of[0].Value, func(t *ast.Term) { count += int64(lenOf(t)) })
	return need{memory: 256 + multiply(itemBytes, count), steps: count}
}

// filtered is an object without, or with only, what paths lead to. Each step of a path makes an
// object.
func filtered(o operands) need {
	steps, bytes := int64(0), int64(0)
	forEach(o.of[1].Value, func(t *ast.Term) {
		if s, ok := t.Value.(ast.String); ok {
			steps += 1 + int64(strings.Count(string(s), "/"))
			bytes += int64(len(s))
			return
		}
		steps += int64(lenOf(t))
	})
	if made := add(4*bytes, multiply(640, steps)); made > o.left {
		return need{memory: made}
	} else {
		return need{memory: add(256+made, multiply(4, o.deep(0)))}
	}
}

// walked is a value whose parts come one by one, each with a path, which is paid for as it comes.
func walked(o operands) need { return need{memory: 256 + multiply(64, int64(lenOf(o.of[0])))} }

// maxNested is how deep a value can become that operations make.
const maxNested = maxParsed

// patched is a value that operations change. A step of a path through a list renumbers what the
// operations put there.
func patched(o operands) need {
	operations, ok := o.of[1].Value.(*ast.Array)
	if !ok {
		return need{}
	}
	size := add(o.deep(0), o.deep(1))
	if size > o.left {
		return need{memory: size}
	}
	longest := max(longestList(o.of[0].Value), longestList(o.of[1].Value)) + int64(operations.Len())
	depth := int64(depthOf(o.of[0].Value, maxNested))
	whole := o.deep(0)
	n := need{memory: add(4096, multiply(4, size))}
	operations.Foreach(func(t *ast.Term) {
		operation, ok := t.Value.(ast.Object)
		if !ok || n.steps > o.left {
			return
		}
		op := ""
		if t := operation.Get(ast.InternedTerm("op")); t != nil {
			op = textOf(t)
		}
		lists, path := stepsOf(operation.Get(ast.InternedTerm("path")))
		more, from := stepsOf(operation.Get(ast.InternedTerm("from")))
		times := int64(1)
		if op == "replace" || op == "move" {
			times = 2
		}
		n.memory = add(n.memory, 640*(path+from))
		n.steps = add(n.steps, add(64*(1+path+from), multiply(4*times*(lists+more), longest)))
		switch op {
		case "test":
			n.steps = add(n.steps, whole)
		case "move", "copy":
			n.steps = add(n.steps, whole)
			depth = max(depth, path+depth-min(from, depth-1))
			whole = add(whole, whole)
		default:
			if value := operation.Get(ast.InternedTerm("value")); value != nil {
				depth = max(depth, path+int64(depthOf(value.Value, maxNested)))
				whole = add(whole, sizeOf(value.Value, o.left, deepest))
			}
		}
		if depth > maxNested {
			n.steps = o.left + 1
		}
	})
	n.memory = add(n.memory, frameBytes*min(depth, maxNested))
	return n
}

// stepsOf returns how many steps a path has, and how many of them may go into the middle of a list.
func stepsOf(path *ast.Term) (lists, steps int64) {
	if path == nil {
		return 0, 0
	}
	switch v := path.Value.(type) {
	case ast.String:
		for step := range strings.SplitSeq(string(v), "/") {
			steps++
			if step != "" && strings.Trim(step, "0123456789") == "" {
				lists++
			}
		}
	case *ast.Array:
		v.Foreach(func(t *ast.Term) {
			steps++
			if _, ok := t.Value.(ast.String); !ok {
				lists++
			} else if _, err := strconv.Atoi(textOf(t)); err == nil {
				lists++
			}
		})
	}
	return lists, steps
}

// longestList returns how long the longest list or set is in a value.
func longestList(v ast.Value) (longest int64) {
	if isScalar(v) {
		return 0
	}
	look := func(t *ast.Term) { longest = max(longest, longestList(t.Value)) }
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(look)
		longest = max(longest, int64(v.Len()))
	case ast.Set:
		v.Foreach(look)
		longest = max(longest, int64(v.Len()))
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { look(t) })
	}
	return longest
}

// queried is the text of a query that an object has.
func queried(o operands) need { return need{memory: add(1024, multiply(16, o.deep(0)))} }

// parameters is an object of the parameters in the text of a query.
func parameters(o operands) need {
	pairs := int64(strings.Count(o.text(0), "&")) + 1
	return need{memory: parsedBytes*pairs + 8*o.len(0)}
}
