package storage

import (
	"fmt"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// TestSequels: what each ending of an attempt leads to, by the nature of the request. Nothing that changes something
// is sent again after it may have been carried out, unless the client's own method allows that.
func TestSequels(t *testing.T) {
	lost := func(k upstream.Kind) error { return &upstream.Error{Kind: k, Sent: true} }
	unsent := func(k upstream.Kind) error { return &upstream.Error{Kind: k} }
	codes := []int{429, 500, 503}
	for _, tt := range []struct {
		name                                 string
		code                                 int
		err                                  error
		isRepeated                           bool
		once, safe, repeatable, unrepeatable sequel
	}{
		{"an answer", 200, nil, false, stands, stands, stands, stands},
		{"a code that is not named", 502, nil, false, stands, stands, stands, stands},
		{"a refusal that is named", 429, nil, false, again, again, again, again},
		{"a failure that is named", 500, nil, false, unknown, again, again, again},
		{"404", 404, nil, false, stands, stands, stands, stands},
		{"409", 409, nil, false, stands, stands, stands, stands},
		{"412", 412, nil, false, stands, stands, stands, stands},
		{"404 to a repeated request", 404, nil, true, unknown, stands, unknown, unknown},
		{"409 to a repeated request", 409, nil, true, unknown, stands, unknown, unknown},
		{"410 to a repeated request", 410, nil, true, unknown, stands, unknown, unknown},
		{"412 to a repeated request", 412, nil, true, unknown, stands, unknown, unknown},
		{"200 to a repeated request", 200, nil, true, stands, stands, stands, stands},
		{"422 to a repeated request", 422, nil, true, stands, stands, stands, stands},
		{"no connection", 0, unsent(upstream.Unreachable), false, again, again, again, again},
		{"not processed", 0, unsent(upstream.Broken), false, again, again, again, again},
		{"the connection ends", 0, lost(upstream.Broken), false, unknown, again, again, stands},
		{"a timeout", 0, lost(upstream.TooSlow), false, unknown, again, again, stands},
		{"nonsense", 0, lost(upstream.Malformed), false, unknown, stands, stands, stands},
		{"too large", 0, lost(upstream.TooLarge), false, unknown, stands, stands, stands},
		{"no memory for the answer", 0, lost(upstream.NoMemory), false, unknown, stands, stands, stands},
		{"the client has left", 0, lost(upstream.Abandoned), false, stands, stands, stands, stands},
		{"the client failed", 0, lost(upstream.ClientFailed), false, stands, stands, stands, stands},
		{"no free connection", 0, unsent(upstream.Busy), false, stands, stands, stands, stands},
		{"the circuit is open", 0, unsent(upstream.CircuitOpen), false, stands, stands, stands, stands},
	} {
		var answer message.Response
		answer.Start(tt.code)
		end := endingOf(&answer, tt.err, codes, tt.isRepeated)
		for nature, want := range map[Nature]sequel{Once: tt.once, Safe: tt.safe, Repeatable: tt.repeatable,
			Unrepeatable: tt.unrepeatable} {
			if got := sequels[nature][end]; got != want {
				t.Errorf("%s: a request of the nature %d leads to %d, want %d", tt.name, nature, got, want)
			}
		}
	}
}

// TestNatures: what may arrive twice follows from the client's method and its preconditions.
func TestNatures(t *testing.T) {
	for method, want := range map[string][3]Nature{
		// without more, with a precondition, with another method in a header
		"GET": {Safe, Safe, Safe}, "HEAD": {Safe, Safe, Safe}, "OPTIONS": {Safe, Safe, Safe},
		"PUT": {Repeatable, Once, Unrepeatable}, "DELETE": {Repeatable, Once, Unrepeatable},
		"POST": {Unrepeatable, Once, Unrepeatable}, "PATCH": {Unrepeatable, Once, Unrepeatable},
		"PURGE": {Unrepeatable, Once, Unrepeatable},
	} {
		for i, lines := range [][]string{{""}, {"If-Match: \"1\"\r\n", "If-None-Match: *\r\n",
			"If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT\r\n"}, {"X-HTTP-Method-Override: PATCH\r\n"}} {
			for _, line := range lines {
				var head message.Head
				if err := head.Parse([]byte(method+" /a HTTP/1.1\r\nHost: a\r\n"+line+"\r\n"),
					&message.Options{}); err != nil {
					t.Fatal(err)
				}
				if got := natureOf([]byte(method), &head); got != want[i] {
					t.Errorf("%s %q has the nature %d, want %d", method, line, got, want[i])
				}
			}
		}
	}
}

// TestRefusals: each answer that refuses a write has one meaning, by what the write was pinned to.
func TestRefusals(t *testing.T) {
	pins := []Pin{NotPinned, PinnedByETag, PinnedToNothing, PinnedByField, PinnedByObject}
	for _, tt := range []struct {
		verb        resource.Verb
		isGenerated bool
		code        int
		want        string // of each pin: '-' none, o outdated, t taken, a absent
	}{
		{resource.VerbCreate, false, 409, "-----"}, {resource.VerbCreate, true, 409, "ttttt"},
		{resource.VerbCreate, false, 412, "-oto-"},
		{resource.VerbUpdate, false, 409, "---oo"}, {resource.VerbUpdate, false, 412, "-ooo-"},
		{resource.VerbUpdate, false, 404, "aaaaa"},
		{resource.VerbPatch, false, 409, "---oo"}, {resource.VerbPatch, false, 412, "-ooo-"},
		{resource.VerbPatch, false, 422, "-----"},
		{resource.VerbDelete, false, 404, "aaaaa"}, {resource.VerbDelete, false, 410, "aaaaa"},
		{resource.VerbDelete, false, 409, "---oo"},
		{resource.VerbDelete, false, 412, "-ooo-"}, {resource.VerbDelete, false, 500, "-----"},
		{resource.VerbUpdate, false, 200, "-----"},
	} {
		got := ""
		for _, pin := range pins {
			w := Write{HasGeneratedName: tt.isGenerated}
			w.Info.Verb, w.Existing.Pin = tt.verb, pin
			got += map[Refusal]string{NoRefusal: "-", Outdated: "o", NameTaken: "t", Absent: "a"}[w.Refused(tt.code)]
		}
		if got != tt.want {
			t.Errorf("%s", fmt.Sprint(tt.verb, tt.isGenerated, " ", tt.code, ": ", got, ", want ", tt.want))
		}
	}
}
