package value

// Memory is whom evaluations ask for the memory of what expressions make, and for leave to do much work.
type Memory interface {
	// Grow asks for so many bytes more, and reports whether they may be taken.
	Grow(bytes int) bool
	Shrink(bytes int)
	// Work may wait until others have done their work. It reports whether the evaluation may go on.
	Work() bool
}

const (
	// heavyUnits is the cost from which evaluations are heavy work: about a millisecond, or much
	// more if a function does much for a unit. Policies as people write them cost a hundredth of
	// it.
	heavyUnits = 100_000
	// GrantStep is how many bytes are asked for at a time, and grantFree how many are never asked for.
	GrantStep = 64 << 10
	grantFree = 4 << 10
	// heavyBytes is the memory from which evaluations are heavy work.
	heavyBytes = 2 << 20
	// ShortText is up to what length strings that functions make are not counted.
	ShortText = 256
)

// A bill counts what the evaluations of one request have taken that others want, too.
type bill struct {
	memory  Memory // nil bounds nothing
	granted int    // bytes that need not be asked for
	Text    int    // bytes of strings that functions made
	spent   int64  // units since the last look whether there is leave
}

// close gives back what was granted.
func (b *bill) close() {
	if b.memory != nil && b.granted > grantFree {
		b.memory.Shrink(b.granted - grantFree)
	}
	*b = bill{}
}

// grow asks for what is missing to so many bytes.
func (b *bill) grow(to int) {
	if b.memory == nil {
		b.granted = to
		return
	}
	more := (to - b.granted + GrantStep - 1) / GrantStep * GrantStep
	if to > heavyBytes && !b.memory.Work() || !b.memory.Grow(more) {
		panic(Stop(Refused))
	}
	b.granted += more
}

// work asks for leave to go on.
func (b *bill) work() {
	b.spent = 0
	if b.memory != nil && !b.memory.Work() {
		panic(Stop(Refused))
	}
}
