package responses

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/internal/contract"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/message"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/schema"
	"github.com/admission-gateway/gateway/internal/storage"
	"github.com/admission-gateway/gateway/internal/telemetry"
)

// parts is a body that comes in parts, and then ends by an error.
type parts struct {
	message.Stream
	parts  []string
	end    error
	length int64
}

func (p *parts) Length() int64 { return p.length }
func (p *parts) Close() error  { return nil }
func (p *parts) Read(to []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, p.end
	}
	n := copy(to, p.parts[0])
	p.parts = p.parts[1:]
	return n, nil
}

// ReadReady reads what is there.
func (p *parts) ReadReady(to []byte) (int, error) { return p.Read(to) }

// TestUnchecked: bodies that cannot be looked at are counted as such, and all memory comes back.
func TestUnchecked(t *testing.T) {
	names, _, errs := schema.Compile(&apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"name"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}},
	}, schema.Options{Extensions: &schema.Extensions{}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	declared := &contract.Operation{
		Answers: []contract.Answer{{Code: 2, Contents: []contract.Content{{Media: "application/json", Schema: names}}}}}
	const limit, budget = 300 << 10, 8 << 20
	large := `{"name":"` + strings.Repeat("x", 280<<10) + `"}`
	for _, test := range []struct {
		name   string
		body   *parts
		lines  string
		taken  int64 // of the memory, by others
		works  bool  // others do all heavy work that may be done
		detach bool
		result string
		said   string
	}{
		{"whole", &parts{parts: []string{`{"na`, `me":"a"}`}, end: io.EOF, length: -1}, "", 0, false, false, "Valid",
			""},
		{"of known length", &parts{parts: []string{`{"na`, `me":"a"}`}, end: io.ErrUnexpectedEOF, length: 12}, "", 0,
			false, false, "Valid", ""},
		{"wrong", &parts{parts: []string{`{}`}, end: io.EOF, length: -1}, "", 0, false, false, "Invalid",
			"Required value"},
		{"large", &parts{parts: []string{large[:200<<10], large[200<<10:]}, end: io.EOF, length: -1}, "", 0, false,
			false, "Valid", ""},
		{"broken", &parts{parts: []string{`{}`}, end: io.ErrUnexpectedEOF, length: -1}, "", 0, false, false,
			"Unchecked", incomplete},
		{"too large", &parts{parts: []string{large, large}, end: io.EOF, length: -1}, "", 0, false, false, "Unchecked",
			tooLarge},
		{"too large as it says", &parts{parts: []string{`{}`}, end: io.EOF, length: limit + 1}, "", 0, false, false,
			"Unchecked", tooLarge},
		{"no memory", &parts{parts: []string{large}, end: io.EOF, length: -1}, "", budget / 2, false, false,
			"Unchecked", noMemory},
		{"no turn", &parts{parts: []string{large}, end: io.EOF, length: -1}, "", 0, true, false, "Unchecked", busy},
		{"a part", &parts{parts: []string{`{}`}, end: io.EOF, length: -1}, "Content-Range: bytes 0-1/9\r\n", 0, false,
			false, "Unchecked", partial},
		{"events", &parts{parts: []string{`{}`}, end: io.EOF, length: -1}, "", 0, false, true, "Unchecked", endless},
	} {
		t.Run(test.name, func(t *testing.T) {
			metrics, err := telemetry.New(telemetry.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := memory.NewBudget(budget, 1)
			var log bytes.Buffer
			o := &Observer{Budget: b, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, nil))}
			var other memory.Reservation
			other.Open(b, nil)
			if !other.Grow(int(test.taken)) || test.works && !other.Work() {
				t.Fatal("others get no memory")
			}
			used := b.InUse()
			w := o.Watch(Subject{"api", "things", resource.VerbGet, "GET"}, &storage.Limits{Body: limit},
				func(resource.Verb) *contract.Operation { return declared })
			var answer message.Response
			for _, body := range []*parts{{parts: []string{"7"}, end: io.EOF}, test.body} {
				// no client gets the first one
				answer.Receive(200, []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"+test.lines+"\r\n"))
				answer.SetStream(body)
				w.Answered([]byte("GET"), &answer)
			}
			stream := answer.Stream()
			if test.detach {
				w.Detach()
			}
			buffer := make([]byte, 512<<10)
			for read := (io.Reader)(stream).Read; ; read = stream.ReadReady {
				if _, err := read(buffer); err != nil {
					break
				}
			}
			w.Finish()
			page := httptest.NewRecorder()
			metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
			want := fmt.Sprintf("gateway_response_checks_total{resource=\"things\",result=%q} 1\n", test.result)
			if got := page.Body.String(); strings.Count(got, "gateway_response_checks_total{") != 1 ||
				!strings.Contains(got, want) {
				t.Errorf("metrics lack %s", want)
			}
			if got := log.String(); (got == "") != (test.said == "") ||
				!strings.Contains(got, `cause="`+test.said+`"`) && test.said != "" {
				t.Errorf("the log has %q, want %q", got, test.said)
			}
			if got := b.InUse(); got != used {
				t.Errorf("%d bytes are held", got-used)
			}
		})
	}
}
