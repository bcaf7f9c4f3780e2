package builtin

import (
	"encoding/base64"
	"encoding/pem"

	"github.com/open-policy-agent/opa/v1/ast"
)

// digest is work on each byte of a text.
func digest(o operands) need { return need{memory: 1024, steps: o.lens() / 8} }

// certificates are what is in certificates: objects of many members, with numbers that are as long
// as the keys.
func certificates(o operands) need {
	bytes := o.len(0)
	return need{memory: 16<<10 + multiply(256, bytes), steps: square(bytes, 256)}
}

// keys are private keys, which are checked by calculating with them. The work grows with the third
// power of the longest.
func keys(o operands) need {
	n := need{memory: 16 << 10}
	for i := range o.of {
		bytes := o.len(i)
		if n.memory = add(n.memory, multiply(256, bytes)); n.memory > o.left {
			return n
		}
		n.steps = add(n.steps, keySteps(o.text(i)))
	}
	return n
}

// keySteps returns the cost of the keys in a text; each may be in a block of its own.
func keySteps(text string) (steps int64) {
	rest := []byte(text)
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
		rest = plain
	}
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			return add(steps, cube(int64(len(rest))))
		}
		steps = add(steps, cube(int64(len(block.Bytes))))
		rest = after
	}
}

// cube returns the cost of calculating with the numbers of a private key that has so many bytes.
func cube(bytes int64) int64 { return multiply(bytes, square(bytes, 2048)) }

// verified is a token whose signature is compared with what keys make of it.
func verified(o operands) need {
	n, _ := tokenOf(o.text(0))
	keys := int64(0)
	for _, t := range o.of[1:] {
		keys = add(keys, sizeOf(t.Value, o.left, deepest))
	}
	n.memory = add(n.memory, add(16<<10, multiply(64, keys)))
	n.steps = add(n.steps, add(square(keys, 128), o.len(0)/8))
	return n
}

// signed is a token that a private key signs.
func signed(o operands) need {
	n := need{memory: 16 << 10}
	for i := range o.of {
		n.memory = add(n.memory, multiply(32, o.deep(i)))
	}
	if n.memory > o.left {
		return n
	}
	n.steps = cube(longestText(o.of[2].Value))
	return n
}

// longestText returns how long the longest string is in a value.
func longestText(v ast.Value) (longest int64) {
	look := func(t *ast.Term) { longest = max(longest, longestText(t.Value)) }
	switch v := v.(type) {
	case ast.String:
		return int64(len(v))
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { look(t) })
	default:
		forEach(v, look)
	}
	return longest
}
