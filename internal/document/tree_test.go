package document

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"reflect"
	"testing"
)

// decodeTree reads a node through the public reading functions into what
// encoding/json decodes with UseNumber.
func decodeTree(n Node) any {
	switch n.Kind() {
	case Bool:
		return n.Bool()
	case Number:
		return json.Number(n.Raw())
	case String:
		return n.Str()
	case Array:
		list := make([]any, 0, n.Len())
		for item := n.First(); item.Valid(); item = item.Next() {
			list = append(list, decodeTree(item))
		}
		return list
	case Object:
		object := make(map[string]any, n.Len())
		for member := n.First(); member.Valid(); member = member.Next() {
			object[member.Key()] = decodeTree(member)
		}
		return object
	}
	return nil
}

func decodeReference(t testing.TB, body []byte) any {
	t.Helper()
	v, err := decodeStd(body)
	if err != nil {
		t.Fatalf("encoding/json refuses %q: %v", body, err)
	}
	return v
}

func decodeStd(body []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, err
	}
	return v, nil
}

func sameTree(a, b any) bool { return reflect.DeepEqual(a, b) }

// equalTrees compares decoded trees as EqualNodes compares nodes.
func equalTrees(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalTrees(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key := range a {
			if v, ok := b[key]; !ok || !equalTrees(a[key], v) {
				return false
			}
		}
		return true
	}
	return a == b
}
