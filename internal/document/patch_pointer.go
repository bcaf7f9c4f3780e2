package document

import (
	"strconv"
	"strings"
)

// pointerOf reads a member that must be a JSON pointer.
func (p *patcher) pointerOf(n Node, member string) (string, *refusal) {
	m, ok := n.Get(member)
	if !ok || m.Kind() != String {
		return "", malformed("'" + member + "' must be a string")
	}
	pointer := m.Str()
	if p.lenient {
		if first := strings.IndexByte(pointer, '/'); first >= 0 {
			pointer = pointer[first:]
		} else if pointer != "" {
			return pointer, malformed("'" + member + "' must have a '/'")
		}
	} else if err := strictPointer(pointer, member); err != nil {
		return pointer, err
	}
	if m.HasNUL() {
		return pointer, malformed(`'` + member + `' must not contain '\u0000'`)
	}
	return pointer, nil
}

func strictPointer(pointer, member string) *refusal {
	if pointer != "" && pointer[0] != '/' {
		return malformed("'" + member + "' must be empty or begin with '/'")
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return malformed("'~' in '" + member + "' must be followed by '0' or '1'")
		}
	}
	return nil
}

// token decodes one step of a pointer.
func token(step string) string {
	if strings.IndexByte(step, '~') < 0 {
		return step
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// listPosition reads a token as a position in a list of so many items; it may be beyond them.
func (p *patcher) listPosition(token string, places int) (int, *refusal) {
	if p.lenient {
		position, err := strconv.Atoi(token)
		if err != nil || position < -places {
			return 0, failed("the index of a list must be a number, not less than minus its length")
		}
		if position < 0 {
			position += places
		}
		return position, nil
	}
	if token == "" || len(token) > 9 || len(token) > 1 && token[0] == '0' {
		return 0, failed("the index of a list must be a number without leading zeros, less than its length")
	}
	position := 0
	for i := range len(token) {
		if token[i]-'0' > 9 {
			return 0, failed("the index of a list must be a number without leading zeros, less than its length")
		}
		position = position*10 + int(token[i]-'0')
	}
	return position, nil
}

// item finds the item at a position. Steps are counted, for a list is searched
// from its first item on.
func (p *patcher) item(list Node, position int) (Node, *refusal) {
	if p.steps += min(position, list.Len()); p.steps > maxPatchSteps {
		return Node{}, &refusal{PatchTooCostly, "operations must not search lists for more than " +
			strconv.Itoa(maxPatchSteps) + " items in all"}
	}
	n, ok := list.At(position)
	if !ok {
		return Node{}, failed("index " + strconv.Itoa(position) + " must be less than the length of the list, " +
			strconv.Itoa(list.Len()))
	}
	return n, nil
}

// step goes from a value to the member or item that a token names.
func (p *patcher) step(n Node, token string) (Node, *refusal) {
	switch n.Kind() {
	case Object:
		m, ok := n.Get(token)
		if !ok {
			return Node{}, failed("member '" + abbreviate(token) + "' must exist")
		}
		return m, nil
	case Array:
		position, r := p.listPosition(token, n.Len())
		if r != nil {
			return Node{}, r
		}
		return p.item(n, position)
	}
	return Node{}, failed("'" + abbreviate(token) + "' must be in an object or a list, not in a " + n.Kind().String())
}

// locate finds the value that a pointer names.
func (p *patcher) locate(pointer string) (Node, *refusal) {
	n := p.d.Root()
	for pointer != "" {
		var first string
		first, pointer = firstStep(pointer)
		var r *refusal
		if n, r = p.step(n, token(first)); r != nil {
			return Node{}, r
		}
	}
	return n, nil
}

// locateMember is locate, but a member that is missing in an object is an invalid
// node and no error.
func (p *patcher) locateMember(pointer string) (Node, *refusal) {
	last := strings.LastIndexByte(pointer, '/')
	if last < 0 {
		return p.locate(pointer)
	}
	parent, r := p.locate(pointer[:last])
	if r != nil {
		return Node{}, r
	}
	name := token(pointer[last+1:])
	if parent.Kind() == Object {
		n, _ := parent.Get(name)
		return n, nil
	}
	return p.step(parent, name)
}

// firstStep cuts the first step from a pointer that is not empty.
func firstStep(pointer string) (step, rest string) {
	pointer = pointer[1:]
	if i := strings.IndexByte(pointer, '/'); i >= 0 {
		return pointer[:i], pointer[i:]
	}
	return pointer, ""
}
