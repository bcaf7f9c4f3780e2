//go:build !amd64 || purego

package document

// A seeker looks at eight bytes at a time, and keeps no state.
type seeker struct{}

// seek returns the offset of the first byte from i that may not pass unseen in a string, -1 if there
// is none before the last bytes of the text. At least seven bytes stand behind it.
func (s *scanner) seek(i int) int {
	for ; i < s.wide-7; i += 8 {
		if marks := specialOrWide(load64(s.base, i)); marks != 0 {
			return i + firstMarked(marks)
		}
	}
	return -1
}

// prepare has seek find more, which it cannot.
func (seeker) prepare(int) bool { return false }
