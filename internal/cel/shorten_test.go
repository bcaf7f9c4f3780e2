package cel

import (
	"fmt"
	"strings"
	"testing"
)

// TestOverLimitSaysWhatToShorten proves that an error about the cost limit names what the client can do something about.
func TestOverLimitSaysWhatToShorten(t *testing.T) {
	numbers := strings.Repeat("1,", 2999) + "1"
	object := fmt.Sprintf(`{"spec":{"few":[1,2],"parts":[%s],"a.b":[%s],"text":%q}}`, numbers, numbers, strings.Repeat("é", 90_000))
	for expression, want := range map[string]string{
		`object.spec.parts.all(a, object.spec.parts.all(b, a != b || a == b))`:                        "; shorten object.spec.parts, which has 3000 items",
		`object.spec['a.b'].all(a, object.spec['a.b'].all(b, object.spec.few.exists(c, c == a + b)))`: "; shorten object.spec['a.b'], which has 3000 items",
		`object.spec.text.matches('` + strings.Repeat("(a|b)?", 200) + `')`:                           "; shorten object.spec.text, which has 90000 characters",
		`lists.range(2000).all(a, lists.range(2000).all(b, a + b >= 0))`:                              "",
	} {
		_, err := verdictOn(t, expression, object)
		failure, ok := err.(*Error)
		if !ok || failure.Detail != msgOverLimit+want {
			t.Errorf("%.80s: got %v, want …%s", expression, err, want)
		}
	}
}
