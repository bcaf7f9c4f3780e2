// Package testcase has the form of the kind PolicyTest.
package testcase

import "encoding/json"

// Test says what policies are to make of requests. Its definition, crds/policytests.yaml, says what the fields mean
// and may hold. It has no effect on the gateway: `gateway test` plays it.
type Test struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       Spec            `json:"spec"`
}

// Spec has the cases, and what they have in common.
type Spec struct {
	Policies []string                     `json:"policies"`
	Dialect  string                       `json:"dialect"`
	Objects  []json.RawMessage            `json:"objects"`
	State    map[string][]json.RawMessage `json:"state"`
	Cases    []Case                       `json:"cases"`
}

// Case is a request, and what is expected of it.
type Case struct {
	Name     string                       `json:"name"`
	Object   json.RawMessage              `json:"object"`
	Existing json.RawMessage              `json:"existing"`
	Request  *Request                     `json:"request"`
	Time     string                       `json:"time"`
	User     *User                        `json:"user"`
	Params   []json.RawMessage            `json:"params"`
	State    map[string][]json.RawMessage `json:"state"`
	Expect   Expectation                  `json:"expect"`
}

// Request is a request as it is sent.
type Request struct {
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"`
	Body        json.RawMessage   `json:"body"`
	Times       int32             `json:"times"`
}

// User is who sends it.
type User struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups"`
}

// Expectation is the answer.
type Expectation struct {
	Decision   string          `json:"decision"`
	Code       int32           `json:"code"`
	Message    string          `json:"message"`
	Causes     []Cause         `json:"causes"`
	Warnings   []string        `json:"warnings"`
	Object     json.RawMessage `json:"object"`
	ObjectFile string          `json:"objectFile"`
}

// Cause is one of the causes of a refusal.
type Cause struct {
	Field   string `json:"field"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}
