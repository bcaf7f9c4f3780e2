package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// memo is an object of TestHistories. It is comparable; the zero value is no object.
type memo struct {
	n   int64  // never falls
	log string // a list of markers, each with a comma behind it
	c   string // the members of a map: each as 'name=value;', in order
}

// with returns the note with a member of its map set.
func (o memo) with(name, value string) memo {
	members := strings.SplitAfter(o.c, ";")
	members = slices.DeleteFunc(members, func(m string) bool { return m == "" || strings.HasPrefix(m, name+"=") })
	members = append(members, name+"="+value+";")
	slices.Sort(members)
	o.c = strings.Join(members, "")
	return o
}

// wanted is what a client asked for of one object.
type wanted struct {
	id, object, method string
	// isUnjudged says that the request went past the gateways and their policies.
	isUnjudged bool
	// isPart says that a GET asks for the number alone.
	isPart bool
	// named is the version that the client means; the zero value for any.
	named version
	// note is what a PUT stores.
	note memo
	// A PATCH sets the member of the map and the number, or appends to the list.
	member, value string
	setsNumber    bool
	n             int64
	appends       string
}

// version is the version of an object as far as the API gives it: its number, or, by a digest, what
// it is. The zero value is no version.
type version struct {
	number int
	note   memo
}

// told is the client's answer. The zero value is a missing answer, or one that leaves the outcome open.
type told struct {
	code    int
	note    memo
	version version
	// written is how often the object was written up to this write, which the API knows.
	written int
	// isGone says that a DELETE succeeded which the API never carried out: the gateway got no answer, and then found
	// the object gone.
	isGone bool
}

// modelled is a state of the model: an object, and how often it was written.
type modelled struct {
	note   memo
	writes int
}

// linear returns the model of an API behind gateways: each request is one step of one object. It is
// carried out on the object as it is in that step, if the version that it names is the object's and
// the policies of TestHistories admit the result; or it is refused, and changes nothing. A write with
// an unknown outcome is carried out, or changes nothing, as that step may be the last of all.
func (t tagging) linear() porcupine.Model {
	return porcupine.Model{
		Partition: byObject,
		Init:      func() any { return modelled{} },
		Step: func(before, input, output any) (bool, any) {
			now, in, out := before.(modelled), input.(wanted), output.(told)
			code, next := t.carryOut(now, in)
			switch {
			case out.written > 0 && out.written != next.writes:
				return false, now
			case out.code == 0:
				return true, next
			case out.isGone:
				return now.note == memo{} && in.named == version{}, now
			case in.named == version{} && isConflict(out.code):
				return true, now // others came between too often
			case out.code == http.StatusNotFound:
				return now.note == memo{} && in.method != http.MethodPut, now
			case isConflict(out.code):
				return isConflict(code), now
			case out.code != code:
				return false, now
			case code >= 300 || next.note == memo{}:
				return true, next
			case in.isPart:
				return out.note == memo{n: next.note.n}, next
			}
			return out.note == next.note && out.version == t.versionOf(next), next
		},
		Hash:              func(s any) uint64 { return uint64(s.(modelled).writes)<<8 + uint64(len(s.(modelled).note.log)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
}

func isConflict(code int) bool {
	return code == http.StatusConflict || code == http.StatusPreconditionFailed
}

func byObject(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	of := map[string][]porcupine.Operation{}
	for _, o := range history {
		name := o.Input.(wanted).object
		of[name] = append(of[name], o)
	}
	for _, part := range of {
		parts = append(parts, part)
	}
	return parts
}

// versionOf returns the version that the API gives an object.
func (t tagging) versionOf(s modelled) version {
	switch {
	case s.note == memo{}:
		return version{}
	case t == hashTags || t == weakTags:
		return version{note: s.note}
	}
	return version{number: s.writes}
}

// carryOut returns the answer to a request and what it makes of the object.
func (t tagging) carryOut(now modelled, in wanted) (code int, next modelled) {
	isThere := now.note != memo{}
	switch {
	case in.method == http.MethodGet && isThere:
		return http.StatusOK, now
	case in.method == http.MethodGet:
		return http.StatusNotFound, now
	case in.named != version{} && in.named != t.versionOf(now):
		return http.StatusConflict, now
	case in.method == http.MethodPut && !isThere:
		return http.StatusCreated, modelled{in.note, now.writes + 1}
	case !isThere:
		return http.StatusNotFound, now
	case in.method == http.MethodDelete:
		return http.StatusNoContent, modelled{memo{}, now.writes + 1}
	}
	n := in.note
	if in.method == http.MethodPatch {
		n = now.note
		if n.log += in.appends; in.member != "" {
			n = n.with(in.member, in.value)
		}
		if in.setsNumber {
			n.n = in.n
		}
	}
	if n.n < now.note.n && !in.isUnjudged {
		return http.StatusUnprocessableEntity, now
	}
	return http.StatusOK, modelled{n, now.writes + 1}
}

// TestModelOfHistories runs the checker on histories with obvious verdicts. It finds an update that
// was lost, one that was made twice or on another version, and one that was never refused, and accepts
// both outcomes of an update if the outcome is unknown.
func TestModelOfHistories(t *testing.T) {
	one := memo{n: 1, log: "a,", c: "a=1;"}
	two := one.with("b", "1")
	of := func(number int) version { return version{number: number} }
	op := func(client int, call, end int64, in wanted, out told) porcupine.Operation {
		in.object = "o"
		return porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: end}
	}
	created := op(0, 0, 1, wanted{method: "PUT", note: one}, told{201, one, of(1), 1, false})
	merge := func(call, end int64, out told) porcupine.Operation {
		return op(1, call, end, wanted{method: "PATCH", member: "b", value: "1"}, out)
	}
	put := func(named version, n memo, out told) porcupine.Operation {
		return op(1, 2, 3, wanted{method: "PUT", named: named, note: n}, out)
	}
	number := func(n int64, out told) porcupine.Operation {
		return op(1, 2, 3, wanted{method: "PATCH", setsNumber: true, n: n}, out)
	}
	get := func(call int64, n memo, writes int) porcupine.Operation {
		return op(9, call, call+1, wanted{method: "GET"}, told{200, n, of(writes), 0, false})
	}
	fallen := one
	fallen.n = 0
	const never = 1 << 60
	for name, tt := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one after the other": {[]porcupine.Operation{merge(2, 3, told{200, two, of(2), 2, false}),
			get(4, two, 2)}, true},
		"an update is lost": {[]porcupine.Operation{merge(2, 3, told{200, two, of(2), 2, false}),
			get(4, one, 2)}, false},
		"at the same time": {[]porcupine.Operation{merge(2, 9, told{200, two, of(2), 2, false}),
			get(4, one, 1), get(6, two, 2)}, true},
		"unknown, and made":     {[]porcupine.Operation{merge(2, never, told{}), get(4, one, 1), get(6, two, 2)}, true},
		"unknown, and not made": {[]porcupine.Operation{merge(2, never, told{}), get(4, one, 1)}, true},
		"unknown, and made twice": {[]porcupine.Operation{merge(2, never, told{}), get(4, two, 2),
			get(6, two, 3)}, false},
		"refused, and made":         {[]porcupine.Operation{merge(2, 3, told{code: 409}), get(4, two, 2)}, false},
		"the version that is meant": {[]porcupine.Operation{put(of(1), two, told{200, two, of(2), 2, false})}, true},
		"another version than is meant": {[]porcupine.Operation{put(of(2), two, told{200, two, of(2), 2, false})},
			false},
		"refused although it is the one": {[]porcupine.Operation{put(of(1), two, told{code: 409})}, false},
		"a policy refuses":               {[]porcupine.Operation{number(0, told{code: 422})}, true},
		"a policy refuses what is valid": {[]porcupine.Operation{number(2, told{code: 422})}, false},
		"what a policy refuses is made":  {[]porcupine.Operation{number(0, told{200, fallen, of(2), 2, false})}, false},
		"deleted, and there": {
			[]porcupine.Operation{op(1, 2, 3, wanted{method: "DELETE"}, told{code: 204}), get(4, one, 1)}, false},
		"deleted by another, and gone": {
			[]porcupine.Operation{op(1, 2, 3, wanted{method: "DELETE"}, told{code: 204, written: 2}),
				op(2, 2, 4, wanted{method: "DELETE"}, told{code: 204, isGone: true})}, true},
		"deleted by no one": {
			[]porcupine.Operation{op(2, 2, 4, wanted{method: "DELETE"}, told{code: 204, isGone: true}), get(5, one, 1)},
			false},
		"not there, although nobody did it": {
			[]porcupine.Operation{op(1, 2, 3, wanted{method: "GET"}, told{code: 404})}, false},
	} {
		history := slices.Concat([]porcupine.Operation{created}, tt.history)
		if got := porcupine.CheckOperations(integerTags.linear(), history); got != tt.want {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
