package plain

import (
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/message"
)

// TestMatches: lists of ETags against the ETag of the backend, and against one that the gateway made.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		list, etag   string
		strong, weak bool
	}{
		{`*`, `"1"`, true, true},
		{` * `, `"1"`, true, true},
		{`*`, ``, true, true},
		{`"1"`, `"1"`, true, true},
		{`"1"`, `"2"`, false, false},
		{`"1"`, ``, false, false},
		{``, ``, false, false},
		{`W/"1"`, `"1"`, false, true},
		{`"1"`, `W/"1"`, false, true},
		{`W/"1"`, `W/"1"`, false, true},
		{`"0", "1"`, `"1"`, true, true},
		{`"0","1"`, `"1"`, true, true},
		{`"0",W/"1"`, `"1"`, false, true},
		{`W/"0,1" ,"1"`, `"1"`, true, true},
		{`"0,"1"`, `"1"`, false, false},
		{`"0,1"`, `"1"`, false, false},
		{`"0,1" , "2,3"`, `"2,3"`, true, true},
		{`W/"0,1"`, `"0,1"`, false, true},
		{`"10"`, `"1"`, false, false},
		{`1, 2`, `2`, true, true},
		{`"1`, `"1`, true, true},
		{`,,`, `"1"`, false, false},
		{`W/`, `W/`, false, false},
	} {
		v := &validators{own: []byte(c.etag)}
		if got := v.matches([]byte(c.list)); got != c.strong {
			t.Errorf("%s matches %s: %v", c.etag, c.list, got)
		}
		if got := v.matchesWeakly([]byte(c.list)); got != c.weak {
			t.Errorf("%s matches %s weakly: %v", c.etag, c.list, got)
		}
		if strings.HasPrefix(c.etag, "W/") {
			continue // which the gateway makes none
		}
		made := &validators{made: []byte(c.etag), own: []byte(`W/"other"`)}
		if made.matches([]byte(c.list)) != c.strong {
			t.Errorf("%s, if made, matches %s: %v", c.etag, c.list, !c.strong)
		}
	}
}

// TestCompare: the order of RFC 9110, 13.2.2, with an object that has the ETag "1" and was modified at ten o'clock.
func TestCompare(t *testing.T) {
	const before, at, after = "Mon, 23 Nov 2026 09:00:00 GMT", "Mon, 23 Nov 2026 10:00:00 GMT",
		"Mon, 23 Nov 2026 11:00:00 GMT"
	present := validators{made: []byte(`"1"`), own: []byte(`W/"x"`), modified: []byte(at)}
	for _, c := range []struct {
		name        string
		head        []string
		of          validators
		write, read conditionResult
	}{
		{"nothing is named", nil, present, holds, holds},
		{"If-Match, good", []string{`If-Match: "1"`}, present, holds, holds},
		{"If-Match, bogus", []string{`If-Match: "2"`}, present, unmatched, unmatched},
		{"If-Match, any", []string{`If-Match: *`}, present, holds, holds},
		{"If-Match, a list", []string{`If-Match: "2", "1"`}, present, holds, holds},
		{"If-Match, several lines", []string{`If-Match: "2"`, `If-Match: "1"`}, present, holds, holds},
		{"If-Match, weak", []string{`If-Match: W/"1"`}, present, unmatched, unmatched},
		{"If-Match, the backend's weak one", []string{`If-Match: W/"x"`}, present, unmatched, unmatched},
		{"If-Match, the backend's weak one as a strong one", []string{`If-Match: "x"`}, present, unmatched, unmatched},
		{"If-Match, empty", []string{`If-Match:`}, present, unmatched, unmatched},
		{"If-Match, nothing is stored", []string{`If-Match: "1"`}, validators{isAbsent: true}, unmatched, unmatched},
		{"If-Match, any, nothing is stored", []string{`If-Match: *`}, validators{isAbsent: true}, unmatched, unmatched},
		{"If-None-Match, good", []string{`If-None-Match: "2"`}, present, holds, holds},
		{"If-None-Match, named", []string{`If-None-Match: "1"`}, present, matched, unmodified},
		{"If-None-Match, named weakly", []string{`If-None-Match: W/"1"`}, present, matched, unmodified},
		{"If-None-Match, the backend's", []string{`If-None-Match: W/"x"`}, present, matched, unmodified},
		{"If-None-Match, any", []string{`If-None-Match: *`}, present, matched, unmodified},
		{"If-None-Match, any, nothing is stored", []string{`If-None-Match: *`}, validators{isAbsent: true}, holds,
			holds},
		{"If-Unmodified-Since, before", []string{`If-Unmodified-Since: ` + before}, present, modified, modified},
		{"If-Unmodified-Since, at", []string{`If-Unmodified-Since: ` + at}, present, holds, holds},
		{"If-Unmodified-Since, after", []string{`If-Unmodified-Since: ` + after}, present, holds, holds},
		{"If-Unmodified-Since, no date", []string{`If-Unmodified-Since: yesterday`}, present, holds, holds},
		{"If-Unmodified-Since, no time is known", []string{`If-Unmodified-Since: ` + before},
			validators{made: []byte(`"1"`)}, holds, holds},
		{"If-Match counts, and not If-Unmodified-Since", []string{`If-Match: "1"`, `If-Unmodified-Since: ` + before},
			present, holds, holds},
		{"If-Modified-Since, before", []string{`If-Modified-Since: ` + before}, present, holds, holds},
		{"If-Modified-Since, at", []string{`If-Modified-Since: ` + at}, present, holds, unmodified},
		{"If-None-Match counts, and not If-Modified-Since", []string{`If-None-Match: "2"`, `If-Modified-Since: ` +
			after}, present, holds, holds},
		{"If-Match and If-None-Match", []string{`If-Match: "1"`, `If-None-Match: "1"`}, present, matched, unmodified},
		{"If-Match fails first", []string{`If-Match: "2"`, `If-None-Match: "1"`}, present, unmatched, unmatched},
	} {
		head := headWith(t, c.head...)
		if got := compare(head, &c.of, false); got != c.write {
			t.Errorf("%s: a write has the outcome %d, not %d", c.name, got, c.write)
		}
		if got := compare(head, &c.of, true); got != c.read {
			t.Errorf("%s: a read has the outcome %d, not %d", c.name, got, c.read)
		}
	}
}

func headWith(t testing.TB, lines ...string) *message.Head {
	t.Helper()
	var h message.Head
	text := "PUT /notes/1 HTTP/1.1\r\nHost: a\r\n"
	for _, l := range lines {
		text += l + "\r\n"
	}
	if err := h.Parse([]byte(text+"\r\n"), &message.Options{}); err != nil {
		t.Fatal(err)
	}
	return &h
}

// TestMadeETags: what two bodies have in common, and how made ETags differ from others.
func TestMadeETags(t *testing.T) {
	one, same, other := appendMade(nil, []byte(`{"a":1}`)), appendMade(nil, []byte(`{"a":1}`)),
		appendMade(nil, []byte(`{"a": 1}`))
	if string(one) != `"gw-AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXO"` {
		t.Errorf("made %s", one)
	}
	if string(one) != string(same) || string(one) == string(other) {
		t.Errorf("made %s, %s and %s", one, same, other)
	}
	for text, want := range map[string]bool{string(one): true, `W/` + string(one): false, `"gw-1"`: false,
		`"abc"`: false, ``: false} {
		if isMade([]byte(text)) != want {
			t.Errorf("%s is made: %v", text, !want)
		}
	}
}
