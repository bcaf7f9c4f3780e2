package document

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// Comparisons and divisions of numbers are exact: big.Rat is the judge.
func TestDecimalsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a, b := randomNumber(r), randomNumber(r)
		checkDecimals(t, a, b)
	}
	for _, pair := range [][2]string{
		{"0.0075", "0.0001"}, {"1e308", "0.5"}, {"0", "3"}, {"-0", "3"}, {"9007199254740993", "9007199254740992"},
		{"1e-20", "1e-20"}, {"3e20", "7"}, {"12345678901234567890123", "9999999999999999999"}, {"0.1", "0.10"},
		{"-5", "-5.0"},
		{"1" + strings.Repeat("0", 300), "3"}, {"18446744073709551615", "5"},
	} {
		checkDecimals(t, pair[0], pair[1])
	}
}

func FuzzDecimals(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, seed))
		checkDecimals(t, randomNumber(r), randomNumber(r))
	})
}

func randomNumber(r *rand.Rand) string {
	s := ""
	if r.IntN(3) == 0 {
		s = "-"
	}
	s += fmt.Sprint(r.IntN(200))
	if r.IntN(2) == 0 {
		s += fmt.Sprintf(".%0*d", 1+r.IntN(4), r.IntN(10))
	}
	if r.IntN(3) == 0 {
		s += fmt.Sprintf("e%d", r.IntN(12)-6)
	}
	return s
}

func checkDecimals(t *testing.T, a, b string) {
	t.Helper()
	x, y := number(t, a), number(t, b)
	left, _ := new(big.Rat).SetString(a)
	right, _ := new(big.Rat).SetString(b)
	if got, want := CompareNumbers(x, y), left.Cmp(right); got != want {
		t.Errorf("%s compared with %s is %d, want %d", a, b, got, want)
	}
	if got, want := x.IsWhole(), left.IsInt(); got != want {
		t.Errorf("%s is whole: %v, want %v", a, got, want)
	}
	d, ok := NewDivisor(y)
	if positive := right.Sign() > 0; ok != positive {
		t.Fatalf("%s is a divisor: %v, want %v", b, ok, positive)
	}
	if !ok {
		return
	}
	if got, want := d.Divides(x), new(big.Rat).Quo(left, right).IsInt(); got != want {
		t.Errorf("%s divides %s: %v, want %v", b, a, got, want)
	}
}

func number(t *testing.T, text string) Node {
	t.Helper()
	d, err := Parse([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d.Root()
}
