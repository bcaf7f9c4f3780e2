package cel

import (
	"fmt"
	"strings"
	"testing"
)

// TestOverLimitSaysWhatToShorten proves that an error about the cost limit names what the client can do something
// about.
func TestOverLimitSaysWhatToShorten(t *testing.T) {
	numbers := strings.Repeat("1,", 2999) + "1"
	object := fmt.Sprintf(`{"spec":{"few":[1,2],"n":900000,"m":30,"cidr":"192.0.2.0/24","parts":[%s],"a.b":[%s],"text":%q}}`, numbers, numbers, strings.Repeat("é", 90_000))
	for expression, want := range map[string]string{
		`object.spec.parts.all(a, object.spec.parts.all(b, a != b || a == b))`:                        "; shorten object.spec.parts, which has 3000 items",
		`object.spec['a.b'].all(a, object.spec['a.b'].all(b, object.spec.few.exists(c, c == a + b)))`: "; shorten object.spec['a.b'], which has 3000 items",
		`object.spec.text.matches('` + strings.Repeat("(a|b)?", 200) +
			`')`: "; shorten object.spec.text, which has 90000 characters",
		`lists.range(2000).all(a, lists.range(2000).all(b, a + b >= 0))`:                                         "",
		`lists.range(object.spec.n).all(a, a >= 0) && object.spec.cidr != ''`:                                    "; reduce object.spec.n, which is 900000",
		`lists.range(object.spec.?n.orValue(1) - 1).all(a, a >= 0)`:                                              "; reduce object.spec.n, which is 900000",
		`object.spec.few.all(f, lists.range(2000000 / f - 1).all(a, a >= 0))`:                                    "",
		`lists.range(3000).all(a, lists.range(3000).all(b, object.spec.cidr + 'x' != ''))`:                       "",
		`object.spec.parts.all(a, object.spec.parts.all(b, lists.range(object.spec.m).all(c, c < a + b + 100)))`: "; shorten object.spec.parts, which has 3000 items",
	} {
		_, err := verdictOn(t, expression, object)
		failure, ok := err.(*Error)
		if !ok || failure.Detail != msgOverLimit+want {
			t.Errorf("%.80s: got %v, want …%s", expression, err, want)
		}
	}
}
