package plain

import "testing"

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		list, etag   string
		strong, weak bool
	}{
		{`*`, `"1"`, true, true},
		{` * `, `"1"`, true, true},
		{`*`, ``, true, true},
		{`"1"`, `"1"`, true, true},
		{`"1"`, `"2"`, false, false},
		{`"1"`, ``, false, false},
		{``, ``, true, false},
		{`W/"1"`, `"1"`, false, true},
		{`"1"`, `W/"1"`, false, true},
		{`W/"1"`, `W/"1"`, false, true},
		{`"0", "1"`, `"1"`, true, true},
		{`"0","1"`, `"1"`, true, true},
		{`"0",W/"1"`, `"1"`, false, true},
		{`W/"0,1" ,"1"`, `"1"`, true, true},
		{`"0,"1"`, `"1"`, false, false},
		{`"0,1"`, `"1"`, false, false},
		{`"0,1" , "2,3"`, `"2,3"`, true, true},
		{`W/"0,1"`, `"0,1"`, false, true},
		{`"10"`, `"1"`, false, false},
		{`1, 2`, `2`, true, true},
		{`"1`, `"1`, true, true},
		{`,,`, `"1"`, false, false},
		{`W/`, `W/`, false, false},
	} {
		if got := matches([]byte(c.list), []byte(c.etag)); got != c.strong {
			t.Errorf("matches(%s, %s) = %v", c.list, c.etag, got)
		}
		if got := matchesWeakly([]byte(c.list), []byte(c.etag)); got != c.weak {
			t.Errorf("matchesWeakly(%s, %s) = %v", c.list, c.etag, got)
		}
	}
}
