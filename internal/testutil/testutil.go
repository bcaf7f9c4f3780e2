// Package testutil holds what the tests of many packages need: waiting with one deadline, files, and free addresses.
package testutil

import (
	"testing"
	"time"
)

// Patience is how long a test waits for an event that must come. It guards against hanging and measures no speed: a
// loaded machine may take long.
const Patience = time.Minute

const interval = time.Millisecond

// Eventually waits until ok returns true, and ends the test if that takes longer than [Patience]. The message of the
// failure is "not yet: " and what.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !within(Patience, ok) {
		t.Fatalf("not yet: %s, after %v", what, Patience)
	}
}

// Becomes waits until got returns want, and ends the test if that takes longer than [Patience].
func Becomes[T comparable](t testing.TB, want T, got func() T) {
	t.Helper()
	var last T
	if !within(Patience, func() bool { last = got(); return last == want }) {
		t.Fatalf("is %v, want %v, after %v", last, want, Patience)
	}
}

// within reports whether ok returned true before the time was over. It asks at least once.
func within(patience time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(interval) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// Sampled returns a part of the cases of a test with -short: one in n. Otherwise it returns all.
func Sampled[T any](n int, cases []T) []T {
	if !testing.Short() {
		return cases
	}
	var part []T
	for i := 0; i < len(cases); i += n {
		part = append(part, cases[i])
	}
	return part
}

// Amount returns how much a test does: less with -short.
func Amount(whole, short int) int {
	if testing.Short() {
		return short
	}
	return whole
}
