package document

import "testing"

func TestParseRefusesDuplicateKeysWithEscapes(t *testing.T) {
	_, err := Parse([]byte(`{"a":{"b":[1,{"x":1,"ki":[], "\u0078":2}]}}`), Limits{})
	if err == nil || err.Error() != `a.b[1].x: duplicate key 'x' at offset 29` {
		t.Fatal(err)
	}
}
