package builtin

import (
	"encoding/json"
	"math"

	"github.com/open-policy-agent/opa/v1/ast"
	gqlast "github.com/vektah/gqlparser/v2/ast"
	gqlparser "github.com/vektah/gqlparser/v2/parser"
)

const (
	wordBytes  = 6 << 10  // a word of GraphQL, parsed, written as JSON, and read again
	levelBytes = 16 << 10 // a level of nesting (that JSON has three)
	schemaRoom = 1 << 20  // what the schema takes that each schema includes
)

// words returns how many words a text in GraphQL has, and how deep it is nested. The library calls
// itself for each level.
func words(text string) (count, deepest int64) {
	depth := int64(0)
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '#':
			for i < len(text) && text[i] != '\n' && text[i] != '\r' {
				i++
			}
		case c == '"':
			count++
			i = endOfText(text, i)
		case c == '{' || c == '[' || c == '(':
			count++
			i++
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']' || c == ')':
			count++
			i++
			depth--
		case c <= ' ' || c == ',':
			i++
		case isWord(c) && c != '/':
			count++
			for i < len(text) && isWord(text[i]) && text[i] != '/' {
				i++
			}
		default:
			count++
			i++
		}
	}
	return count, deepest
}

// endOfText returns the end of a string that begins at i.
func endOfText(text string, i int) int {
	if len(text) >= i+3 && text[i:i+3] == `"""` {
		for i += 3; i < len(text); i++ {
			if text[i] == '\\' && len(text) >= i+4 && text[i+1:i+4] == `"""` {
				i += 3
			} else if len(text) >= i+3 && text[i:i+3] == `"""` {
				return i + 3
			}
		}
		return len(text)
	}
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"', '\n', '\r':
			return i + 1
		}
	}
	return len(text)
}

// document is a query or a schema that is parsed.
func (o operands) document(i int) need {
	if s, ok := o.of[i].Value.(ast.String); ok {
		count, depth := words(string(s))
		return need{
			memory: add(multiply(wordBytes, count), add(multiply(levelBytes, depth), 8*int64(len(s)))),
			steps:  multiply(frameBytes/2, depth),
		}
	}
	return need{memory: add(multiply(64, o.deep(i)), multiply(levelBytes, int64(depthOf(o.of[i].Value, maxParsed)))/4)}
}

// parsedQuery and parsedSchema are objects of a text.
func parsedQuery(o operands) need  { return o.document(0) }
func parsedSchema(o operands) need { return o.document(0) }

// schemaSteps is the cost of checking a schema, in which each word may stand for a type.
func (o operands) schemaSteps(i int) int64 {
	count := int64(0)
	if s, ok := o.of[i].Value.(ast.String); ok {
		count, _ = words(string(s))
	} else {
		count = nodesOf(o.of[i].Value, o.left)
	}
	return square(count, 8)
}

// checkedSchema is a schema that is checked.
func checkedSchema(o operands) need {
	n := o.document(0)
	return need{memory: add(schemaRoom, n.memory), steps: add(n.steps, o.schemaSteps(0))}
}

// checkedQuery is a query that is checked by a schema.
func checkedQuery(o operands) need {
	query, schema := o.document(0), o.document(1)
	return need{
		memory: add(schemaRoom, add(query.memory, schema.memory)),
		steps:  add(query.steps, add(schema.steps, o.schemaSteps(1))),
	}
}

// comparedFields is the check of a query: each of its fields is compared with each other one of its
// name, and the fields of fragments as often as they are named.
func comparedFields(o operands) need {
	fields, pairs := fieldsOf(o.of[0].Value)
	return need{memory: multiply(parsedBytes, fields), steps: multiply(128, pairs)}
}

// fieldsOf returns how many fields a query has, fragments included, and how many pairs of them may
// share a name; the most there can be if a fragment is in itself. It is asked about queries that
// are small.
func fieldsOf(query ast.Value) (fields, pairs int64) {
	document, err := documentOf(query)
	if err != nil || document == nil {
		return 0, 0
	}
	c := selections{document: document, known: map[string]int64{}, names: map[string]int64{}}
	sum := int64(0)
	for _, operation := range document.Operations {
		if operation != nil {
			sum = add(sum, c.count(operation.SelectionSet))
		}
	}
	for _, fragment := range document.Fragments {
		if fragment != nil {
			sum = add(sum, c.count(fragment.SelectionSet))
		}
	}
	if c.hasSpreads {
		return sum, multiply(sum, sum)
	}
	for _, count := range c.names {
		pairs = add(pairs, multiply(count, count))
	}
	return sum, pairs
}

func documentOf(query ast.Value) (*gqlast.QueryDocument, error) {
	if s, ok := query.(ast.String); ok {
		return gqlparser.ParseQuery(&gqlast.Source{Input: string(s)})
	}
	plain, err := ast.JSON(query)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	var document gqlast.QueryDocument
	return &document, json.Unmarshal(text, &document)
}

// selections count the fields of selections.
type selections struct {
	document *gqlast.QueryDocument
	known    map[string]int64 // the fields of fragments

	names      map[string]int64 // how many fields there are of a name
	hasSpreads bool
}

func (c *selections) count(set gqlast.SelectionSet) int64 {
	sum := int64(0)
	for _, s := range set {
		switch s := s.(type) {
		case *gqlast.Field:
			c.names[s.Alias]++
			sum = add(sum, 1+int64(len(s.Arguments)+len(s.Directives)))
			sum = add(sum, c.count(s.SelectionSet))
		case *gqlast.InlineFragment:
			sum = add(sum, add(1, c.count(s.SelectionSet)))
		case *gqlast.FragmentSpread:
			c.hasSpreads = true
			sum = add(sum, add(1, c.fragment(s.Name)))
		}
	}
	return sum
}

func (c *selections) fragment(name string) int64 {
	if sum, ok := c.known[name]; ok {
		return sum
	}
	c.known[name] = math.MaxInt64 // while it is counted
	sum := int64(0)
	if of := c.document.Fragments.ForName(name); of != nil {
		sum = c.count(of.SelectionSet)
	}
	c.known[name] = sum
	return sum
}
