package builtin

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

const (
	// maxExponent is how many digits an exponent can have.
	maxExponent = 4
	// MaxDigits is how long a number can be.
	MaxDigits = 4096
)

// The errors about numbers that cannot be calculated with in bounded time.
var (
	ErrExponent = errors.New("a number has an exponent of more than 4 digits")
	ErrDigits   = errors.New("a number has more than 4096 digits")
)

// CheckNumber returns the error about a text that is one number, which is too long or too large.
func CheckNumber(text string) error {
	if len(text) <= maxExponent+2 {
		return nil
	}
	if len(text) > MaxDigits {
		return ErrDigits
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case 'e', 'E', 'p', 'P':
			if digits, _ := exponent(text[i+1:]); digits > maxExponent {
				return ErrExponent
			}
		}
	}
	return nil
}

// exponent returns how many digits the exponent has that a text begins with, but for zeros at its
// front, and how long it is.
func exponent(text string) (digits, end int) {
	i := 0
	if i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}
	for i < len(text) && text[i] == '0' {
		i++
	}
	begin := i
	for i < len(text) && (isDigit(text[i]) || text[i] == '_') {
		i++
	}
	return i - begin, i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isNumeric reports whether a number may have the byte.
func isNumeric(c byte) bool {
	return isDigit(c) || c == '.' || c == '-' || c == '+' || c == '_' || c == 'e' || c == 'E' || c == 'x' || c == 'p' ||
		c == 'P'
}

// checkNumbers returns the error about a number in a text whose numbers stand for themselves.
func checkNumbers(text string) error {
	for i := 0; i < len(text); {
		if !isNumeric(text[i]) {
			for i < len(text) && isWord(text[i]) {
				i++
			}
			if i < len(text) && !isNumeric(text[i]) {
				i++
			}
			continue
		}
		begin := i
		for i < len(text) && isNumeric(text[i]) {
			i++
		}
		if i < len(text) && isWord(text[i]) {
			for i < len(text) && isWord(text[i]) {
				i++
			}
			continue
		}
		if c := text[begin]; isDigit(c) || c == '.' || c == '-' || c == '+' {
			if err := CheckNumber(text[begin:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// isWord reports whether a word may have the byte.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '-' || c == '/' || c >= 0x80
}

// calculated stands for the time that numbers with many digits take, which grows with the square of
// their number.
func calculated(o operands) need { return need{steps: square(o.lens(), 64)} }

// multiplied is calculated for all numbers of a list or a set.
func multiplied(o operands) need {
	bytes, count := texts(o.of[0])
	return need{memory: 128 * count, steps: add(square(bytes, 64), 8*count)}
}

// summed is calculated for each number of a list or a set, and for their sum.
func summed(o operands) need {
	n := need{memory: 128 * int64(lenOf(o.of[0]))}
	forEach(o.of[0].Value, func(t *ast.Term) { n.steps = add(n.steps, 8+square(length(t), 64)) })
	return n
}

// ranged is a list of the numbers of a range.
func ranged(o operands) need {
	numbers := make([]*big.Int, 0, 3)
	for _, t := range o.of[:min(len(o.of), 3)] {
		n, ok := t.Value.(ast.Number)
		if !ok || CheckNumber(string(n)) != nil {
			return need{}
		}
		f, _, err := big.ParseFloat(string(n), 10, 64, big.ToZero)
		if err != nil {
			return need{}
		}
		i, _ := f.Int(nil)
		numbers = append(numbers, i)
	}
	size := new(big.Int).Sub(numbers[1], numbers[0])
	size.Abs(size)
	if len(numbers) == 3 && numbers[2].Sign() > 0 {
		size.Quo(size, numbers[2])
	}
	if !size.IsInt64() {
		return need{memory: math.MaxInt64}
	}
	return need{memory: multiply(itemBytes, size.Int64())}
}

// shifted is a number that has so many bits more.
func shifted(o operands) need {
	n, ok := o.of[1].Value.(ast.Number)
	if !ok {
		return need{}
	}
	bits, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil {
		bits = math.MaxInt64 / 4
	}
	digits := add(o.len(0), max(bits, 0)/3)
	return need{memory: digits, steps: square(digits, 64)}
}

// amount is the number that a text with a unit begins with.
func amount(o operands) need {
	digits := o.len(0)
	return need{memory: 4 * digits, steps: add(4096, square(digits, 64))}
}

// numbersInAmount returns the error about an amount with a unit.
func numbersInAmount(o operands) error {
	if err := CheckNumber(o.text(0)); err != ErrExponent {
		return err
	}
	return errAmount
}

var errAmount = errors.New("exponent too large")

// dated is a time in a form that a text says.
func dated(o operands) need {
	n := need{memory: 4096}
	for _, t := range o.of {
		n.steps = add(n.steps, square(length(t), 64))
		forEach(t.Value, func(item *ast.Term) {
			if _, ok := item.Value.(ast.Number); ok {
				n.steps = add(n.steps, square(length(item), 64))
			}
			n.memory = add(n.memory, 16*length(item))
		})
	}
	return n
}

// lasting is a duration, which a parser reads that keeps each step.
func lasting(o operands) need { return need{memory: 4096 + multiply(frameBytes, o.len(0))} }
