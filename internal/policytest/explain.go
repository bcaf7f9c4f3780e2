package policytest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/admission-gateway/gateway/internal/explanation"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// An ExplainRequest asks what becomes of a request. It is a case without an expectation.
type ExplainRequest struct {
	// Policies are the policy files and folders.
	Policies []string
	// Read reads them; nil if they have no owners.
	Read func(paths []string) *source.Source
	// Files are the policy files instead, if their contents are known. No other file is read then.
	Files []source.File
	// Set has the policies instead, if they are compiled. The story then has no places in files.
	Set *policies.Set
	// Service is the gateway that gets the request.
	Service Service
	// Dialect of the backend, if there is no configuration; empty for the one that suits the files.
	Dialect string
	// Case has the request, its user, and the objects that exist. Further headers are in Headers.
	Case    testcase.Case
	Headers [][2]string
}

// Explain plays a request through the gateway, in front of a backend in memory, and returns its
// story. The error is Errors if the policies have errors. Once ctx has ended, it ends as soon as it can.
func Explain(ctx context.Context, q *ExplainRequest) (*explanation.Explanation, error) {
	from := setting{Paths: q.Policies, Dialect: q.Dialect, Objects: q.Case.Params, State: q.Case.State}
	service := q.Service
	service.shapesRefusals, service.isUncounted = service.Config != nil, q.Set != nil
	service.Gateway.Stopped = func() bool { return ctx.Err() != nil }
	all := newSets(&service.Gateway)
	if q.Read != nil {
		all.from = q.Read
	}
	if q.Files != nil {
		all.know(&from, q.Files)
	}
	set := q.Set
	var found []finding.Finding
	if set == nil {
		set, found = all.of(&from)
		switch err := context.Cause(ctx); {
		case err != nil:
			return nil, err
		case set == nil:
			return nil, Errors(slices.DeleteFunc(found, isWarning))
		}
	}
	metrics, err := telemetry.New(telemetry.Options{Version: "explain"})
	if err != nil {
		return nil, err
	}
	e, err := newEnvironment(set, &service, &from, metrics)
	if err != nil {
		return nil, err
	}
	defer e.close()
	explained, _, err := e.explain(ctx, &q.Case, q.Headers)
	if err != nil {
		return nil, err
	}
	if q.Files != nil {
		for _, f := range found {
			if f.Severity == finding.Warning {
				explained.Findings = append(explained.Findings, f.Text())
			}
		}
	}
	if q.Set == nil {
		addLines(explained, all.read(q.Policies))
	}
	if unknown := undescribed(set, q.Case.Object); q.Case.Request == nil && unknown != "" {
		explained.Unknown = append(explained.Unknown, unknown)
	}
	explained.Unknown = append(explained.Unknown, "what other requests are counted by rate limits, and all that the backend has beside what is given here")
	return explained, nil
}

// explain asks what becomes of the request of a case.
func (e *environment) explain(ctx context.Context, c *testcase.Case,
	headers [][2]string) (*explanation.Explanation, *reply, error) {
	r, stored, err := requestOf(e.gateway, e.set, e.service, c)
	if err != nil {
		return nil, nil, err
	}
	if err := e.prepare(stored, c.Existing); err != nil {
		return nil, nil, fmt.Errorf("the stored object cannot be used: %w", err)
	}
	for _, h := range headers {
		r.add(h[0], h[1])
	}
	r.add("X-Admission-Explain", "1")
	answer, err := e.send(ctx, r)
	if err != nil {
		return nil, nil, fmt.Errorf("the gateway does not answer: %w", err)
	}
	told := storyIn(answer, r)
	told.Request.Path = r.path
	return told, answer, nil
}

// storyIn returns the explanation in an answer. A request that is refused before anything is known of it has
// none.
func storyIn(r *reply, sent *request) *explanation.Explanation {
	var s explanation.Explanation
	if r.code == http.StatusOK && json.Unmarshal(r.body, &s) == nil && s.Kind == explanation.Kind &&
		s.APIVersion == explanation.APIVersion {
		return &s
	}
	s = explanation.Explanation{APIVersion: explanation.APIVersion, Kind: explanation.Kind,
		Request: explanation.Request{Method: sent.method},
		Steps:   []explanation.Step{}}
	s.Answer = explanation.Response{Decision: explanation.Refused, Code: r.code, Warnings: r.warnings}
	if json.Valid(r.body) {
		s.Answer.Status = r.body
	}
	return &s
}

// addLines adds to an explanation where in the policy files its policies are, their expressions, and what
// keeps them from the request.
func addLines(s *explanation.Explanation, files *source.Source) {
	p := newPolicyLocations(files)
	for i := range s.Steps {
		for j := range s.Steps[i].Policies {
			p.add(&s.Steps[i].Policies[j])
		}
		for j := range s.Steps[i].Expressions {
			p.addRule(&s.Steps[i].Expressions[j])
		}
	}
	for i := range s.Others {
		p.add(&s.Others[i])
	}
}
