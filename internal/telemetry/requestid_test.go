package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"testing"
)

func TestAppendRequestID(t *testing.T) {
	form := regexp.MustCompile(`^a-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := string(AppendRequestID([]byte("a-")))
		if !form.MatchString(id) || seen[id] {
			t.Fatal(id)
		}
		seen[id] = true
	}
}

func TestAppendUUID(t *testing.T) {
	for _, high := range []uint64{0, 0x0123456789abcdef, 0xfedcba9876543210, 1<<64 - 1} {
		for _, low := range []uint64{0, 0x0123456789abcdef, 0xa0b1c2d3e4f59687, 1<<64 - 1} {
			digits := hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high), low))
			want := digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
			if got := string(appendUUID(nil, high, low)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// FuzzHex: AppendHex writes the digits that package fmt writes.
func FuzzHex(f *testing.F) {
	for _, v := range []uint64{0, 1, 0x0123456789abcdef, 0xfedcba9876543210, 0x9a9a9a9aa9a9a9a9, math.MaxUint64} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v uint64) {
		if got, want := string(AppendHex([]byte("x"), v)), fmt.Sprintf("x%016x", v); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
