package proxy

import "testing"

func TestNamesVersion(t *testing.T) {
	for _, c := range []struct {
		list, etag string
		want       bool
	}{
		{`*`, `"1"`, true},
		{`*`, ``, true},
		{`"1"`, `"1"`, true},
		{`"1"`, `"2"`, false},
		{`"1"`, ``, false},
		{``, ``, true},
		{`W/"1"`, `"1"`, true},
		{`"1"`, `W/"1"`, true},
		{`"0", "1"`, `"1"`, true},
		{`"0","1"`, `"1"`, true},
		{`"0",W/"1"`, `"1"`, true},
		{`"0,"1"`, `"1"`, false},
		{`"0,1"`, `"1"`, false},
		{`"0,1" , "2,3"`, `"2,3"`, true},
		{`"10"`, `"1"`, false},
		{`1, 2`, `2`, true},
		{`"1`, `"1`, true},
		{`,,`, `"1"`, false},
	} {
		if got := names([]byte(c.list), []byte(c.etag)); got != c.want {
			t.Errorf("names(%s, %s) = %v", c.list, c.etag, got)
		}
	}
}
