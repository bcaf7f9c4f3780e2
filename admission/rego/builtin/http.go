package builtin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// localOptions are the members of a request of http.send that read files or the environment of the
// process.
var localOptions = []string{
	"tls_ca_cert_file", "tls_ca_cert_env_variable", "tls_client_cert_file", "tls_client_cert_env_variable",
	"tls_client_key_file", "tls_client_key_env_variable",
}

// local returns the error about a request of http.send that reads what belongs to the process, or
// asks a socket of its machine.
func local(o operands) error {
	request, ok := o.of[0].Value.(ast.Object)
	if !ok {
		return nil
	}
	if url := request.Get(ast.StringTerm("url")); url != nil && strings.HasPrefix(strings.ToLower(textOf(url)),
		"unix") {
		return errors.New("must not have the member 'url'")
	}
	for _, name := range localOptions {
		if request.Get(ast.StringTerm(name)) != nil {
			return fmt.Errorf("must not have the member '%s'", name)
		}
	}
	return nil
}

// sent is a request, as it is written. Its answer is paid for as it comes.
func sent(o operands) need { return need{memory: add(64<<10, multiply(16, o.deep(0)))} }

// metering has the answers to a function's requests paid for as they are read: what will be made of
// them, too.
func metering(b Budget, inner topdown.CustomizeRoundTripper) topdown.CustomizeRoundTripper {
	return func(t *http.Transport) http.RoundTripper { return paidTrips{b, inner(t)} }
}

type paidTrips struct {
	budget Budget
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p paidTrips) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.next.RoundTrip(r)
	if err == nil {
		answer.Body = &paidBody{ReadCloser: answer.Body, budget: p.budget}
	}
	return answer, err
}

// A paidBody is an answer whose shape is found as it is read.
type paidBody struct {
	io.ReadCloser
	budget Budget
	shape  shape
	lines  int64
	paid   int64
}

// Read implements io.Reader.
func (p *paidBody) Read(into []byte) (int, error) {
	n, err := p.ReadCloser.Read(into)
	_, _ = p.shape.Write(into[:n])
	for _, c := range into[:n] { // YAML has a value a line
		if c == '\n' || c == '-' {
			p.lines++
		}
	}
	cost := p.shape.need().memory + parsedBytes*p.lines
	if !p.budget.Spend(cost - p.paid) {
		return 0, errBudget
	}
	p.paid = cost
	return n, err
}
