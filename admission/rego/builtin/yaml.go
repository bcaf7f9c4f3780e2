package builtin

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFlow is how deep a text in YAML is nested that its parser reads, with brackets and with lines.
const maxFlow = 20_000

// parsedYAML is a value that is made of a text in YAML.
func parsedYAML(o operands) need { return linesOf(o.text(0)) }

// aliasedYAML is what the aliases of a text stand for.
func aliasedYAML(o operands) need {
	text := o.text(0)
	if !strings.Contains(text, "*") || !strings.Contains(text, "&") {
		return need{}
	}
	values, depth := expandedYAML(text, o.left/parsedBytes)
	if depth > maxParsed {
		values = math.MaxInt64
	}
	return need{memory: multiply(2*parsedBytes, values), steps: multiply(8, values)}
}

// linesOf returns what a text takes by its lines and signs, as each may begin a value.
func linesOf(text string) need {
	values, open, deepest := int64(1), 0, 0
	indent, isStart := 0, true
	for i := range len(text) {
		c := text[i]
		switch c {
		case '\n':
			values++
			indent, isStart = 0, true
			continue
		case '[', '{':
			open++
			values++
		case ',', '*', '&', '!':
			values++
		case ':', '-', '?':
			if i+1 == len(text) || text[i+1] <= ' ' || c == ':' {
				values++
				indent++
			}
		}
		if isStart && c == ' ' {
			indent++
		} else {
			isStart = false
		}
		deepest = max(deepest, indent)
	}
	depth := int64(min(open+deepest+1, maxFlow))
	bytes := int64(len(text))
	n := need{memory: 16<<10 + 2*parsedBytes*values + 16*bytes + 2*frameBytes*depth, steps: bytes}
	if depth > 64 {
		n.steps += frameBytes * depth / 4
	}
	return n
}

// expandedYAML returns how many values a text has, and how deep they are nested, if each alias is
// what it stands for. It stops counting beyond most.
func expandedYAML(text string, most int64) (values, depth int64) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var root yaml.Node
	if decoder.Decode(&root) != nil {
		return 0, 0
	}
	c := expansion{most: most, known: map[*yaml.Node][2]int64{}}
	return c.count(&root)
}

// An expansion counts values. It goes into each node once.
type expansion struct {
	most  int64
	known map[*yaml.Node][2]int64
}

func (c *expansion) count(root *yaml.Node) (values, depth int64) {
	type visit struct {
		node *yaml.Node
		done bool
	}
	stack := []visit{{node: root}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.done {
			c.sum(at.node)
			continue
		}
		if _, ok := c.known[at.node]; ok {
			continue
		}
		c.known[at.node] = [2]int64{math.MaxInt64, math.MaxInt64} // while it is counted: what is in itself has no end
		stack = append(stack, visit{at.node, true})
		for _, part := range partsOf(at.node) {
			stack = append(stack, visit{node: part})
		}
	}
	sum := c.known[root]
	return sum[0], sum[1]
}

func partsOf(n *yaml.Node) []*yaml.Node {
	if n.Alias != nil {
		return []*yaml.Node{n.Alias}
	}
	return n.Content
}

func (c *expansion) sum(n *yaml.Node) {
	values, depth := int64(1), int64(0)
	for _, part := range partsOf(n) {
		sum := c.known[part]
		values, depth = add(values, sum[0]), max(depth, sum[1])
	}
	c.known[n] = [2]int64{values, add(depth, 1)}
}

// numbersInText returns the error about a number in a text.
func numbersInText(o operands) error { return checkNumbers(o.text(0)) }

// writtenYAML is the text of a value in YAML, with an indent before each line.
func writtenYAML(o operands) need {
	size := o.deep(0)
	if size > o.left {
		return need{memory: size}
	}
	nodes := nodesOf(o.of[0].Value, o.left)
	depth := int64(depthOf(o.of[0].Value, maxParsed))
	return need{memory: add(64<<10+multiply(32, size),
		add(multiply(4*parsedBytes, nodes), multiply(8, multiply(nodes, depth))))}
}
