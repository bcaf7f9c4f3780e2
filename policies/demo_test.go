package policies

import "testing"

func TestDemo(t *testing.T) {
	set, found := Load([]string{"library/demo"})
	for _, f := range found {
		t.Error(f)
	}
	if set == nil {
		t.Fatal("no set")
	}
}

func BenchmarkLoadDemo(b *testing.B) {
	for b.Loop() {
		if set, found := Load([]string{"library/demo"}); set == nil {
			b.Fatal(found)
		}
	}
}
