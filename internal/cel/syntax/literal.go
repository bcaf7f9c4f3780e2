package syntax

import (
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// literal parses a number with its sign, a string, a truth or null.
func (t *tree) literal() ast.Expr {
	place, sign := placeOf(t.tokens[t.at]), ""
	if t.isSigned() {
		t.at++
		sign = "-"
	}
	k := t.tokens[t.at]
	v := valueOf(k.kind, sign, t.textOf(k))
	if v == nil {
		t.decline()
		return nil
	}
	t.at++
	if sign != "" {
		place.Stop += k.end - k.begin // without what stands between the two
	}
	return t.NewLiteral(t.id(place), v)
}

// valueOf is the value of a literal; nil for what is none, and for numbers that are too large.
func valueOf(k kind, sign, written string) ref.Val {
	switch k {
	case integer:
		digits, base := baseOf(written)
		if i, err := strconv.ParseInt(sign+digits, base, 64); err == nil {
			return types.Int(i)
		}
	case unsigned:
		digits, base := baseOf(written[:len(written)-1])
		if u, err := strconv.ParseUint(digits, base, 64); err == nil {
			return types.Uint(u)
		}
	case double:
		if f, err := strconv.ParseFloat(sign+written, 64); err == nil {
			return types.Double(f)
		}
	case text:
		return types.String(unquote(written))
	case isTrue:
		return types.True
	case isFalse:
		return types.False
	case null:
		return types.NullValue
	}
	return nil
}

// baseOf cuts the prefix of hexadecimal numbers off.
func baseOf(text string) (digits string, base int) {
	if digits, isHex := strings.CutPrefix(text, "0x"); isHex {
		return digits, 16
	}
	return text, 10
}

// unquote is the value of a string.
func unquote(quoted string) string {
	isRaw := quoted[0] != '"' && quoted[0] != '\''
	if isRaw {
		quoted = quoted[1:]
	}
	length := 1 // of a quote
	if len(quoted) >= 6 && quoted[1] == quoted[0] {
		length = 3
	}
	quoted = quoted[length : len(quoted)-length]
	if isRaw {
		return quoted
	}
	if !strings.Contains(quoted, `\`) {
		return quoted
	}
	plain := make([]byte, 0, len(quoted))
	for i := 0; i < len(quoted); i++ {
		c := quoted[i]
		if c == '\\' {
			i++
			c = unescaped(quoted[i])
		}
		plain = append(plain, c)
	}
	return string(plain)
}
