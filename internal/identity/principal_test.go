package identity

import "testing"

// TestNamesOfExtra: the key of an extra attribute is the end of a header's name. Only what may not stand there, capital
// letters and '%' are encoded.
func TestNamesOfExtra(t *testing.T) {
	for key, want := range map[string]string{
		"azAZ09": "az%41%5A09", "!#$%&'*+-.^_`|~": "!#$%25&'*+-.^_`|~", "example.com/reason": "example.com%2Freason",
		"a b:c": "a%20b%3Ac", "ä": "%C3%A4", "{}": "%7B%7D", "@[": "%40%5B", "": "",
	} {
		if got := escapeKey(key); got != want {
			t.Errorf("%q is %q, want %q", key, got, want)
		}
	}
}
