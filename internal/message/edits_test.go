package message

import (
	"strings"
	"testing"
)

// edited makes edits of words: +Name:value adds, =Name:value sets, -Name removes. It reports false if one may not be
// made.
func edited(words []string) (e *Edits, ok bool) {
	e = &Edits{}
	for _, word := range words {
		name, value, _ := strings.Cut(word[1:], ":")
		if CheckEdit(name, value) != nil {
			return nil, false
		}
		switch word[0] {
		case '+':
			e.Add(name, value)
		case '=':
			e.Set(name, value)
		default:
			e.Remove(name)
		}
	}
	return e, true
}

func forwardEdited(t testing.TB, lines string, e *Edits, f Forward) string {
	t.Helper()
	var h Head
	if err := h.Parse([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n"), &Options{Trusted: true}); err != nil {
		t.Fatal(err)
	}
	f.Edits, f.Length = e, -1
	text := string(h.AppendForward(nil, &f))
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, "GET / HTTP/1.1\r\nHost: a\r\n"), "\r\n\r\n"),
		"\r\n", "|")
}

func TestEditsOfRequests(t *testing.T) {
	ours := Forward{Peer: "1.2.3.4", Proto: "http", Via: "gw"}
	const own = "X-Forwarded-For: 1.2.3.4|X-Forwarded-Proto: http|X-Forwarded-Host: a|Via: 1.1 gw"
	for _, tt := range []struct {
		edits, lines, want string
		forward            Forward
	}{
		{"=X-A:1", "", "X-A: 1|" + own, ours},
		{"=x-a:1 +x-a:2", "X-A: 0\r\nX-A: 00\r\nX-B: b\r\n", "X-B: b|x-a: 1|x-a: 2|" + own, ours},
		{"+X-A:1", "X-A: 0\r\n", "X-A: 0|X-A: 1|" + own, ours},
		{"-X-A", "X-A: 0\r\nX-AB: 1\r\n", "X-AB: 1|" + own, ours},
		{"+X-A:1 -x-a", "X-A: 0\r\n", own, ours},
		{"-X-A +X-A:1", "X-A: 0\r\n", "X-A: 1|" + own, ours},
		{"+Authorization:b", "Authorization: a\r\n", "Authorization: b|" + own, ours}, // which must not have two lines
		{"=X-Forwarded-Proto:https -X-Forwarded-For -via", "X-Forwarded-For: 9.9.9.9\r\n",
			"X-Forwarded-Proto: https|X-Forwarded-Host: a", ours},
		{"=X-Forwarded-Host:b =Forwarded:for=x", "Forwarded: for=y\r\n", "X-Forwarded-Host: b|Forwarded: for=x|X-Forwarded-For: 1.2.3.4|X-Forwarded-Proto: http|Via: 1.1 gw", ours},
		// What the gateway says of this request it says alone.
		{"=Accept-Encoding:gzip =If-Match:x", "", "Accept-Encoding: identity",
			Forward{Skip: Fields(FieldAcceptEncoding, FieldIfMatch),
				Extra: []Header{{Name: []byte("Accept-Encoding"), Value: []byte("identity")}}}},
		{"=Authorization:x", "Authorization: y\r\n", "Authorization: gateway",
			Forward{Stripped: Fields(FieldAuthorization), Lines: []byte("Authorization: gateway\r\n")}},
	} {
		e, ok := edited(strings.Fields(tt.edits))
		if !ok {
			t.Fatalf("%s may not be made", tt.edits)
		}
		if tt.forward.Peer == "" {
			tt.want += "|X-Forwarded-Host: a"
		}
		if got := forwardEdited(t, tt.lines, e, tt.forward); got != tt.want {
			t.Errorf("%s of %q makes\n%s, want\n%s", tt.edits, tt.lines, got, tt.want)
		}
	}
}

func TestEditsOfAnswers(t *testing.T) {
	e, _ := edited([]string{"=X-A:1", "+X-B:2", "-X-C", "=Content-Type:text/x"})
	r := &Response{}
	r.Receive(200, []byte("HTTP/1.1 200 OK\r\nX-A: 0\r\nX-B: 1\r\nx-c: 3\r\nContent-Type: a/b\r\n\r\n"))
	r.Edit(e)
	if got, want := string(r.Head()),
		"HTTP/1.1 200 OK\r\nX-B: 1\r\nX-A: 1\r\nX-B: 2\r\nContent-Type: text/x\r\n\r\n"; got != want {
		t.Errorf("the head is %q, want %q", got, want)
	}
	r.Edit(nil)
}

func TestCheckEdit(t *testing.T) {
	for _, name := range []string{
		"Host", "host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "TE", "Trailer",
		"Proxy-Authorization", "Expect", "HTTP2-Settings",
		"X-Remote-User", "x_remote_user", "Impersonate-User", "Impersonate_Group", "", "a b", "a:b", "a\r\nb", "é",
	} {
		if CheckEdit(name, "x") == nil {
			t.Errorf("%q may be edited", name)
		}
	}
	for _, value := range []string{"a\r\nX: y", "a\x00", "\n"} {
		if CheckEdit("X-A", value) == nil {
			t.Errorf("a header may have the value %q", value)
		}
	}
	for _, name := range []string{"X-A", "Authorization", "Cookie", "X-Forwarded-For", "Via", "Content-Type", "X_A"} {
		if err := CheckEdit(name, "a b; c"); err != nil {
			t.Error(err)
		}
	}
}

func TestEditsDoNotAllocate(t *testing.T) {
	e, _ := edited([]string{"=X-A:1", "+X-B:2", "-X-Header-With-A-Very-Long-Name-Indeed-That-Is-Removed"})
	var h Head
	if err := h.Parse([]byte("GET / HTTP/1.1\r\nHost: a\r\nX-A: 0\r\nX-Other: 1\r\n\r\n"), &Options{}); err != nil {
		t.Fatal(err)
	}
	room, f := make([]byte, 0, 512), &Forward{Edits: e, Length: -1}
	if n := testing.AllocsPerRun(100, func() { h.AppendForward(room, f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzEdits: whatever may be edited, the head that comes of it is one that is read again, with one host and no framing
// but the gateway's.
func FuzzEdits(f *testing.F) {
	f.Add("=X-A:1 +X-B:2 -X-C", "X-A: 0\r\nX-C: 1\r\n")
	f.Add("=Host:evil", "")
	f.Add("+Transfer-Encoding:chunked", "X: y\r\n")
	f.Add("=a:b\r\n\r\nGET", "")
	f.Fuzz(func(t *testing.T, words, lines string) {
		for _, word := range strings.Fields(words) {
			if !strings.ContainsAny(word[:1], "+=-") {
				t.Skip()
			}
		}
		e, ok := edited(strings.Fields(words))
		if !ok {
			t.Skip()
		}
		var h, again Head
		if n, _, flaw := HeadEnd([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n"), 0); flaw != nil ||
			n != len("GET / HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n") {
			t.Skip()
		}
		if h.Parse([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+lines+"\r\n"), &Options{}) != nil {
			t.Skip()
		}
		out := h.AppendForward(nil, &Forward{Edits: e, Length: 5, Peer: "1.2.3.4", Proto: "http", Via: "gw"})
		if n, _, flaw := HeadEnd(out, 0); flaw != nil || n != len(out) {
			t.Fatalf("%q of %q makes %q, which ends after %d", words, lines, out, n)
		}
		if err := again.Parse(out, &Options{Headers: 10_000, HeadBytes: 1 << 20, Trusted: true}); err != nil &&
			strings.Contains(err.Error(), "more than once") == false {
			t.Fatalf("%q of %q makes %q: %v", words, lines, out, err)
		} else if err == nil && (string(again.Host) != "a" || again.ContentLength != 5) {
			t.Fatalf("%q of %q makes %q", words, lines, out)
		}
	})
}

// TestEditsWithout: edits that leave the lines alone on which it depends what a request is taken for.
func TestEditsWithout(t *testing.T) {
	const lines = "Content-Type: a/b\r\nIf-Match: \"0\"\r\nX-A: 0\r\n"
	const all = "=Content-Type:text/x +X-HTTP-Method-Override:DELETE =x-http-method:PUT =X-Method-Override:PUT =If-Match:* =If-None-Match:* =If-Modified-Since:x =If-Unmodified-Since:x " +
		"=If-Range:x =Content-Encoding:gzip =If_Match:x =X_HTTP_Method_Override:x =X-Original-URL:/x =x_original_url:/y =X-A:1 -X-B"
	for _, tt := range []struct {
		edits      string
		fields     FieldSet
		want, left string
	}{
		{all, Judged | Paths, `Content-Type: a/b|If-Match: "0"|X-A: 1`, "Content-Type x-http-method X-Method-Override If-Match If-None-Match If-Modified-Since If-Unmodified-Since If-Range Content-Encoding " +
			"If_Match X_HTTP_Method_Override X-Original-URL x_original_url X-HTTP-Method-Override"},
		{"=X-Original-URL:/x =Content-Type:text/x", Paths, `If-Match: "0"|X-A: 0|Content-Type: text/x`,
			"X-Original-URL"},
		{"-If-Match -content-type -X-A", Judged, `Content-Type: a/b|If-Match: "0"`, "If-Match content-type"},
		{"=X-A:1 -Cookie", Judged | Paths, `Content-Type: a/b|If-Match: "0"|X-A: 1`, ""},
		{"=Content-Type:x/y", 0, `If-Match: "0"|X-A: 0|Content-Type: x/y`, ""},
	} {
		e, ok := edited(strings.Fields(tt.edits))
		if !ok {
			t.Fatalf("%s may not be made", tt.edits)
		}
		rest, left := e.Without(tt.fields)
		if got := forwardEdited(t, lines, rest, Forward{}); got != tt.want+"|X-Forwarded-Host: a" ||
			strings.Join(left, " ") != tt.left {
			t.Errorf("%s makes\n%s and leaves %s, want\n%s and %s", tt.edits, got, strings.Join(left, " "), tt.want,
				tt.left)
		}
	}
	if rest, left := (*Edits)(nil).Without(Judged); rest != nil || left != nil {
		t.Errorf("no edits become %v, %v", rest, left)
	}
}
