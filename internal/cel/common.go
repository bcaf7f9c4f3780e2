package cel

import "strings"

// A Common has what the policies of one set have in common, so that it is made once: environments, expressions that
// were parsed, and what came of expressions that several policies have in the same place. It serves one goroutine, and
// nothing needs it once the set is compiled.
type Common struct {
	envs      map[envKey]*env
	typed     map[typedKey]*typedEnv // at most keptTyped
	parsed    map[string]*Parsed
	recent    []*Parsed // the trees that are kept, the oldest at next
	next      int
	positions map[positionKey]position
	made      map[madeKey]any
}

// NewCommon returns a Common for the policies of a set.
func NewCommon() *Common {
	return &Common{
		envs: map[envKey]*env{}, typed: map[typedKey]*typedEnv{}, parsed: map[string]*Parsed{},
		positions: map[positionKey]position{}, made: map[madeKey]any{},
	}
}

// keptTrees is how many expressions stay parsed. A policy is compiled and reviewed before the next one, and few have
// more.
const keptTrees = 64

// keptTyped is how many environments with types stay: they are large. Policies for the same kinds are reviewed one
// after another, and most need one or two.
const keptTyped = 64

// Parse returns an expression, which is parsed if that was not done lately.
func (c *Common) Parse(expression string) *Parsed {
	p := c.parsed[expression]
	if p == nil {
		p = &Parsed{text: expression, common: c}
		c.parsed[expression] = p
	}
	return p
}

// keep notes that an expression was parsed, and drops the oldest tree if there are too many.
func (c *Common) keep(p *Parsed) {
	if len(c.recent) < keptTrees {
		c.recent = append(c.recent, p)
		return
	}
	c.recent[c.next].forget()
	c.recent[c.next] = p
	c.next = (c.next + 1) % keptTrees
}

// A position says in what an expression is compiled: the environment, and the variables of its policy. Two policies
// have the same one if they declare the same variables in the same order.
type position int

// positionKey is a position and what is declared in it next: a variable of the policy with its expression.
type positionKey struct {
	in               position
	name, expression string
}

func (c *Common) position(k positionKey) position {
	number, found := c.positions[k]
	if !found {
		number = position(len(c.positions) + 1)
		c.positions[k] = number
	}
	return number
}

// madeKey is the key of what was made of an expression for a use.
type madeKey struct {
	in              position
	use, expression string
}

// Once returns what make makes of an expression for a use. If the compiler shares a Common, what it made of the same
// expression in the same position is returned; it must be immutable. Errors are not kept.
func Once[V any](c *AdmissionCompiler, use, expression string, make func() (V, error)) (V, error) {
	if !c.isShared {
		return make()
	}
	key := madeKey{c.position, use, expression}
	if v, found := c.common.made[key].(V); found {
		return v, nil
	}
	v, err := make()
	if err == nil {
		c.common.made[key] = v
	}
	return v, err
}

// envKey says what an environment of a policy declares.
type envKey struct {
	hasParams, hasAuthorizer, isOfConditions bool
	states                                   string
}

// joined are names as one key.
func joined(names []string) string { return strings.Join(names, "\n") }
