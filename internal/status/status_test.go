package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/quote"
)

var orders = schema.GroupResource{Group: "shop.example.com", Resource: "orders"}

// ERR-1, ERR-2, ERR-3: the whole of each Status, as the client reads it.
func TestConstructors(t *testing.T) {
	tests := []struct {
		name string
		err  *Error
		want string
	}{
		{"BadRequest", BadRequest("bad %d%%", 7), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"bad 7%","reason":"BadRequest","code":400}`},
		{"Unauthorized", Unauthorized("log in"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"log in","reason":"Unauthorized","code":401}`},
		{"Forbidden", Forbidden(orders, "o1", "no"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o1\" is forbidden: no","reason":"Forbidden","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":403}`},
		{"NotFound", NotFound(orders, "o1"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o1\" not found","reason":"NotFound","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":404}`},
		{"NoSuchPath", NoSuchPath("no path"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no path","reason":"NotFound","code":404}`},
		{"MethodNotAllowed", MethodNotAllowed(orders, "TRACE"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"TRACE is not supported on resources of kind \"orders.shop.example.com\"","reason":"MethodNotAllowed","details":{"group":"shop.example.com","kind":"orders"},"code":405}`},
		{"MethodNotAllowedf", MethodNotAllowedf("not %s", "TRACE"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not TRACE","reason":"MethodNotAllowed","code":405}`},
		{"NotAcceptable", NotAcceptable("json only"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"json only","reason":"NotAcceptable","code":406}`},
		{"AlreadyExists", AlreadyExists(orders, "o1"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o1\" already exists","reason":"AlreadyExists","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":409}`},
		{"META-3 GenerateNameConflict", GenerateNameConflict(orders, "o-x2xyz", 1), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"orders.shop.example.com \"o-x2xyz\" already exists, the server was not able to generate a unique name for the object","reason":"AlreadyExists","details":{"name":"o-x2xyz","group":"shop.example.com","kind":"orders","retryAfterSeconds":1},"code":409}`},
		{"RW-1 Conflict", Conflict(orders, "o1", ModifiedMessage), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Operation cannot be fulfilled on orders.shop.example.com \"o1\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"o1","group":"shop.example.com","kind":"orders"},"code":409}`},
		{"Expired", Expired("old"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"old","reason":"Expired","code":410}`},
		{"RequestEntityTooLarge", RequestEntityTooLarge("at most %d", 3), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"at most 3","reason":"RequestEntityTooLarge","code":413}`},
		{"UnsupportedMediaType", UnsupportedMediaType("application/json"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the body of the request was in an unknown format - accepted media types include: application/json","reason":"UnsupportedMediaType","code":415}`},
		{"UnsupportedEncoding", UnsupportedEncoding("br", ""), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the body must not be encoded: Content-Encoding 'br' is not supported","reason":"UnsupportedMediaType","code":415}`},
		{"TooManyRequests", TooManyRequests("slow down", 3), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":3},"code":429}`},
		{"TooManyRequests at least 1", TooManyRequests("slow down", 0), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`},
		{"Internal", Internal("no ETag"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: no ETag","reason":"InternalError","details":{"causes":[{"message":"no ETag"}]},"code":500}`},
		{"BadGateway", BadGateway("broken"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"broken","reason":"InternalError","code":502}`},
		{"ERR-4 ServiceUnavailable", ServiceUnavailable("down", 2), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"down","reason":"ServiceUnavailable","details":{"retryAfterSeconds":2},"code":503}`},
		{"ERR-4 Timeout", Timeout("slow", 1), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow","reason":"Timeout","details":{"retryAfterSeconds":1},"code":504}`},
		{"Coded 408", Coded(408, "slow client"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow client","reason":"Timeout","code":408}`},
		{"Coded 505", Coded(505, "HTTP/1.1 only"), `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"HTTP/1.1 only","reason":"BadRequest","code":505}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendJSON(nil, &tt.err.ErrStatus)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// RW-4
func TestDeleted(t *testing.T) {
	got := string(AppendJSON(nil, Deleted(orders, "o1", "u-1")))
	want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"o1","group":"shop.example.com","kind":"orders","uid":"u-1"}}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

type foreign struct{ error }

func (foreign) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonGone, Code: 410, Message: "foreign"}
}

func TestFrom(t *testing.T) {
	own := NotFound(orders, "o1")
	if got := From(fmt.Errorf("while reading: %w", own)); got != own {
		t.Errorf("wrapped Status: got %v", got)
	}
	if got := From(foreign{errors.New("x")}); got.ErrStatus.Code != 410 || got.ErrStatus.Kind != "Status" ||
		got.ErrStatus.Message != "foreign" {
		t.Errorf("another type with a Status: got %+v", got.ErrStatus)
	}
	if got := From(fmt.Errorf("reading: %w", context.DeadlineExceeded)); got.ErrStatus.Code != 504 ||
		got.ErrStatus.Details.RetryAfterSeconds != 1 {
		t.Errorf("deadline: got %+v", got.ErrStatus)
	}
	// ERR-7: what is not a Status is not shown.
	got := From(errors.New("dial tcp 10.0.0.7:5432: password=hunter2"))
	if body := string(AppendJSON(nil, &got.ErrStatus)); got.ErrStatus.Code != 500 || strings.Contains(body, "hunter2") {
		t.Errorf("unknown error: got %s", body)
	}
}

// VAL-1: text and causes are apimachinery's own if nothing is repeated.
func TestInvalidAgainstKubernetes(t *testing.T) {
	gk := schema.GroupKind{Group: "shop.example.com", Kind: "Order"}
	lists := []field.ErrorList{
		nil,
		{field.Required(field.NewPath("spec", "size"), "")},
		{field.Invalid(field.NewPath("spec", "size"), int64(300), "must be less than or equal to 256"),
			field.NotSupported(field.NewPath("spec", "mode"), "ajar", []string{"open", "locked"}),
			field.Duplicate(field.NewPath("spec", "tags").Index(2), "a"),
			field.Invalid(field.NewPath("spec").Key("example.com/x"), map[string]any{"a": []any{1, "<b>"}}, "")},
	}
	for _, errs := range lists {
		want := apierrors.NewInvalid(gk, "o1", errs)
		want.ErrStatus.Kind, want.ErrStatus.APIVersion = "Status", "v1"
		w, err := json.Marshal(want.ErrStatus)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendJSON(nil, &Invalid(gk, "o1", errs, 0).ErrStatus)); got != string(w) {
			t.Errorf("got\n%s\nwant\n%s", got, w)
		}
	}
}

func TestInvalidDeduplicatesAndCounts(t *testing.T) {
	gk := schema.GroupKind{Kind: "Order"}
	one := field.Invalid(field.NewPath("a"), "x", "must be b")
	twice := Invalid(gk, "o1", field.ErrorList{one, one}, 0).ErrStatus
	if want := `Order "o1" is invalid: a: Invalid value: "x": must be b`; twice.Message != want ||
		len(twice.Details.Causes) != 1 {
		t.Errorf("got %q with %d causes, want %q with 1", twice.Message, len(twice.Details.Causes), want)
	}

	var many field.ErrorList
	for i := range 130 {
		many = append(many, field.Required(field.NewPath("items").Index(i), ""))
	}
	s := Invalid(gk, "o1", many, 7).ErrStatus
	if len(s.Details.Causes) != MaxCauses+1 ||
		!strings.HasSuffix(s.Message, "items[99]: Required value, and 37 more]") {
		t.Errorf("got %d causes and the message ends in %q", len(s.Details.Causes), s.Message[len(s.Message)-60:])
	}
	if last := s.Details.Causes[MaxCauses]; last.Message != "and 37 more" || last.Field != "" {
		t.Errorf("last cause is %+v", last)
	}
}

func TestCauseBoundsValues(t *testing.T) {
	long := strings.Repeat("ä", 3<<20)
	got := Cause(field.Invalid(field.NewPath("a"), long, "must be short"))
	if len(got.Message) > 2*quote.MaxCause || !strings.HasSuffix(got.Message, "ä...: must be short") ||
		!strings.HasPrefix(got.Message, `Invalid value: "ää`) {
		t.Errorf("got %d bytes: %.40q … %q", len(got.Message), got.Message, got.Message[len(got.Message)-30:])
	}
	detail := Cause(field.Forbidden(field.NewPath("a"), long))
	if len(detail.Message) > 2*quote.MaxDetail || !strings.HasPrefix(detail.Message, "Forbidden: ää") {
		t.Errorf("got %d bytes: %.40q", len(detail.Message), detail.Message)
	}
}

func TestReasonOf(t *testing.T) {
	want := map[int]metav1.StatusReason{
		200: "", 307: "", 400: "BadRequest", 401: "Unauthorized", 402: "BadRequest", 403: "Forbidden", 404: "NotFound",
		405: "MethodNotAllowed",
		406: "NotAcceptable", 408: "Timeout", 409: "Conflict", 410: "Gone", 412: "Conflict",
		413: "RequestEntityTooLarge", 414: "BadRequest",
		415: "UnsupportedMediaType", 417: "BadRequest", 422: "Invalid", 429: "TooManyRequests", 431: "BadRequest",
		500: "InternalError", 501: "BadRequest", 502: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
		505: "BadRequest", 507: "InternalError",
	}
	for code, reason := range want {
		if got := ReasonOf(code); got != reason {
			t.Errorf("%d: got %q, want %q", code, got, reason)
		}
	}
}

func TestInvalidBoundsNames(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	got := Invalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, long,
		field.ErrorList{field.Required(field.NewPath("a"), "")}, 0)
	if d := got.ErrStatus.Details; len(d.Name) > quote.MaxCause+3 || !strings.HasSuffix(d.Name, "ä...") ||
		len(got.ErrStatus.Message) > 2*quote.MaxCause {
		t.Errorf("got a name of %d bytes in a message of %d", len(d.Name), len(got.ErrStatus.Message))
	}
}

// TestInvalidNameless: what has no name yet is called by its kind alone.
func TestInvalidNameless(t *testing.T) {
	failures := field.ErrorList{field.Required(field.NewPath("title"), "")}
	got := InvalidNameless(schema.GroupKind{Group: "shop.example.com", Kind: "Book"}, failures, 1).ErrStatus
	want := Invalid(schema.GroupKind{Group: "shop.example.com", Kind: "Book"}, "", failures, 1).ErrStatus
	want.Message = "Book.shop.example.com is invalid: [title: Required value, and 1 more]"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
