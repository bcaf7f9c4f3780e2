package server

// An Editor changes the body of an answer while it streams to the client.
type Editor interface {
	// HasEvents reports whether the body is a sequence of events. Each leaves when it is complete.
	HasEvents() bool
	// IsHolding reports whether a part of an object is held until the rest comes.
	IsHolding() bool
	// Rest gives back memory of a large object, at a time when none is held.
	Rest()
	// Append edits the start of src, appends the result to dst up to a length of about limit, and
	// returns how many bytes of src it used.
	Append(dst, src []byte, limit int) ([]byte, int, error)
	// Close ends the body.
	Close(dst []byte) ([]byte, error)
	// Failed returns the Status of a body that cannot be edited.
	Failed(err error) error
}
