package document

import (
	"strconv"
	"unsafe"
)

// scanNumber checks the number at src[i]. It returns the offset after it and
// its kind and flags, or the offset of the offending byte with a message.
func scanNumber(src []byte, i int) (at int, flags uint32, code ErrorCode, msg string) {
	from := i
	if src[i] == '-' {
		i++
	}
	digits := i
	i = skipDigits(src, i)
	if i == digits {
		return i, 0, Syntax, unexpected(src, i, "a digit")
	}
	if src[digits] == '0' && i-digits > 1 {
		return digits, 0, Syntax, "numbers must not have leading zeros"
	}
	if i >= len(src) || src[i] != '.' && src[i]|0x20 != 'e' {
		if i-digits > maxDigits && tooWide(src[from:i]) {
			return from, 0, Range, msgRange
		}
		return i, uint32(Number) | flagInteger, 0, ""
	}
	if src[i] == '.' {
		i++
		digits = i
		i = skipDigits(src, i)
		if i == digits {
			return i, 0, Syntax, unexpected(src, i, "a digit")
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		negative := false
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			negative = src[i] == '-'
			i++
		}
		digits = i
		i = skipDigits(src, i)
		if i == digits {
			return i, 0, Syntax, unexpected(src, i, "a digit")
		}
		if i-digits > maxExponent {
			return digits, 0, Range, "exponents must be less than or equal to " + strconv.Itoa(maxExponent) +
				" digits long"
		}
		if i-digits > 2 && !negative && tooWide(src[from:i]) {
			return from, 0, Range, msgRange
		}
	}
	if i-from > maxDigits && tooWide(src[from:i]) {
		return from, 0, Range, msgRange
	}
	return i, uint32(Number), 0, ""
}

// skipDigits returns the offset of the next byte from i that is no digit.
func skipDigits(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if marks := notDigit(load64(unsafe.Pointer(unsafe.SliceData(src)), i)); marks != 0 {
			return i + firstMarked(marks)
		}
	}
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i
}

const (
	maxExponent = 9   // digits; keeps exact comparisons within an int
	maxDigits   = 200 // a number of so many, without a long exponent, is surely within a double's range
	msgRange    = "numbers must be within the range of a double"
)

// tooWide reports whether a double can hold the number only as an infinity.
func tooWide(number []byte) bool {
	_, err := strconv.ParseFloat(viewString(number), 64)
	return err != nil
}

// A decimal is a number taken apart: 0.digits × 10^exponent, the digits without
// leading and trailing zeros. Equal numbers have equal decimals.
type decimal struct {
	negative bool
	head     []byte // digits before the point
	tail     []byte // digits after the point, which continue head
	exponent int
}

// takeApart reads an accepted number.
func takeApart(number []byte) decimal {
	var dec decimal
	if number[0] == '-' {
		dec.negative = true
		number = number[1:]
	}
	i := 0
	for i < len(number) && number[i]-'0' <= 9 {
		i++
	}
	dec.head, number = number[:i], number[i:]
	if len(number) > 0 && number[0] == '.' {
		for i = 1; i < len(number) && number[i]-'0' <= 9; i++ {
		}
		dec.tail, number = number[1:i], number[i:]
	}
	exponent := 0
	if len(number) > 0 {
		number = number[1:]
		negative := number[0] == '-'
		if number[0] == '+' || negative {
			number = number[1:]
		}
		for _, c := range number {
			exponent = exponent*10 + int(c-'0')
		}
		if negative {
			exponent = -exponent
		}
	}
	for len(dec.head) > 0 && dec.head[0] == '0' {
		dec.head = dec.head[1:]
	}
	exponent += len(dec.head)
	for len(dec.tail) > 0 && dec.tail[len(dec.tail)-1] == '0' {
		dec.tail = dec.tail[:len(dec.tail)-1]
	}
	if len(dec.tail) == 0 {
		for len(dec.head) > 0 && dec.head[len(dec.head)-1] == '0' {
			dec.head = dec.head[:len(dec.head)-1]
		}
	}
	if len(dec.head) == 0 {
		for len(dec.tail) > 0 && dec.tail[0] == '0' {
			dec.tail = dec.tail[1:]
			exponent--
		}
	}
	if len(dec.head)+len(dec.tail) == 0 {
		return decimal{}
	}
	dec.exponent = exponent
	return dec
}

func (a *decimal) digits() int { return len(a.head) + len(a.tail) }

func (a *decimal) digit(i int) byte {
	if i < len(a.head) {
		return a.head[i]
	}
	return a.tail[i-len(a.head)]
}

// sameNumber compares two accepted numbers by their exact value.
func sameNumber(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	x, y := takeApart(a), takeApart(b)
	if x.negative != y.negative || x.exponent != y.exponent || x.digits() != y.digits() {
		return false
	}
	for i := range x.digits() {
		if x.digit(i) != y.digit(i) {
			return false
		}
	}
	return true
}

// parseInt reads a number spelled as an integer.
func parseInt(number []byte) (int64, bool) {
	negative := number[0] == '-'
	if negative {
		number = number[1:]
	}
	if len(number) > 19 {
		return 0, false
	}
	var u uint64
	for _, c := range number {
		u = u*10 + uint64(c-'0')
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}

// integerValue reads any number whose exact value is an integer within int64.
func integerValue(number []byte) (int64, bool) {
	dec := takeApart(number)
	if dec.digits() == 0 {
		return 0, true
	}
	if dec.exponent < dec.digits() || dec.exponent > 19 {
		return 0, false
	}
	var u uint64
	for i := range dec.exponent {
		u *= 10
		if i < dec.digits() {
			u += uint64(dec.digit(i) - '0')
		}
	}
	if dec.negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}
