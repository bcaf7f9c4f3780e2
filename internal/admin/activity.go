package admin

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// Resource is a resource that the policy files describe, with the answers to its requests.
type Resource struct {
	// Name is the plural name with the group behind it, by which match blocks know it.
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind,omitempty"`
	// Paths are those of a plain API.
	Paths []string `json:"paths,omitempty"`
}

// RequestCounts counts the answers to requests for a resource since the start, for all its versions together.
type RequestCounts struct {
	// Resource is its name; "other" for all that no file describes.
	Resource string `json:"resource"`
	Requests int64  `json:"requests"`
	// Refused have codes from 400 to 499; Failed have codes from 500, or got no answer.
	Refused int64 `json:"refused"`
	Failed  int64 `json:"failed"`
	// LastMinute counts the requests of the last minute.
	LastMinute int64 `json:"lastMinute"`
}

// Rate is how many requests came in a second, for people.
func (a *RequestCounts) Rate() string {
	return strconv.FormatFloat(float64(a.LastMinute)/60, 'f', 1, 64)
}

// Refusal is a request that the gateway refused. It has nothing of a body, a query or a client.
type Refusal struct {
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Host   string    `json:"host,omitempty"`
	Path   string    `json:"path"`
	Code   int       `json:"code"`
	Reason string    `json:"reason"`
	// Policy refused it, if one did, because of Field.
	Policy string `json:"policy,omitempty"`
	Field  string `json:"field,omitempty"`
}

// link is the address of the page that explains such a request by the policies in force.
func (r *Refusal) link() string {
	path := r.Path
	if r.Host != "" {
		path = "http://" + r.Host + path
	}
	return inForceLink(r.Method, path)
}

// inForceLink is the address of the playground with the policies in force and a request. The fragment is what the
// script of the page reads: its letters need no escape.
func inForceLink(method, path string) string {
	question, _ := json.Marshal(struct { // of texts
		InForce bool   `json:"inForce"`
		Method  string `json:"method,omitempty"`
		Path    string `json:"path,omitempty"`
	}{true, method, path})
	return playgroundPage + "#" + base64.RawURLEncoding.EncodeToString(question)
}
