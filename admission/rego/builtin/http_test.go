package builtin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answers is a host whose answer is a text.
type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// TestPaidAnswers: an answer to http.send is paid for as it is read, with what will be made of it.
func TestPaidAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		err  error
	}{
		"a small one":     {`{"a": [1, 2]}`, nil},
		"a long text":     {`"` + strings.Repeat("a", 1<<20) + `"`, nil},
		"many values":     {"[" + strings.Repeat("1,", 500_000) + "1]", errBudget},
		"many levels":     {strings.Repeat("[", 500_000), errBudget},
		"many lines":      {strings.Repeat("- a\n", 200_000), errBudget},
		"many characters": {`"` + strings.Repeat("a", 8<<20) + `"`, errBudget},
	} {
		b := &purse{left: budgetBytes}
		trip := metering(b, func(*http.Transport) http.RoundTripper { return answers(c.text) })(nil)
		answer, err := trip.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(answer.Body)
		if !errors.Is(err, c.err) || c.err == nil && string(read) != c.text {
			t.Errorf("%s: got %v after %d bytes, want %v", name, err, len(read), c.err)
		}
		if b.spent < int64(len(read)) {
			t.Errorf("%s: %d bytes are read for %d", name, len(read), b.spent)
		}
		_ = answer.Body.Close()
	}
}
