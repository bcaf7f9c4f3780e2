package config

import (
	"fmt"
	"math/bits"
	"runtime"

	"github.com/admission-gateway/gateway/internal/memory"
)

const (
	// unknownMemory is the budget if the size of the memory is unknown.
	unknownMemory = 256 << 20
	// valueBytes is the memory that each value of a JSON text takes besides the text itself.
	valueBytes = 40
)

// derive gives the limits that depend on the machine their values, if the configuration leaves them
// open.
func (l *Limits) derive() {
	machine, _ := memory.Machine()
	l.deriveFrom(machine, runtime.GOMAXPROCS(0))
}

// deriveFrom is derive for a machine of so much memory, 0 if that is not known, and so many processors. The other half
// of the memory is for everything that is not counted: policies, connections, and what the garbage collector has yet to
// take.
func (l *Limits) deriveFrom(machine int64, processors int) {
	if l.BodiesInFlightBytes == 0 {
		l.BodiesInFlightBytes = unknownMemory
		if machine > 0 {
			l.BodiesInFlightBytes = machine / 2
		}
		l.BodiesInFlightBytes = max(l.BodiesInFlightBytes, 2*roundedUp(l.BodyBytes))
	}
	if l.HeavyRequests == 0 {
		// One processor is for all other requests, if there is more than one.
		fit := memory.LargeShare(l.BodiesInFlightBytes) / l.LargestBody()
		l.HeavyRequests = int32(max(1, min(int64(processors)-1, fit)))
	}
}

// LargestBody is about how much one request holds whose body is as long as it may be and has as many values as it may
// have: the body, in memory that doubles as it arrives, and its values, whose memory is copied once as it grows.
func (l *Limits) LargestBody() int64 {
	return roundedUp(l.BodyBytes) + int64(l.JSONNodes)*valueBytes*5/3
}

// roundedUp is the next power of two.
func roundedUp(n int64) int64 { return 1 << bits.Len64(uint64(max(n, 1)-1)) }

// Shortage says what does not fit the memory for requests; it is empty if all does.
func (l *Limits) Shortage() string {
	largest, budget := l.LargestBody(), memory.LargeShare(l.BodiesInFlightBytes)
	if largest <= budget {
		return ""
	}
	return fmt.Sprintf("a body of `limits.bodyBytes` (%d) with `limits.jsonNodes` (%d) values takes about %d bytes, which is more than the %d "+
		"that `limits.bodiesInFlightBytes` (%d) leaves to one request: such a body is refused with 503 however often it is sent; "+
		"give the gateway more memory, raise `limits.bodiesInFlightBytes`, or lower `limits.jsonNodes`",
		l.BodyBytes, l.JSONNodes, largest, budget, l.BodiesInFlightBytes)
}
