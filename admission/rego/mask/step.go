package mask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/admission/rego"
)

// A step is one item of the rule mask: what to do with a part of the event.
type step struct {
	parts   []string // of the path, escaped as in URLs; the first is a member of the event
	upserts bool
	value   any // that is set
}

// roots are the members of an event that may be masked.
var roots = []string{"input", "result", "nd_builtin_cache"}

// stepsOf reads the value of the rule mask. With an item that OPA would not take there are none.
func stepsOf(value rego.Value) ([]step, error) {
	text, err := value.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	var read any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&read); err != nil {
		return nil, err
	}
	items, ok := read.([]any)
	if !ok {
		return nil, errors.New("the value of the rule mask must be a set or a list")
	}
	steps := make([]step, 0, len(items))
	for _, item := range items {
		s, err := stepOf(item)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// stepOf reads an item: a path that is erased, or an object that says more.
func stepOf(item any) (s step, err error) {
	path, isPath := item.(string)
	if !isPath {
		o, ok := item.(map[string]any)
		if !ok {
			return s, errors.New("an item of the rule mask must be a path or an object")
		}
		switch o["op"] {
		case "remove":
		case "upsert":
			s.upserts, s.value = true, o["value"]
		default:
			return s, errors.New("the member 'op' of an item of the rule mask must be 'remove' or 'upsert'")
		}
		path, _ = o["path"].(string)
	}
	if !strings.HasPrefix(path, "/") {
		return s, errors.New("a path of the rule mask must begin with '/'")
	}
	s.parts = strings.Split(path[1:], "/")
	if !slices.Contains(roots, s.parts[0]) {
		return s, fmt.Errorf("a path of the rule mask must begin with one of %s", strings.Join(roots, ", "))
	}
	for i, part := range s.parts {
		if _, err := url.PathUnescape(part); err != nil {
			return s, err
		}
		s.parts[i] = url.PathEscape(part)
	}
	return s, nil
}

func (s *step) path() string { return "/" + strings.Join(s.parts, "/") }

// take takes the step, and notes it in the event. What the event does not have stays as it is.
func (s *step) take(event map[string]any) {
	root, rest := s.parts[0], s.parts[1:]
	if _, ok := event[root]; !ok {
		return
	}
	isDone := false
	switch {
	case len(rest) == 0 && s.upserts:
		event[root], isDone = s.value, true
	case len(rest) == 0:
		delete(event, root)
		isDone = true
	case s.upserts:
		isDone = set(event[root], rest, s.value)
	default:
		isDone = remove(event[root], rest, func(now any) { event[root] = now })
	}
	if !isDone {
		return
	}
	list := "erased"
	if s.upserts {
		list = "masked"
	}
	noted, _ := event[list].([]any)
	event[list] = append(noted, s.path())
}

// remove removes the value at a path, and reports whether there was one. replace takes a list that
// became shorter.
func remove(at any, path []string, replace func(any)) bool {
	name := path[0]
	switch at := at.(type) {
	case map[string]any:
		child, ok := at[name]
		if !ok {
			return false
		}
		if len(path) == 1 {
			delete(at, name)
			return true
		}
		return remove(child, path[1:], func(now any) { at[name] = now })
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(at) {
			return false
		}
		if len(path) == 1 {
			replace(slices.Delete(at, i, i+1))
			return true
		}
		return remove(at[i], path[1:], func(now any) { at[i] = now })
	}
	return false
}

// set sets the value at a path, and reports whether it could. Objects on the way that are missing are
// made; lists do not grow.
func set(at any, path []string, value any) bool {
	name := path[0]
	switch at := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			at[name] = value
			return true
		}
		child, ok := at[name]
		if !ok {
			child = map[string]any{}
			at[name] = child
		}
		return set(child, path[1:], value)
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(at) {
			return false
		}
		if len(path) == 1 {
			at[i] = value
			return true
		}
		return set(at[i], path[1:], value)
	}
	return false
}
