package plan

import (
	"errors"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// A ruleset is all rules of a name.
type ruleset struct {
	id        int
	index     ast.RuleIndex
	asking    asking
	early     bool // if the index is not asked first: one value is enough
	groups    [][]*clause
	byRule    map[*ast.Rule]*clause
	otherwise *clause // the default
	params    []int
	form      form
	key       key // if isShared: of the value that other plans may have found
	isShared  bool
}

// An asking says when OPA's index is asked which rules there are for an evaluation.
type asking int

const (
	atNoTime asking = iota
	// onError: a rule that the index leaves out has no value, and its error does not count.
	onError
	beforehand
)

// A form says what the rules of a ruleset make together.
type form int

const (
	aValue form = iota
	aFunction
	aSet
	anObject // a partial one
)

// isPartial reports whether each rule adds to what the ruleset makes.
func (f form) isPartial() bool { return f == aSet || f == anObject }

// A clause is one rule, or the part of one behind an else.
type clause struct {
	rule *ast.Rule
	body block
}

// callsWithoutCache is how often a function is called before its values are kept.
const callsWithoutCache = 8

// evaluate runs the clauses of a ruleset. It returns false if there is an error.
func (r *ruleset) evaluate(m *machine) bool {
	d := &m.frame.docs[r.id]
	d.value = Value{}
	if r.asking == beforehand || r.asking == onError && m.env.Relaxed != nil {
		return r.evaluateIndexed(m, d)
	}
	d.early = r.early
	for _, group := range r.groups {
		if r.evaluateGroup(m, d, group[0], group[1:]) || m.err != nil && r.isLeftOut(m, group[0].rule) {
			continue
		}
		return m.err == nil
	}
	return r.fallBack(m, d)
}

// isLeftOut reports whether OPA's index leaves out a rule in which there was an error, and forgets the
// error then. The end of the evaluation is no such error.
func (r *ruleset) isLeftOut(m *machine, rule *ast.Rule) bool {
	var failed *topdown.Error
	if r.asking != onError || !errors.As(m.err, &failed) || failed.Code == topdown.CancelErr {
		return false
	}
	was := m.err
	m.err, m.resolver.rules = nil, r
	found, err := r.index.Lookup(&m.resolver)
	if err != nil {
		m.err = err
		return false
	}
	defer ast.IndexResultPool.Put(found)
	if slices.Contains(found.Rules, rule) {
		m.err = was
		return false
	}
	return true
}

// evaluateIndexed is evaluate with the clauses that OPA's index leaves.
func (r *ruleset) evaluateIndexed(m *machine, d *document) bool {
	m.resolver.rules = r
	found, err := r.index.Lookup(&m.resolver)
	if err != nil {
		m.err = err
		return false
	}
	defer ast.IndexResultPool.Put(found)
	d.early = found.EarlyExit
	for _, rule := range found.Rules {
		var others []*clause
		for _, other := range found.Else[rule] {
			others = append(others, r.byRule[other])
		}
		if !r.evaluateGroup(m, d, r.byRule[rule], others) {
			return m.err == nil
		}
	}
	return r.fallBack(m, d)
}

// evaluateGroup runs a clause, and what is behind its else while there is no value. It returns
// false if nothing else must run.
func (r *ruleset) evaluateGroup(m *machine, d *document, first *clause, others []*clause) bool {
	d.produced = false
	if !first.body.start.run(m) {
		return false
	}
	for _, other := range others {
		if d.produced {
			break
		}
		if !other.body.start.run(m) {
			return false
		}
	}
	return true
}

// fallBack runs the default, if there is no value.
func (r *ruleset) fallBack(m *machine, d *document) bool {
	if r.otherwise == nil || d.value.IsValid() {
		return true
	}
	return r.otherwise.body.start.run(m) || m.err == nil
}

// A yield ends the body of a clause with a value.
type yield struct {
	of    int
	rule  *ast.Rule
	value source
}

func (y *yield) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	d, value := &m.frame.docs[y.of], y.value.get(m)
	d.produced = true
	if !d.value.IsValid() {
		d.value = value
	} else if !isEqual(d.value, value) {
		m.err = conflict(y.rule)
		return false
	}
	return !d.early
}

// conflict is the error about a second value of a rule.
func conflict(r *ast.Rule) error {
	path := r.Head.Ref().String()
	if r.Module != nil {
		path = r.Ref().String()
	}
	message := "rule " + path + " produced conflicting values"
	if len(r.Head.Args) > 0 {
		message = "function " + path + " produced conflicting values for the same inputs"
	}
	return &topdown.Error{Code: topdown.ConflictErr, Location: r.Location, Message: message}
}

// A gather ends the body of a clause of a partial rule.
type gather struct {
	of         int
	key, value source
	isObject   bool
	at         *ast.Location
}

func (g *gather) run(m *machine) bool {
	if !m.goesOn() {
		return false
	}
	d := &m.frame.docs[g.of]
	if g.isObject {
		if d.object == nil {
			d.object = ast.NewObject()
		}
		return m.insert(d.object, g.key.whole(m), g.value.whole(m), g.at)
	}
	d.set.add(g.key.get(m))
	return true
}

// A complete is the value of a rule.
type complete struct {
	seq
	of   *ruleset
	into int
}

func (w *complete) run(m *machine) bool {
	d := m.complete(w.of)
	if d == nil {
		w.before(m)
		return false
	}
	if !d.value.IsValid() {
		return true
	}
	m.slots[w.into] = d.value
	return w.next.run(m)
}

// before runs what follows a rule with the value that the rule had before the error of a later one. OPA comes to that
// first, so that an error there is the one that counts.
func (w *complete) before(m *machine) {
	d := &m.frame.docs[w.of.id]
	was := m.err
	if failed, is := errors.AsType[*topdown.Error](was); !d.value.IsValid() || !is || failed.Code == topdown.CancelErr {
		return
	}
	m.err, d.known = nil, true
	m.slots[w.into] = d.value
	w.next.run(m)
	if d.known = false; m.err == nil {
		m.err = was
	}
}

// complete returns the document of a ruleset without parameters, once its value is known; nil if there
// is an error.
func (m *machine) complete(r *ruleset) *document {
	d := &m.frame.docs[r.id]
	if d.known {
		return d
	}
	shared := m.env.Shared
	if !r.isShared || m.frame.outer != nil {
		shared = nil
	}
	if shared != nil {
		if d.value, d.known = shared.values[r.key]; d.known {
			return d
		}
	}
	before, relaxed := m.spent(), m.relaxed()
	d.set, d.object = elements{}, nil
	if !r.evaluate(m) {
		return nil
	}
	if r.form.isPartial() {
		d.value = d.gathered(r)
	}
	d.known = true
	if shared != nil && m.relaxed() == relaxed {
		shared.keep(r.key, d.value, m.spent()-before)
	}
	return d
}

// A partial is all of a partial rule.
type partial struct {
	seq
	of   *ruleset
	into int
}

func (w *partial) run(m *machine) bool {
	d := m.complete(w.of)
	if d == nil {
		return false
	}
	m.slots[w.into] = d.value
	return w.next.run(m)
}

// gathered returns the value of a partial rule.
func (d *document) gathered(r *ruleset) Value {
	switch {
	case r.form == anObject && d.object != nil:
		return Made(ast.NewTerm(d.object))
	case r.form == anObject:
		return Made(ast.InternedEmptyObject)
	}
	return d.set.value()
}

// An element is the member of a partial rule that has a key. Its clauses are evaluated for the key
// alone, if not all of the rule is known.
type element struct {
	seq
	all  int // the ruleset without a key
	of   *ruleset
	key  source
	into int
}

func (e *element) run(m *machine) bool {
	key := e.key.get(m)
	value, ok := e.find(m, key)
	if !ok {
		return false
	}
	if !value.IsValid() {
		return true
	}
	m.slots[e.into] = value
	return e.next.run(m)
}

func (e *element) find(m *machine, key Value) (value Value, ok bool) {
	if all := &m.frame.docs[e.all]; all.known {
		return all.value.Member(key), true
	}
	d := &m.frame.docs[e.of.id]
	hash := key.hash()
	if value := d.kept(hash, key); value.IsValid() {
		return value, true
	}
	d.set, d.object = elements{}, nil
	m.slots[e.of.params[0]] = key
	if !e.of.evaluate(m) {
		return Value{}, false
	}
	gathered := d.gathered(e.of)
	if value = gathered.Member(key); value.IsValid() {
		d.keep(hash, value, key)
	}
	return value, true
}

// An apply calls a function that modules define.
type apply struct {
	seq
	of    *ruleset
	args  []source // one more than the function has, if it must have a value
	into  int
	tests bool // it goes on unless the value is false
}

func (a *apply) run(m *machine) bool {
	params := a.of.params
	for i := range a.args {
		m.slots[params[i]] = a.args[i].get(m)
	}
	value, ok := a.call(m, m.slots[params[0]:params[0]+len(params)])
	switch {
	case !ok:
		return false
	case !value.IsValid() || a.tests && value.isFalse():
		return true
	}
	m.slots[a.into] = value
	return a.next.run(m)
}

// call returns the value for arguments; none if there is none.
func (a *apply) call(m *machine, args []Value) (value Value, ok bool) {
	d := &m.frame.docs[a.of.id]
	d.calls++
	keeps := d.calls > callsWithoutCache
	hash := 0
	if keeps {
		for i := range args {
			hash = hash*31 + args[i].hash()
		}
		if value := d.kept(hash, args...); value.IsValid() {
			return value, true
		}
	}
	if !a.of.evaluate(m) {
		return Value{}, false
	}
	if keeps && d.value.IsValid() {
		d.keep(hash, d.value, args...)
	}
	return d.value, true
}

// A resolver says what the index of a ruleset asks for.
type resolver struct {
	machine *machine
	rules   *ruleset
}

// Resolve implements ast.ValueResolver.
func (r *resolver) Resolve(ref ast.Ref) (ast.Value, error) {
	m := r.machine
	switch {
	case ref[0].Equal(ast.FunctionArgRootDocument):
		if n, ok := ref[1].Value.(ast.Number); ok && r.rules.form == aFunction {
			if i, ok := n.Int(); ok && i >= 0 && i < len(r.rules.params) {
				return Outline(m.slots[r.rules.params[i]]).Value, nil
			}
		}
		return nil, ast.UnknownValueErr{}
	case ref[0].Equal(ast.InputRootDocument):
		return r.input(ref[1:])
	case ref[0].Equal(ast.DefaultRootDocument):
		return r.data(ref)
	}
	return nil, errors.New("illegal ref")
}

func (r *resolver) input(path ast.Ref) (ast.Value, error) {
	var from Value
	if len(path) > 0 {
		if _, ok := path[0].Value.(ast.String); ok {
			from, path = r.machine.inputMember(path[0]), path[1:]
		}
	} else {
		from = Made(r.machine.inputOutline())
	}
	for from.part != nil && len(path) > 0 {
		from, path = from.part.Get(path[0]), path[1:]
	}
	if !from.IsValid() {
		return nil, nil
	}
	v, err := Outline(from).Value.Find(path)
	if err != nil {
		return nil, nil // it has no such part
	}
	return v, nil
}

func (r *resolver) data(ref ast.Ref) (ast.Value, error) {
	for _, t := range ref[1:] {
		if !ast.IsScalar(t.Value) {
			return nil, nil
		}
	}
	path, err := storage.NewPathForRef(ref)
	if err != nil {
		if storage.IsNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	v := r.machine.read(ref, path, path.String())
	return v, r.machine.err
}
