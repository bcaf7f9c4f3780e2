package message

import (
	"bufio"
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// parse reads s, which must be one whole head.
func parse(t testing.TB, s string, o Options) (*Head, error) {
	t.Helper()
	n, _, flaw := HeadEnd([]byte(s), 0)
	if flaw != nil {
		return nil, flaw.OfRequest()
	}
	if n != len(s) {
		t.Fatalf("the head ends at %d of %d", n, len(s))
	}
	h := new(Head)
	return h, h.Parse([]byte(s), &o)
}

func head(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func TestParse(t *testing.T) {
	type line struct {
		name, value string
		field       Field
		dropped     bool
	}
	for _, c := range []struct {
		name    string
		head    string
		options Options
		want    Head
		lines   []line
	}{
		{
			name: "least", head: head("GET / HTTP/1.1", "Host: a"),
			want:  Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{{"Host", "a", FieldHost, false}},
		},
		{
			name: "length", head: head("PUT /a%2Fb?c=% HTTP/1.1", "host:[::1]:8080",
				"CONTENT-LENGTH: \t 9223372036854775807\t", "content-type:a/b"),
			want: Head{Method: []byte("PUT"), Target: []byte("/a%2Fb?c=%"), Host: []byte("[::1]:8080"), Minor: 1,
				ContentLength: 1<<63 - 1},
			lines: []line{
				{"host", "[::1]:8080", FieldHost, false}, {"CONTENT-LENGTH", "9223372036854775807", FieldContentLength,
					true},
				{"content-type", "a/b", FieldContentType, false},
			},
		},
		{
			name: "chunked, expecting",
			head: head("POST / HTTP/1.1", "Expect: 100-CONTINUE", "Transfer-Encoding: CHUNKED", "Host: a"),
			want: Head{Method: []byte("POST"), Target: []byte("/"), Host: []byte("a"), Minor: 1, ContentLength: -1,
				Expect: true},
			lines: []line{
				{"Expect", "100-CONTINUE", FieldExpect, true},
				{"Transfer-Encoding", "CHUNKED", FieldTransferEncoding, true}, {"Host", "a", FieldHost, false},
			},
		},
		{
			name: "expecting without a body", head: head("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 0",
				"Host: a"),
			want: Head{Method: []byte("POST"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{
				{"Expect", "100-continue", FieldExpect, true}, {"Content-Length", "0", FieldContentLength, true},
				{"Host", "a", FieldHost, false},
			},
		},
		{
			name: "HTTP/1.0 without Host", head: head("GET / HTTP/1.0"),
			want: Head{Method: []byte("GET"), Target: []byte("/"), Close: true},
		},
		{
			name: "HTTP/1.0 with keep-alive", head: head("GET / HTTP/1.0", "Connection: a, Keep-Alive", "A: 1"),
			want:  Head{Method: []byte("GET"), Target: []byte("/")},
			lines: []line{{"Connection", "a, Keep-Alive", FieldConnection, true}, {"A", "1", FieldOther, true}},
		},
		{
			name: "absolute target", head: head("GET HTTPS://Example.com:1/a?b HTTP/1.1", "Host: example.COM:1"),
			want:  Head{Method: []byte("GET"), Target: []byte("/a?b"), Host: []byte("example.COM:1"), Minor: 1},
			lines: []line{{"Host", "example.COM:1", FieldHost, false}},
		},
		{
			name: "absolute target without a path", head: head("GET http://a HTTP/1.1", "Host: a"),
			want:  Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{{"Host", "a", FieldHost, false}},
		},
		{
			name: "absolute target with a query alone", head: head("GET http://a?b=/c HTTP/1.1", "Host: a"),
			want:  Head{Method: []byte("GET"), Target: []byte("/?b=/c"), Host: []byte("a"), Minor: 1},
			lines: []line{{"Host", "a", FieldHost, false}},
		},
		{
			name: "underscores dropped", head: head("GET / HTTP/1.1", "Host: a", "Host_: b", "Content_Length: 1",
				"X-Remote-User: c"),
			options: Options{Underscores: DropUnderscores},
			want:    Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{
				{"Host", "a", FieldHost, false}, {"Host_", "b", FieldOther, true},
				{"Content_Length", "1", FieldOther, true},
				{"X-Remote-User", "c", FieldXRemote, true},
			},
		},
		{
			name: "underscores passed, peer trusted", head: head("GET / HTTP/1.1", "X_Remote_User: c", "Host: a",
				"X-Remote-User: c", "Impersonate-User: d", "X-Forwarded-For: e", "X_Real_IP: g"),
			options: Options{Underscores: PassUnderscores, Trusted: true},
			want:    Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{
				{"X_Remote_User", "c", FieldXRemote, false}, {"Host", "a", FieldHost, false},
				{"X-Remote-User", "c", FieldXRemote, false},
				{"Impersonate-User", "d", FieldImpersonate, false}, {"X-Forwarded-For", "e", FieldXForwardedFor, false},
				{"X_Real_IP", "g", FieldXRealIP, false},
			},
		},
		{
			name:    "Forwarded of a peer that sends X-Forwarded-For",
			head:    head("GET / HTTP/1.1", "Host: a", "X-Forwarded-For: e", "Forwarded: f"),
			options: Options{Trusted: true},
			want:    Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{{"Host", "a", FieldHost, false}, {"X-Forwarded-For", "e", FieldXForwardedFor, false},
				{"Forwarded", "f", FieldForwarded, true}},
		},
		{
			name: "X-Forwarded-For of a peer that sends Forwarded",
			head: head("GET / HTTP/1.1", "Host: a", "X-Forwarded-For: e", "X-Forwarded-Proto: g",
				"X-Forwarded-Prefix: h", "X-Remote-User: c", "Forwarded: f"),
			options: Options{Trusted: true, Forwarded: true},
			want:    Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{
				{"Host", "a", FieldHost, false}, {"X-Forwarded-For", "e", FieldXForwardedFor, true},
				{"X-Forwarded-Proto", "g", FieldXForwardedProto, true},
				{"X-Forwarded-Prefix", "h", FieldXForwarded, true}, {"X-Remote-User", "c", FieldXRemote, false},
				{"Forwarded", "f", FieldForwarded, false},
			},
		},
		{
			name: "underscores passed, but not for who the client is",
			head: head("GET / HTTP/1.1", "Host: a", "x_remote_User: c", "X-Remote_Group: d", "X_Real-IP: e",
				"X_Forwarded_Proto: f", "A_B: g", "Content_Length: 1"),
			options: Options{Underscores: PassUnderscores},
			want:    Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1},
			lines: []line{
				{"Host", "a", FieldHost, false}, {"x_remote_User", "c", FieldXRemote, true},
				{"X-Remote_Group", "d", FieldXRemote, true},
				{"X_Real-IP", "e", FieldXRealIP, true}, {"X_Forwarded_Proto", "f", FieldXForwardedProto, true},
				{"A_B", "g", FieldOther, false}, {"Content_Length", "1", FieldOther, false},
			},
		},
		{
			name: "who the client is, named by Connection", head: head("GET / HTTP/1.1", "Host: a", "X-Remote-User: c",
				"Connection: x-remote-user"),
			want: Head{Method: []byte("GET"), Target: []byte("/"), Host: []byte("a"), Minor: 1,
				named: Fields(FieldXRemote)},
			lines: []line{
				{"Host", "a", FieldHost, false}, {"X-Remote-User", "c", FieldOther, true},
				{"Connection", "x-remote-user", FieldConnection, true},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := parse(t, c.head, c.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []line
			for _, l := range h.Headers() {
				got = append(got, line{string(l.Name), string(l.Value), l.Field, l.Dropped})
			}
			if !reflect.DeepEqual(got, c.lines) {
				t.Errorf("lines are %v, want %v", got, c.lines)
			}
			for i := FieldOther + 1; i <= FieldXAdmissionExplain; i++ {
				want := false
				for _, l := range c.lines {
					want = want || l.field == i && !l.dropped
				}
				if h.Has(i) != want {
					t.Errorf("Has(%d) is %v", i, !want)
				}
				if (h.Value(i) != nil) != want {
					t.Errorf("Value(%d) is %q", i, h.Value(i))
				}
			}
			h.headers, h.seen = nil, 0
			if !reflect.DeepEqual(*h, c.want) {
				t.Errorf("got %+v, want %+v", *h, c.want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	h, err := parse(t, head("GET / HTTP/1.1", "Host: a", "x-A: 1", "X-a: 2", "X-B: 3", "Connection: X-B"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := h.Lookup("X-A"); !ok || string(v) != "1" {
		t.Errorf("X-A is %q, %v", v, ok)
	}
	if v, ok := h.Lookup("X-B"); ok {
		t.Errorf("X-B is %q although Connection names it", v)
	}
}

func TestFieldOf(t *testing.T) {
	names := map[string]Field{
		"Accept": FieldAccept, "Accept-Encoding": FieldAcceptEncoding, "Authorization": FieldAuthorization,
		"Connection":       FieldConnection,
		"Content-Encoding": FieldContentEncoding, "Content-Length": FieldContentLength,
		"Content-Type": FieldContentType, "Cookie": FieldCookie,
		"Date": FieldDate, "Expect": FieldExpect, "Forwarded": FieldForwarded, "Host": FieldHost,
		"HTTP2-Settings": FieldHTTP2Settings, "If-Match": FieldIfMatch, "If-Modified-Since": FieldIfModifiedSince,
		"If-None-Match": FieldIfNoneMatch, "If-Range": FieldIfRange, "If-Unmodified-Since": FieldIfUnmodifiedSince,
		"Impersonate-User": FieldImpersonate, "Impersonate-": FieldImpersonate, "Keep-Alive": FieldKeepAlive,
		"X-HTTP-Method-Override": FieldMethodOverride, "X-HTTP-Method": FieldMethodOverride,
		"X-Method-Override": FieldMethodOverride,
		"Origin":            FieldOrigin, "Proxy-Authenticate": FieldProxyAuthenticate,
		"Proxy-Authorization": FieldProxyAuthorization,
		"Proxy-Connection":    FieldProxyConnection, "Range": FieldRange, "TE": FieldTE,
		"Traceparent": FieldTraceparent, "Tracestate": FieldTracestate, "Trailer": FieldTrailer,
		"Transfer-Encoding": FieldTransferEncoding,
		"Upgrade":           FieldUpgrade, "User-Agent": FieldUserAgent, "Via": FieldVia, "X-Forwarded-Port": FieldXForwarded,
		"X-Forwarded-For": FieldXForwardedFor, "X-Forwarded-Host": FieldXForwardedHost,
		"X-Forwarded-Proto": FieldXForwardedProto,
		"X-Real-IP":         FieldXRealIP, "X-Remote-": FieldXRemote, "X-Remote-Extra-a": FieldXRemote,
		"X-Request-ID": FieldXRequestID, "Audit-ID": FieldAuditID, "X-Admission-Explain": FieldXAdmissionExplain,
		"X-Original-URL": FieldTargetOverride, "X-Rewrite-URL": FieldTargetOverride, "Path-Info": FieldTargetOverride,
		"X-HTTP-DestinationURL": FieldTargetOverride,
		"True-Client-IP":        FieldClientAddress, "Proxy": FieldClientAddress,
		"X-Original-Forwarded-For": FieldClientAddress, "X-Forwarded": FieldClientAddress,
		"Proxy-": FieldOther, "X-Original-URLs": FieldOther, "X-Original_URL": FieldOther,
		"X-Original-Forwarded-For-": FieldOther,
		"":                          FieldOther, "X-Remote": FieldOther, "X-A": FieldOther, "Impersonate": FieldOther,
		"Contents-Length": FieldOther,
	}
	for name, want := range names {
		for _, n := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if got := FieldOf([]byte(n)); got != want {
				t.Errorf("FieldOf(%q) is %d, want %d", n, got, want)
			}
		}
	}
}

func TestAppendForward(t *testing.T) {
	h, err := parse(t, head("POST /a?b HTTP/1.1", "host: gw", "b: 1", "Content-Length: 3", "If-Match: x",
		"X-Forwarded-For: 1.1.1.1", "x-forwarded-for: 2.2.2.2",
		"X-Forwarded-Proto: https", "A: 2"), Options{Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	got := h.AppendForward([]byte("before"), &Forward{
		Method: []byte("PUT"), Target: []byte("/c"), Host: "other", Peer: "3.3.3.3", Proto: "http", Via: "v",
		Skip:  Fields(FieldIfMatch),
		Extra: []Header{{Name: []byte("E"), Value: []byte("5")}}, Length: 0,
	})
	want := "before" + head("PUT /c HTTP/1.1", "Host: other", "b: 1", "X-Forwarded-Proto: https", "A: 2", "E: 5",
		"X-Forwarded-For: 1.1.1.1, 2.2.2.2, 3.3.3.3",
		"X-Forwarded-Host: gw", "Via: 1.1 v", "Content-Length: 0")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	h, err = parse(t, head("GET / HTTP/1.1", "Host: gw", "X-Forwarded-For: 1.1.1.1",
		`Forwarded: for=2.2.2.2;proto=https`), Options{Trusted: true, Forwarded: true})
	if err != nil {
		t.Fatal(err)
	}
	got = h.AppendForward(nil,
		&Forward{Peer: "2001:db8::1", Proto: "http",
			Origin: Origin{Client: "2.2.2.2", Proto: "https", Host: "shop.example.com"}, Via: "v", Length: -1})
	want = head("GET / HTTP/1.1", "Host: gw", "Forwarded: for=2.2.2.2;proto=https",
		"X-Forwarded-For: 2.2.2.2, 2001:db8::1", `Forwarded: for="[2001:db8::1]";proto=http`,
		"X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example.com", "Via: 1.1 v")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	h, err = parse(t, head("GET / HTTP/1.0", "A: 1"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got = h.AppendForward(nil, &Forward{Peer: "3.3.3.3", Proto: "https", Via: "v", Length: -1})
	want = head("GET / HTTP/1.1", "Host: ", "A: 1", "X-Forwarded-For: 3.3.3.3", "X-Forwarded-Proto: https",
		"Via: 1.0 v")
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever is accepted net/http accepts too, and reads in the same way.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		head("GET / HTTP/1.1", "Host: a"),
		head("POST /a%20b?c HTTP/1.1", "Host: a:80", "Content-Length: 3", "Expect: 100-continue",
			"Connection: close, X-A", "X-A: \xff\t b"),
		head("PUT http://a/b HTTP/1.1", "Host: a", "Transfer-Encoding: chunked"),
		head("GET / HTTP/1.0", "Connection: keep-alive"),
		head("DELETE //a HTTP/1.1", "Host: [::1]"),
		"GET / HTTP/1.1\r\nHost: a\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, _, err := HeadEnd(b, 0)
		if err != nil || n == 0 {
			return
		}
		var h Head
		if h.Parse(b[:n], &Options{Underscores: PassUnderscores, Headers: 1 << 20}) != nil {
			return
		}
		r, rerr := http.ReadRequest(bufio.NewReader(bytes.NewReader(b[:n])))
		if rerr != nil {
			t.Fatalf("net/http refuses %q: %v", b[:n], rerr)
		}
		target := r.RequestURI
		if !strings.HasPrefix(target, "/") {
			target = target[strings.Index(target, "://")+3:]
			target = target[strings.Index(target, "/"):]
		}
		if r.Method != string(h.Method) || target != string(h.Target) || !strings.EqualFold(r.Host, string(h.Host)) ||
			r.ContentLength != h.ContentLength || r.ProtoMinor != h.Minor || r.Close && !h.Close {
			t.Fatalf("%q\nnet/http: %s %s %s %d %d %v\nwire: %s %s %s %d %d %v", b[:n], r.Method, target, r.Host,
				r.ContentLength, r.ProtoMinor, r.Close,
				h.Method, h.Target, h.Host, h.ContentLength, h.Minor, h.Close)
		}
		// What is forwarded reads as one request again.
		out := h.AppendForward(nil, &Forward{Peer: "1.2.3.4", Proto: "http", Via: "v", Length: max(h.ContentLength, 0)})
		m, _, err := HeadEnd(out, 0)
		if err != nil || m != len(out) {
			t.Fatalf("forwarded as %q", out)
		}
		var again Head
		if h.Minor == 1 {
			if err := again.Parse(out,
				&Options{Underscores: PassUnderscores, Trusted: true, Headers: 1 << 20}); err != nil {
				t.Fatalf("forwarded as %q: %v", out, err)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	s := []byte(head("POST /apis/apps/v1/namespaces/team-a/deployments?fieldManager=kubectl HTTP/1.1",
		"Host: gateway.example.com:8080",
		"User-Agent: kubectl/v1.34.0 (linux/amd64) kubernetes/abcdef0", "Content-Length: 1300",
		"Accept: application/json",
		"Authorization: Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IkFCQ0RFRiJ9", "Content-Type: application/json",
		"Accept-Encoding: gzip"))
	var h Head
	o := Options{}
	f := Forward{Peer: "127.0.0.1", Proto: "http", Via: "v", Length: 1300}
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		n, _, _ := HeadEnd(s, 0)
		if err := h.Parse(s[:n], &o); err != nil {
			b.Fatal(err)
		}
		out = h.AppendForward(out[:0], &f)
	}
}
