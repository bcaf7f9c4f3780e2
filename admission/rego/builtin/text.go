package builtin

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// linear is a function that makes at most times as many bytes as its strings have.
func linear(times int64) func(operands) need {
	return func(o operands) need {
		bytes := o.lens()
		return need{memory: textBytes + times*bytes, steps: bytes / 16}
	}
}

// joined is the strings of a list with another one between them.
func joined(o operands) need {
	bytes, count := texts(o.of[1])
	return need{memory: add(bytes, multiply(count, o.len(0)+8))}
}

// parts is the list of the parts of a string between separators.
func parts(o operands) need {
	count := int64(strings.Count(o.text(0), o.text(1)))
	return need{memory: multiply(itemBytes, count+1), steps: o.lens() / 16}
}

// replaced returns how long a string may be in which one part is replaced.
func replaced(s, old, with *ast.Term) int64 {
	return add(length(s), multiply(int64(strings.Count(textOf(s), textOf(old))), length(with)))
}

// replacement is a string in which a part is replaced. The part is searched for at each place, and
// compared with itself at each of its own.
func replacement(o operands) need {
	made := replaced(o.of[0], o.of[1], o.of[2])
	return need{memory: add(multiply(3, made), 4096+16*o.len(1)),
		steps: add(multiply(o.len(0), o.len(1))/16, square(o.len(1), 16))}
}

// replacements is a string in which many parts are replaced. They are looked for in a tree with a
// table for each part.
func replacements(o operands) need {
	patterns, ok := o.of[0].Value.(ast.Object)
	if !ok {
		return need{}
	}
	made, keys, longest := o.len(1), int64(0), int64(0)
	patterns.Until(func(k, v *ast.Term) bool {
		made = add(made, replaced(o.of[1], k, v))
		keys += length(k)
		longest = max(longest, length(k))
		return made > o.left
	})
	tree := add(multiply(int64(patterns.Len()), 2304), 96*keys)
	return need{memory: add(multiply(3, made), tree), steps: add(multiply(o.len(1), 1+longest)/4, square(longest, 16))}
}

// trimmed is a string without some letters at its ends: each letter is looked up among them.
func trimmed(o operands) need {
	letters := o.text(1)
	for i := range len(letters) {
		if letters[i] >= utf8.RuneSelf {
			return need{steps: multiply(o.len(0), o.len(1)) / 8}
		}
	}
	return need{steps: o.lens() / 16}
}

// affixes are the strings of two collections, which are copied and sorted.
func affixes(o operands) need {
	bytes, count := texts(o.of[0])
	more, others := texts(o.of[1])
	return need{memory: 2*(bytes+more) + 64*(count+others), steps: (bytes + more) + 16*(count+others)}
}

// printed is a text that sprintf makes: each verb may print any value in full, and the widths that
// it names. Values without a verb are printed, too.
func printed(o operands) need {
	format := o.text(0)
	args, ok := o.of[1].Value.(*ast.Array)
	if !ok {
		return need{}
	}
	verbs := int64(strings.Count(format, "%"))
	hasStars := strings.Contains(format, "*")
	largest, width, all, digits := int64(0), int64(0), int64(0), int64(0)
	for i := 0; i < args.Len() && all <= o.left; i++ {
		v := args.Elem(i).Value
		size := sizeOf(v, o.left, deepest)
		if n, ok := v.(ast.Number); ok {
			if digits = max(digits, int64(len(n))); strings.ContainsAny(string(n), "eE") {
				size += 320 // the zeros that the exponent stands for
			}
			if hasStars {
				stars, _ := strconv.ParseInt(string(n), 10, 64)
				width = max(width, min(max(stars, -stars), maxWidth))
			}
		}
		largest, all = max(largest, size), add(all, size)
	}
	made := add(int64(len(format)), multiply(verbs, add(largest, width)))
	made = add(add(made, widths(format)), add(all, 64*int64(args.Len())))
	return need{memory: add(256, add(multiply(3, made), multiply(3, all))), steps: multiply(verbs, square(digits, 64))}
}

// widths returns the sum of the widths that a format names.
func widths(format string) (sum int64) {
	for i := 0; i < len(format); {
		if !isDigit(format[i]) {
			i++
			continue
		}
		width := int64(0)
		for ; i < len(format) && isDigit(format[i]); i++ {
			width = min(width*10+int64(format[i]-'0'), maxWidth)
		}
		sum = add(sum, width)
	}
	return sum
}

// maxWidth is the largest width that package fmt prints.
const maxWidth = 1_000_000

// crossed is what print prints, and what a template string is made of: each combination of the
// members of sets.
func crossed(o operands) need {
	rows, bytes := int64(1), int64(0)
	forEach(o.of[0].Value, func(t *ast.Term) {
		if s, ok := t.Value.(ast.Set); ok {
			rows = multiply(rows, max(1, int64(s.Len())))
		}
		if bytes <= o.left {
			bytes = add(bytes, 32+sizeOf(t.Value, o.left, deepest))
		}
	})
	return need{memory: multiply(4, bytes), steps: multiply(rows, bytes)}
}
