package proxy

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// publishedAPI answers a GET with an object, and remembers the one write that it gets.
type publishedAPI struct {
	stored string
	mu     sync.Mutex
	got    string // the method, the target and the body
}

func (p *publishedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Method != http.MethodGet {
		p.got += r.Method + " " + r.RequestURI + " " + string(body)
	}
	if r.Method == http.MethodGet && p.stored != "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.stored)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (p *publishedAPI) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = ""
	return got
}

// TestPublishedCalls: the calls that published documents are used for most. What is right reaches the API byte for
// byte, and what is wrong does not reach it.
func TestPublishedCalls(t *testing.T) {
	const (
		json = "Content-Type: application/json"
		key  = "Authorization: Bearer sk-1"
		bot  = "Authorization: Bot t"
	)
	for document, tt := range map[string]struct {
		stored  string
		overlay string
		calls   []publishedCall
	}{
		"openai.yaml": {"", "overlay: 1.0.0\ninfo: {title: a, version: 1.0.0}\nactions: [{target: $, update: {x-admission-gateway-resource: {defaults: Off}}}]\n", []publishedCall{
			{"POST /v1/chat/completions", []string{json, key},
				`{"model": "gpt-4o", "messages": [{"role":"user","content":"Hello"}] }`, ""},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"system","content":[{"type":"text","text":"be brief"}]},{"role":"user","content":"Hello"}],"temperature":0.20,"stream":true}`, ""},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"4"}]}`, ""},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o"}`,
				`422 CreateChatCompletion is invalid: messages: Required value`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[]}`, `422 CreateChatCompletion is invalid: messages: Invalid value: 0: must have at least 1 item`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"usr","content":"Hello"}]}`, `422 CreateChatCompletion is invalid: messages[0].role: Unsupported value: "usr": supported values: "developer", "system", "user", "assistant", "tool", "function"`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"user"}]}`,
				`422 CreateChatCompletion is invalid: messages[0].content: Required value`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"temperature":3}`, `422 CreateChatCompletion is invalid: temperature: Invalid value: 3: must be less than or equal to 2`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"n":"two"}`, `422 CreateChatCompletion is invalid: n: Invalid value: "string": must be of type integer`},
			{"POST /v1/chat/completions", []string{json, key}, ``, `400 the body must not be empty`},
			{"POST /v1/chat/completions", []string{json, key}, `{"model":`, `400 the body must be JSON that can be read in one way only: model: unexpected end of the document, a value must stand here at offset 9`},
			{"POST /v1/chat/completions", []string{json},
				`{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`,
				`401 the request must have the credentials that the API's document asks for`},
			{"POST /v1/chat/completions", []string{"Content-Type: text/plain", key}, `hello`, `415 the body of the request was in an unknown format - accepted media types include: application/json`},
		}},
		"discord.json": {"", "", []publishedCall{
			{"PUT /api/v10/channels/1234/messages/pins/99", []string{bot}, "", ""},
			{"PUT /api/v10/channels/1234/messages/pins/99", []string{bot, "Content-Length: 0"}, "", ""},
			{"DELETE /api/v10/channels/1234/messages/pins/99", []string{bot}, "", ""},
			{"PUT /api/v10/channels/1234/pins/99", []string{bot}, "", ""},
			{"DELETE /api/v10/channels/1234/pins/99", []string{bot}, "", ""},
			{"PUT /api/v10/channels/general/pins/99", []string{bot}, "", `422 Pin "99" is invalid: path.channel_id: Invalid value: "general": must match the regular expression '^(0|[1-9][0-9]*)$'`},
			{"DELETE /api/v10/channels/1234/pins/first", []string{bot}, "", `422 Pin "first" is invalid: path.message_id: Invalid value: "first": must match the regular expression '^(0|[1-9][0-9]*)$'`},
			{"PUT /api/v10/channels/1234/pins/99", nil, "",
				`401 the request must have the credentials that the API's document asks for`},
			// the document has no PATCH, and nothing judges pins
			{"PATCH /api/v10/channels/1234/pins/99", []string{bot, json}, "{}", ""},
		}},
		"github.json": {`{"id":1,"name":"spoon-knife","private":false,"description":"d","full_name":"octocat/spoon-knife"}`, "", []publishedCall{
			{"PUT /user/starred/octocat/spoon-knife", nil, "", ""},
			{"PUT /user/starred/octocat/spoon-knife", []string{"Content-Length: 0"}, "", ""},
			{"DELETE /user/starred/octocat/spoon-knife", nil, "", ""},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"name": "fork", "private": true }`, ""},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"visibility":"private","security_and_analysis":{"secret_scanning":{"status":"enabled"}}}`, ""},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"security_and_analysis":null}`, ""},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{}`, ""},
			{"PATCH /repos/octocat/spoon-knife", nil, ``, ""},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"name":7}`, `422 FullRepository "spoon-knife" is invalid: name: Invalid value: "integer": must be of type string`},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"visibility":"secret"}`, `422 FullRepository "spoon-knife" is invalid: visibility: Unsupported value: "secret": supported values: "public", "private"`},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"private":null}`, `422 FullRepository "spoon-knife" is invalid: private: Invalid value: "null": must be of type boolean`},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `{"private":"yes","has_issues":1}`, `422 FullRepository "spoon-knife" is invalid: [private: Invalid value: "string": must be of type boolean, has_issues: Invalid value: "integer": must be of type boolean]`},
			{"PATCH /repos/octocat/spoon-knife", []string{json}, `[]`, `422 FullRepository "spoon-knife" is invalid: Invalid value: "array": must be of type object`},
		}},
	} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			api := &publishedAPI{stored: tt.stored}
			backend := httptest.NewServer(api)
			defer backend.Close()
			files := map[string]string{document: published(t, document)}
			if tt.overlay != "" {
				files["overlay.yaml"] = tt.overlay
			}
			dir := testutil.WriteFiles(t, files)
			address := startGateway(t, gatewayFor(t, dir, strings.TrimPrefix(backend.URL, "http://"), nil))
			for _, c := range tt.calls {
				nc, br := dial(t, address)
				send(t, nc, c.head()+c.body)
				answered, got := answerIn(t, br), api.take()
				_ = nc.Close()
				want, reaches := c.want, ""
				if want == "" {
					want, reaches = "204 ", c.line+" "+c.body
				}
				if answered != want || got != reaches {
					t.Errorf("%s %s %s:\n got %s\nwant %s\nthe API got %q, want %q", c.line, c.header, c.body, answered,
						want, got, reaches)
				}
			}
		})
	}
}

// A publishedCall is a request and the code and message of its refusal; none if it passes.
type publishedCall struct {
	line   string // the method and the target
	header []string
	body   string
	want   string
}

func (c *publishedCall) head() string {
	lines := append([]string{c.line + " HTTP/1.1", "Host: api"}, c.header...)
	if c.body != "" {
		lines = append(lines, "Content-Length: "+strconv.Itoa(len(c.body)))
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// published returns a document of the recorded suites.
func published(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("SUITES_DIR")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "suites")
	}
	file, err := os.Open(filepath.Join(root, "data", "openapi", name+".gz"))
	if err != nil {
		t.Skipf("the recorded suites are not here: set SUITES_DIR (%v)", err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
