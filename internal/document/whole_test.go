package document

import "testing"

// TestAreWhole: a fraction or an exponent is seen wherever it is, also behind an edit.
func TestAreWhole(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `1`: true, `{"a":[1,-2,{"b":0,"c":"1.5"}],"1e5":true}`: true,
		`1.5`: false, `{"a":[1,{"b":1e5}]}`: false, `[[[-0.0]]]`: false,
	} {
		d, err := Parse([]byte(text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.AreWhole(); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
		if d.Root().Kind() == Object {
			d.Set(d.Root(), "edited", []byte(`[2.5]`))
			if d.AreWhole() {
				t.Errorf("%s: a fraction that was set is not seen", text)
			}
		}
		d.Release()
	}
}
