// Package stack makes the stacks of goroutines large before there are many calls on them. A stack that grows in the
// midst of its calls is copied call by call, which takes 2,000 instructions for each.
package stack

// Widen makes the stack of the goroutine as large as most requests need it. It stays so until the goroutine ends, or
// the garbage collector finds little of it in use.
func Widen() { widen(false) }

// widen has room reserved on entry, and never uses it.
//
//go:noinline
func widen(isUsed bool) {
	if isUsed {
		var room [5 << 10]byte
		use(&room)
	}
}

//go:noinline
func use(room *[5 << 10]byte) { room[0]++ }
