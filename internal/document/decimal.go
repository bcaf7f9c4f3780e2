package document

import "math/bits"

// IsWhole reports whether the value is a number without a fraction, of any size and however it is
// spelled.
func (n Node) IsWhole() bool {
	if n.Kind() != Number {
		return false
	}
	if n.d.tape[n.i].meta&flagInteger != 0 {
		return true
	}
	dec := takeApart(n.raw())
	return dec.exponent >= dec.digits()
}

// CompareNumbers compares two numbers by their exact values: -1, 0 or 1.
func CompareNumbers(a, b Node) int {
	if a.IsInteger() && b.IsInteger() {
		x, isX := parseInt(a.raw())
		if y, isY := parseInt(b.raw()); isX && isY {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	x, y := takeApart(a.raw()), takeApart(b.raw())
	return x.compare(&y)
}

// sign is -1, 0 or 1.
func (a *decimal) sign() int {
	switch {
	case a.digits() == 0:
		return 0
	case a.negative:
		return -1
	}
	return 1
}

// compare compares by value.
func (a *decimal) compare(b *decimal) int {
	sign := a.sign()
	switch other := b.sign(); {
	case sign < other:
		return -1
	case sign > other:
		return 1
	case sign == 0:
		return 0
	}
	switch {
	case a.exponent < b.exponent:
		return -sign
	case a.exponent > b.exponent:
		return sign
	}
	for i := range min(a.digits(), b.digits()) {
		switch x, y := a.digit(i), b.digit(i); {
		case x < y:
			return -sign
		case x > y:
			return sign
		}
	}
	switch {
	case a.digits() < b.digits():
		return -sign
	case a.digits() > b.digits():
		return sign
	}
	return 0
}

// A Divisor is a positive number that others may be multiples of.
type Divisor struct {
	mantissa uint64 // which does not end in 0
	exponent int    // of ten
}

// maxDivisorDigits is how many digits a Divisor has at most: its mantissa fits in 64 bits.
const maxDivisorDigits = 19

// NewDivisor takes a number apart; it is not ok if that is not positive, or has more than 19
// digits.
func NewDivisor(n Node) (d Divisor, ok bool) {
	if n.Kind() != Number {
		return d, false
	}
	dec := takeApart(n.raw())
	if dec.sign() <= 0 || dec.digits() > maxDivisorDigits {
		return d, false
	}
	for i := range dec.digits() {
		d.mantissa = d.mantissa*10 + uint64(dec.digit(i)-'0')
	}
	d.exponent = dec.exponent - dec.digits()
	return d, true
}

// Divides reports whether a number is a multiple, by its exact value, in time proportional to its
// length.
func (d Divisor) Divides(n Node) bool {
	dec := takeApart(n.raw())
	shift := dec.exponent - dec.digits() - d.exponent
	switch {
	case dec.digits() == 0:
		return true
	case shift < 0: // the last digit of the number is not 0
		return false
	}
	rest := uint64(0)
	for i := range dec.digits() {
		hi, lo := bits.Mul64(rest, 10)
		lo, carry := bits.Add64(lo, uint64(dec.digit(i)-'0'), 0)
		_, rest = bits.Div64((hi+carry)%d.mantissa, lo, d.mantissa)
	}
	power, base := 1%d.mantissa, 10%d.mantissa
	for ; shift > 0; shift >>= 1 {
		if shift&1 != 0 {
			power = mulMod(power, base, d.mantissa)
		}
		base = mulMod(base, base, d.mantissa)
	}
	return mulMod(rest, power, d.mantissa) == 0
}

// mulMod is a times b modulo m, for a and b less than m.
func mulMod(a, b, m uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	_, rest := bits.Div64(hi, lo, m)
	return rest
}

// Values is the number of values that the document has had: those that were parsed, and those that
// edits brought.
func (d *Document) Values() int { return len(d.tape) }
