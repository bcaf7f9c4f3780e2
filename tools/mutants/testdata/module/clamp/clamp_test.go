package clamp

import "testing"

func TestClamp(t *testing.T) {
	for n, want := range map[int]int{-1: -1, 2: 2, 3: 3, 9: 3} {
		if got := Clamp(n, 3); got != want {
			t.Errorf("Clamp(%d) = %d, not %d", n, got, want)
		}
	}
	if calls != 4 {
		t.Errorf("%d calls", calls)
	}
}

func TestSum(t *testing.T) {
	if got := Sum(4); got != 10 {
		t.Errorf("Sum(4) = %d", got)
	}
}

func TestTable(t *testing.T) {
	if f := table["positive"]; !f(1) || f(0) || f(-1) {
		t.Error("not positive")
	}
}

func TestNext(t *testing.T) {
	if l, ok := Next(1, 1, false, false); l != 2 || !ok {
		t.Error(l, ok)
	}
}
