package document

import (
	"strconv"
	"strings"
	"sync"
)

// Limits of JSON patches.
const (
	MaxPatchOperations = 10_000
	maxPatchSteps      = 16 << 20 // list items passed on the way to the one meant

	// What copy and move operations copy may be copyFactor times as long as the
	// document and the patch, and freeCopies in any case: a value that is copied
	// into itself doubles with each operation, and takes many times its length
	// on the tape.
	copyFactor = 2
	freeCopies = 16 << 10 // bytes
)

// PatchCode classifies why a patch was refused.
type PatchCode uint8

// The reasons for which ApplyJSONPatch refuses a patch.
const (
	PatchMalformed   PatchCode = iota // not a JSON patch as RFC 6902 defines it
	PatchTooLong                      // more than MaxPatchOperations
	PatchFailed                       // an operation that this document does not allow
	PatchTestFailed                   // a test that found another value
	PatchTooCostly                    // values copied or moved again and again, or lists searched
	PatchResultLimit                  // a document deeper or of more values than its limits allow
)

// PatchError says which operation of a patch was refused, and why.
type PatchError struct {
	Operation int    // from 0; -1 for the patch as a whole
	Op        string // as the patch has it
	Path      string // as the patch has it, a JSON pointer
	Code      PatchCode
	Msg       string
}

// Error names the operation, its path and what must be otherwise.
func (e *PatchError) Error() string {
	if e.Operation < 0 {
		return "JSON patch: " + e.Msg
	}
	s := "JSON patch: operation " + strconv.Itoa(e.Operation)
	if e.Op != "" {
		s += " ('" + abbreviate(e.Op) + "' at '" + abbreviate(e.Path) + "')"
	}
	return s + ": " + e.Msg
}

// ApplyJSONPatch makes the edits of a JSON patch (RFC 6902), all of them or, with
// an error, none. Patch is the list of operations, in another document. Of the
// limits, Depth and Nodes hold for the result, and Bytes for all that copy and
// move operations copy, which may also not be many times as long as the document
// and the patch. The error is a [*PatchError].
func (d *Document) ApplyJSONPatch(patch Node, limits Limits) error {
	return d.applyJSONPatch(patch, limits, false)
}

// ApplyPolicyPatch is ApplyJSONPatch for the patches of policies, which are written against
// kube-apiserver and the library that it applies them with, gopkg.in/evanphx/json-patch.v4:
// replacing a missing member adds it, copying one gives null, so does an operation without a value,
// indices may be negative (from the end) or have leading zeros, what stands before the first '/' of
// a pointer does not count, '~' may mean itself, and the whole document can only be replaced and
// tested. A test of a missing or null member holds only without a value.
func (d *Document) ApplyPolicyPatch(patch Node, limits Limits) error {
	return d.applyJSONPatch(patch, limits, true)
}

func (d *Document) applyJSONPatch(patch Node, limits Limits, lenient bool) error {
	p := patcher{d: d, limits: limits.withDefaults(), lenient: lenient}
	if patch.d != nil {
		p.limits.Bytes = min(p.limits.Bytes, max(freeCopies, copyFactor*(len(d.body)+len(patch.d.body))))
	}
	if patch.Kind() != Array || patch.d == d {
		return &PatchError{Operation: -1, Code: PatchMalformed, Msg: "a patch must be a list of operations"}
	}
	if patch.Len() > MaxPatchOperations {
		return &PatchError{Operation: -1, Code: PatchTooLong,
			Msg: "number of operations must be less than or equal to " + strconv.Itoa(MaxPatchOperations)}
	}
	return d.Atomically(func() error { return p.patch(patch) })
}

// Atomically calls edit, which edits the document, and undoes what it did if it
// returns an error. Nodes that were read from the document while it did must not
// be used then. The error of a document that has failed is ErrNoMemory; nothing
// is undone then.
func (d *Document) Atomically(edit func() error) error {
	copied, granted := d.chargeCopy()
	if !granted {
		return ErrNoMemory
	}
	defer d.giveBackCopy(copied)
	saved := checkpoints.Get().(*checkpoint)
	saved.take(d)
	err := edit()
	switch {
	case d.failed:
		err = ErrNoMemory
	case err != nil:
		d.rollback(saved)
	}
	if cap(saved.tape) <= keepEntries && cap(saved.index) <= keepIndex {
		checkpoints.Put(saved)
	}
	return err
}

var checkpoints = sync.Pool{New: func() any { return new(checkpoint) }}

// A checkpoint holds the parts of a document that edits change.
type checkpoint struct {
	tape             []entry
	index            []uint32
	side             int
	edited           bool
	rootOff, rootEnd uint32
}

func (c *checkpoint) take(d *Document) {
	*c = checkpoint{append(c.tape[:0], d.tape...), append(c.index[:0], d.index...), len(d.side), d.edited, d.rootOff,
		d.rootEnd}
}

func (d *Document) rollback(c *checkpoint) {
	d.revision++
	d.tape = append(d.tape[:0], c.tape...)
	d.index = append(d.index[:0], c.index...)
	d.side = d.side[:c.side]
	d.edited, d.rootOff, d.rootEnd = c.edited, c.rootOff, c.rootEnd
}

// A patcher applies the operations of one patch.
type patcher struct {
	d       *Document
	limits  Limits
	lenient bool // as ApplyPolicyPatch says
	copied  int  // bytes, by copy and move
	steps   int  // list items passed
	nodes   int  // of the result
}

// patch applies the operations one after the other.
func (p *patcher) patch(patch Node) error {
	number := 0
	for n := patch.First(); n.Valid(); n = n.Next() {
		op, path, refusal := p.operation(n)
		if refusal != nil {
			return &PatchError{Operation: number, Op: op, Path: path, Code: refusal.code, Msg: refusal.msg}
		}
		number++
	}
	if refusal := p.measure(p.d.Root(), 0); refusal != nil {
		return &PatchError{Operation: -1, Code: refusal.code, Msg: refusal.msg}
	}
	return nil
}

// A refusal is why an operation cannot be applied.
type refusal struct {
	code PatchCode
	msg  string
}

func malformed(msg string) *refusal { return &refusal{PatchMalformed, msg} }
func failed(msg string) *refusal    { return &refusal{PatchFailed, msg} }

// operation applies one operation; op and path are for the error.
func (p *patcher) operation(n Node) (op, path string, _ *refusal) {
	if n.Kind() != Object {
		return "", "", malformed("an operation must be an object")
	}
	member, ok := n.Get("op")
	if !ok || member.Kind() != String {
		return "", "", malformed("'op' must be a string")
	}
	op = member.Str()
	path, r := p.pointerOf(n, "path")
	if r != nil {
		return op, path, r
	}
	switch op {
	case "add", "replace", "test":
		value, ok := n.Get("value")
		if !ok && !p.lenient {
			return op, path, malformed("'value' must be set")
		}
		switch op {
		case "add":
			return op, path, p.add(path, rawOrNull(value))
		case "replace":
			return op, path, p.replace(path, value)
		}
		return op, path, p.test(path, value)
	case "remove":
		return op, path, p.remove(path)
	case "move", "copy":
		from, r := p.pointerOf(n, "from")
		if r != nil {
			return op, path, r
		}
		return op, path, p.transfer(from, path, op == "move")
	}
	return op, path, malformed("'op' must be one of 'add', 'copy', 'move', 'remove', 'replace', 'test'")
}

// rawOrNull is the text of a value, null if there is none.
func rawOrNull(value Node) []byte {
	if !value.Valid() {
		return []byte("null")
	}
	return value.Raw()
}

func (p *patcher) add(path string, raw []byte) *refusal {
	if path == "" {
		if p.lenient {
			return failed("the whole document may only be replaced or tested")
		}
		p.d.Replace(p.d.Root(), raw)
		return nil
	}
	last := strings.LastIndexByte(path, '/')
	parent, r := p.locate(path[:last])
	if r != nil {
		return r
	}
	name := token(path[last+1:])
	switch parent.Kind() {
	case Object:
		p.d.Set(parent, name, raw)
		return nil
	case Array:
		if name == "-" {
			p.d.Append(parent, raw)
			return nil
		}
		position, r := p.listPosition(name, parent.Len()+1)
		if r != nil {
			return r
		}
		if position == parent.Len() {
			p.d.Append(parent, raw)
			return nil
		}
		at, r := p.item(parent, position)
		if r != nil {
			return r
		}
		p.steps += position // InsertBefore looks for the item before
		p.d.InsertBefore(at, raw)
		return nil
	}
	return failed("'" + abbreviate(name) + "' must be in an object or a list, not in a " + parent.Kind().String())
}

func (p *patcher) replace(path string, value Node) *refusal {
	if p.lenient {
		if path == "" && value.Kind() < Object {
			return failed("the whole document must be replaced by an object or a list")
		}
		if last := strings.LastIndexByte(path, '/'); last >= 0 {
			if parent, r := p.locate(path[:last]); r == nil && parent.Kind() == Object {
				p.d.Set(parent, token(path[last+1:]), rawOrNull(value))
				return nil
			}
		}
	}
	n, r := p.locate(path)
	if r == nil {
		p.d.Replace(n, rawOrNull(value))
	}
	return r
}

func (p *patcher) remove(path string) *refusal {
	n, r := p.locate(path)
	if r != nil {
		return r
	}
	if n == p.d.Root() {
		return failed("the whole document may not be removed")
	}
	p.d.Remove(n)
	return nil
}

func (p *patcher) test(path string, value Node) *refusal {
	n, r := p.locate(path)
	if p.lenient {
		if n, r = p.locateMember(path); r == nil && (!n.Valid() || n.Kind() == Null) {
			if value.Valid() {
				return testFailed()
			}
			return nil
		}
	}
	if r != nil {
		return r
	}
	if !EqualNodes(n, value) {
		return testFailed()
	}
	return nil
}

func testFailed() *refusal {
	return &refusal{PatchTestFailed, "the value must be equal to the test's"}
}

// transfer is copy and, with a removal, move.
func (p *patcher) transfer(from, path string, move bool) *refusal {
	n, r := p.locate(from)
	switch {
	case p.lenient && from == "":
		r = failed("the whole document may only be replaced or tested")
	case p.lenient && !move:
		n, r = p.locateMember(from)
	}
	if r != nil {
		return &refusal{r.code, "'from': " + r.msg}
	}
	if move && from == path {
		return nil
	}
	if move && !p.lenient && strings.HasPrefix(path, from) && path[len(from)] == '/' {
		return failed("a value may not be moved into itself")
	}
	raw := rawOrNull(n)
	if p.copied += len(raw); p.copied > p.limits.Bytes {
		return &refusal{PatchTooCostly, "copied and moved values must be less than or equal to " +
			strconv.Itoa(p.limits.Bytes) + " bytes in all"}
	}
	if move {
		p.d.Remove(n)
	}
	return p.add(path, raw)
}

// measure checks the result against the limits.
func (p *patcher) measure(n Node, depth int) *refusal {
	if p.nodes++; p.nodes > p.limits.Nodes {
		return &refusal{PatchResultLimit, "the result: " + msgTooMany(p.limits.Nodes)}
	}
	if n.Kind() < Object {
		return nil
	}
	if depth == p.limits.Depth {
		return &refusal{PatchResultLimit, "the result: " + msgTooDeep(p.limits.Depth)}
	}
	for child := n.First(); child.Valid(); child = child.Next() {
		if r := p.measure(child, depth+1); r != nil {
			return r
		}
	}
	return nil
}
