// Package clamp has code for the test of mutants.
package clamp

import "time"

type level int

// table has functions, which can have faults too.
var table = map[string]func(int) bool{
	"positive": func(n int) bool { return n > 0 },
}

var calls int

// Clamp is tested whole.
func Clamp(n, most int) int {
	calls++
	if n > most {
		return most
	}
	return n
}

// Sum ends only if i grows, and is tested with numbers that make + and - differ.
func Sum(n int) (sum int) {
	for i := 1; i <= n; {
		sum = sum + i
		i++
	}
	return
}

// Next is tested with one row alone.
func Next(l level, wait time.Duration, isLast, mayWait bool) (level, bool) {
	if isLast && !mayWait || wait < 0 {
		return l, false
	}
	return l + 1, true
}

// Unused is not tested.
func Unused(a [3]int) bool { return a[0] == 1 }

func fixed() [2]int { return [2]int{1: 5} }
