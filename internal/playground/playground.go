// Package playground explains requests that operators make up, by policies that they make up: `gateway explain` for the
// page of the admin listener. The gateway that judges them is one of its own, in front of an API in memory. It reads no
// file, and asks no other server. One question is judged at a time, for a bounded time, and its memory is the budget's
// of requests.
package playground

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/policies/testcase"
	"github.com/admission-gateway/gateway/proxy"
)

const (
	// patience is how long a question may take.
	patience = 10 * time.Second
	// weight is the memory that a question takes, and weightOfByte what each byte of its policies takes besides, at
	// most. TestWeight measures both.
	weight       = 8 << 20
	weightOfByte = 512
	// maxFindings is how much of what is wrong with policies is said, in bytes.
	maxFindings = 32 << 10
)

// fileName is what findings and explanations call the policies of a question.
const fileName = "policies.yaml"

// An Input is a request, and the policies that judge it.
type Input struct {
	// Policies are the objects of a policy file, in YAML or JSON.
	Policies string `json:"policies"`
	// InForce asks for the policies and the configuration that the gateway has in force instead.
	InForce bool `json:"inForce"`
	// Dialect of the backend, Kubernetes or Plain; empty for the one that suits the policies.
	Dialect string `json:"dialect"`
	// Method and Path are of the request. Without a path it is the write of the object in Body.
	Method string `json:"method"`
	Path   string `json:"path"`
	// ContentType is of the body. Without one the body may be YAML, of which JSON is made.
	ContentType string `json:"contentType"`
	Body        string `json:"body"`
	// Old is the object that is stored, in YAML or JSON; empty if there is none.
	Old    string   `json:"old"`
	User   string   `json:"user"`
	Groups []string `json:"groups"`
}

// Options configure New.
type Options struct {
	// Memory is the budget of requests.
	Memory *memory.Budget
	// InForce returns the policies in force and the gateway that has them; a nil set: there are none.
	InForce func() (*policies.Set, policytest.Service)
	// Log gets panics; nil: nothing does.
	Log *slog.Logger
}

// A Playground answers questions. It is safe for concurrent use.
type Playground struct {
	options  Options
	patience time.Duration
	place    chan struct{} // is full while a question is judged
}

// New returns a Playground.
func New(o Options) *Playground {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Playground{o, patience, make(chan struct{}, 1)}
}

// Ask explains the question in a JSON text. An error is a [*status.Error] that says what to do. If ctx ends, Ask
// returns at once, and what is judged ends soon: until then other questions are refused.
func (p *Playground) Ask(ctx context.Context, text []byte) (*explanation.Explanation, error) {
	asked, err := p.read(text)
	if err != nil {
		return nil, err
	}
	select {
	case p.place <- struct{}{}:
	default:
		return nil, status.TooManyRequests("the playground judges one question at a time: ask again in a moment", 1)
	}
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel() // not as soon as there is an answer, which could be lost then
	type answer struct {
		story *explanation.Explanation
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		explained, err := p.judge(ctx, asked, len(text))
		<-p.place
		done <- answer{explained, err}
	}()
	select {
	case a := <-done:
		return a.story, a.err
	case <-ctx.Done():
		return nil, p.late()
	}
}

func (p *Playground) late() error {
	return status.Coded(http.StatusGatewayTimeout,
		fmt.Sprintf("the question takes more than %s: ask with fewer policies, or a smaller object", p.patience))
}

// judge explains a question within the budget of memory.
func (p *Playground) judge(ctx context.Context, q *policytest.ExplainRequest, bytes int) (_ *explanation.Explanation,
	err error) {
	defer func() {
		if r := recover(); r != nil {
			p.options.Log.Error("a question to the playground made it panic", "panic", r, "stack",
				string(debug.Stack()))
			err = status.Internal("the playground failed: see the gateway's log")
		}
	}()
	var held memory.Reservation
	held.Open(p.options.Memory, nil)
	defer held.Close()
	if need := weight + bytes*weightOfByte; !held.Grow(need) {
		return nil, status.ServiceUnavailable(fmt.Sprintf(
			"the memory for requests has no room for the question, which may take %d bytes: see `limits.bodiesInFlightBytes`", need), 1)
	}
	explained, err := policytest.Explain(ctx, q)
	var mistakes policytest.Errors
	var refusal *status.Error
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, p.late()
	case errors.As(err, &mistakes):
		return nil, status.Coded(http.StatusUnprocessableEntity, "the policies have errors:\n"+
			quote.Clip(err.Error(), maxFindings))
	case err != nil && !errors.As(err, &refusal):
		return nil, status.Coded(http.StatusUnprocessableEntity, quote.Clip(err.Error(), maxFindings))
	}
	return explained, err
}

// read makes a question of its text.
func (p *Playground) read(text []byte) (*policytest.ExplainRequest, error) {
	var asked Input
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&asked); err != nil {
		return nil, status.BadRequest("the question cannot be read: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, status.BadRequest("the question must be one JSON object, and nothing else")
	}
	q, err := p.policiesOf(&asked)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(asked.Old) != "" {
		if q.Case.Existing, err = policytest.ReadObjectFrom(strings.NewReader(asked.Old),
			"the stored object"); err != nil {
			return nil, status.BadRequest("%v", err)
		}
	}
	if q.Service.KnowsUsers() {
		q.Case.User = &testcase.User{Name: cmp.Or(asked.User, "user"), Groups: asked.Groups}
	}
	return q, requestOf(q, &asked)
}

// policiesOf begins a question with its policies.
func (p *Playground) policiesOf(asked *Input) (*policytest.ExplainRequest, error) {
	q := &policytest.ExplainRequest{Dialect: asked.Dialect}
	switch {
	case asked.Dialect != "" && asked.Dialect != "Kubernetes" && asked.Dialect != "Plain":
		return nil, status.BadRequest("dialect: must be 'Kubernetes' or 'Plain', not '%s'", asked.Dialect)
	case asked.InForce && strings.TrimSpace(asked.Policies) != "":
		return nil, status.BadRequest("policies: must be empty if the policies in force are asked")
	case asked.InForce:
		set, service := p.options.InForce()
		if set == nil {
			return nil, status.ServiceUnavailable("no policies are in force yet", 1)
		}
		if asking := set.Asking(); len(asking) > 0 {
			return nil, status.Coded(http.StatusUnprocessableEntity, fmt.Sprintf(
				"the policies in force may ask other servers (RegoPolicy '%s'), which the playground must not: use 'gateway explain'", strings.Join(asking, "', '")))
		}
		q.Set, q.Service = set, service
	default:
		q.Files = []source.File{{Name: fileName, Data: []byte(asked.Policies)}}
	}
	q.Service.Gateway.IsOffline, q.Service.Gateway.Memory = true, p.options.Memory
	return q, nil
}

// requestOf adds the request to a question.
func requestOf(q *policytest.ExplainRequest, asked *Input) error {
	body := []byte(asked.Body)
	if asked.ContentType == "" && strings.TrimSpace(asked.Body) != "" && !json.Valid(body) {
		made, err := policytest.ReadObjectFrom(bytes.NewReader(body), "the object")
		if err != nil {
			return status.BadRequest("%v", err)
		}
		body = made
	}
	if len(bytes.TrimSpace(body)) == 0 {
		body = nil
	}
	if asked.Path == "" {
		if q.Case.Object = body; body == nil && q.Case.Existing == nil {
			return status.BadRequest("body: Required value: write the object, or the path of a request that has none")
		}
		if asked.Method != "" {
			q.Case.Request = &testcase.Request{Method: asked.Method}
		}
		return nil
	}
	if _, _, isURL := proxy.CutURL(asked.Path); !isURL && !strings.HasPrefix(asked.Path, "/") {
		return status.BadRequest("path: must be a path or a URL, not '%s'", asked.Path)
	}
	q.Case.Request = &testcase.Request{Method: cmp.Or(asked.Method, http.MethodPost), Path: asked.Path,
		ContentType: asked.ContentType, Body: body}
	return nil
}
