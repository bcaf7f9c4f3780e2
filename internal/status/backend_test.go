package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// ERR-1, ERR-5: a backend's error that is no Status becomes one and keeps its code's meaning.
func TestFromBackend(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	tests := []struct {
		name   string
		answer ErrorResponse
		want   string
	}{
		{"plain text 404 of an object", ErrorResponse{Code: 404, ContentType: "text/plain; charset=utf-8",
			Body: []byte("404 page not found\n"), Resource: orders, Name: "o1", Verb: "get"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o1\" not found","reason":"NotFound","details":{"name":"o1","group":"shop.example.com","kind":"orders","causes":[{"reason":"UnexpectedServerResponse","message":"404 page not found"}]},"code":404}`},
		{"plain text 400", ErrorResponse{Code: 400, ContentType: "text/plain",
			Body: []byte("quantity\r\n must\x00\x07 be 1"[:12])},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"quantity m","reason":"BadRequest","details":{"causes":[{"reason":"UnexpectedServerResponse","message":"quantity m"}]},"code":400}`},
		{"HTML 502", ErrorResponse{Code: 502, ContentType: "text/html", Body: []byte("<html>\n<head><TITLE>502 Bad Gateway &amp; co</TITLE></head><body>secret</body>")},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"502 Bad Gateway \u0026 co","reason":"InternalError","details":{"causes":[{"reason":"UnexpectedServerResponse","message":"502 Bad Gateway \u0026 co"}]},"code":502}`},
		{"empty 502", ErrorResponse{Code: 502},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 502 Bad Gateway","reason":"InternalError","details":{},"code":502}`},
		{"empty 410", ErrorResponse{Code: 410},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 410 Gone","reason":"Gone","details":{},"code":410}`},
		{"problem+json 422", ErrorResponse{Code: 422, ContentType: "application/problem+json",
			Body: []byte(`{"title":"Invalid","detail":"size is wrong"}`)},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"size is wrong","reason":"Invalid","details":{"causes":[{"reason":"UnexpectedServerResponse","message":"size is wrong"}]},"code":422}`},
		{"JSON with error object",
			ErrorResponse{Code: 403, ContentType: "application/json",
				Body: []byte(`{"error":{"code":7,"message":"not yours"}}`)},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not yours","reason":"Forbidden","details":{"causes":[{"reason":"UnexpectedServerResponse","message":"not yours"}]},"code":403}`},
		{"JSON without a message",
			ErrorResponse{Code: 500, ContentType: "application/json", Body: []byte(`{"oops":[1]}`)},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 500 Internal Server Error","reason":"InternalError","details":{},"code":500}`},
		{"binary", ErrorResponse{Code: 500, ContentType: "text/plain", Body: []byte("\x00\x01")},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 500 Internal Server Error","reason":"InternalError","details":{},"code":500}`},
		{"another media type", ErrorResponse{Code: 599, ContentType: "image/png", Body: []byte("PNG")},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 599","reason":"InternalError","details":{},"code":599}`},
		{"conflict of a create", ErrorResponse{Code: 409, Resource: orders, Name: "o1", Verb: "create"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o1\" already exists","reason":"AlreadyExists","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":409}`},
		{"precondition of an update", ErrorResponse{Code: 412, Resource: orders, Name: "o1", Verb: "update"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on orders.shop.example.com \"o1\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":409}`},
		{"Retry-After in seconds", ErrorResponse{Code: 503, RetryAfter: " 17 "},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 503 Service Unavailable","reason":"ServiceUnavailable","details":{"retryAfterSeconds":17},"code":503}`},
		{"Retry-After as a date, rounded up", ErrorResponse{Code: 429, RetryAfter: "Sun, 01 Mar 2026 12:00:09 GMT",
			Now: now},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 429 Too Many Requests","reason":"TooManyRequests","details":{"retryAfterSeconds":9},"code":429}`},
		{"Retry-After in the past", ErrorResponse{Code: 503, RetryAfter: "Sun, 01 Mar 2026 11:00:00 GMT", Now: now},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 503 Service Unavailable","reason":"ServiceUnavailable","details":{"retryAfterSeconds":1},"code":503}`},
		{"Retry-After that is nonsense", ErrorResponse{Code: 503, RetryAfter: "soon"},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered 503 Service Unavailable","reason":"ServiceUnavailable","details":{},"code":503}`},
		{"a Status under another media type", ErrorResponse{Code: 403, ContentType: "text/plain", Body: []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"Forbidden","code":403}`)},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"Forbidden","code":403}`},
		{"no code of HTTP", ErrorResponse{Code: 799},
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the backend answered with the code 799, which is no error code of HTTP","reason":"InternalError","code":502}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendJSON(nil, &FromBackend(tt.answer).ErrStatus)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestIsStatus(t *testing.T) {
	for body, want := range map[string]bool{
		`{"kind":"Status","apiVersion":"v1","status":"Failure"}`:  true,
		` {"apiVersion":"v1","status":"Failure","kind":"Status"}`: true,
		`{"kind":"Status","apiVersion":"v1","status":"Success"}`:  false,
		`{"kind":"Status","apiVersion":"v2","status":"Failure"}`:  false,
		`{"KIND":"Status","apiVersion":"v1","status":"Failure"}`:  false,
		`{"kind":"Order","apiVersion":"v1","status":"Failure"}`:   false,
		`{"kind":7,"apiVersion":"v1","status":"Failure"}`:         false,
		`[{"kind":"Status","apiVersion":"v1"}]`:                   false,
		`{"kind":"Status"`:                                        false,
		``:                                                        false,
	} {
		if got := IsStatus([]byte(body)); got != want {
			t.Errorf("%s: got %v", body, got)
		}
	}
}

// Whatever a backend answers, the client gets a bounded, valid Status.
func FuzzFromBackend(f *testing.F) {
	f.Add(500, "text/html", "1", []byte("<title>x</title>"))
	f.Add(404, "application/json", "Sun, 01 Mar 2026 11:00:00 GMT", []byte(`{"error":"\ud800"}`))
	f.Fuzz(func(t *testing.T, code int, contentType, retry string, body []byte) {
		s := FromBackend(ErrorResponse{Code: code, ContentType: contentType, RetryAfter: retry, Body: body,
			Now: time.Unix(0, 0)}).ErrStatus
		out := AppendJSON(nil, &s)
		if !json.Valid(out) || s.Code < 400 || s.Code > 599 || s.Status != "Failure" {
			t.Fatalf("got %s", out)
		}
		if !IsStatus(body) && (s.Reason == "" || strings.TrimSpace(s.Message) == "" || len(s.Message) > maxBackendText+
			64) {
			t.Fatalf("got %s", out)
		}
	})
}
