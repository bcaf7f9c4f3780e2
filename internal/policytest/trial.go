package policytest

import (
	"encoding/json"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/testcase"
)

// A Trial plays cases whose answers are not known yet, before a plain API in memory.
type Trial struct{ environment *environment }

// NewTrial starts a gateway with a policy set.
func NewTrial(set *policies.Set) (*Trial, error) {
	metrics, err := telemetry.New(telemetry.Options{Version: "trial"})
	if err != nil {
		return nil, err
	}
	e, err := newEnvironment(set, &Service{}, &setting{Dialect: string(config.Plain)}, metrics)
	if err != nil {
		return nil, err
	}
	return &Trial{e}, nil
}

// Play returns what a case should expect. The decision is empty if no policy made the answer.
func (t *Trial) Play(c *testcase.Case) (*testcase.Expectation, error) {
	answer, err := t.environment.play(c)
	if err != nil {
		return nil, err
	}
	var p problem
	if answer.code >= 400 {
		_ = json.Unmarshal(answer.body, &p) // an answer that is no Status has no causes
	}
	made := &testcase.Expectation{Code: int32(answer.code), Message: p.Message, Causes: p.Details.Causes,
		Warnings: answer.warnings}
	switch d := decision(answer, 0); d {
	case "Allowed", "Warned", "Denied":
		made.Decision = d
	}
	return made, nil
}

// Close ends the gateway.
func (t *Trial) Close() { t.environment.close() }
