package manifest

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// A scalar is a string, or the JSON of another scalar.
type scalar struct {
	text     string
	isString bool
	letter   byte // of a boolean that is written as a letter, else 0
}

// scalar returns what a scalar means to sigs.k8s.io/yaml, that is to YAML 1.1 as go-yaml v2 reads
// it: "yes" is true, "0777" is octal. Numbers keep every digit that the library would round off.
func (t *translator) scalar(n *yaml.Node, path string) (s scalar, ok bool) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tag := ""
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		tag = n.Tag
	case n.Style&quoted != 0 || t.nonSpecificTag(n):
		tag = "!!str"
	}
	switch tag {
	case "", "!!bool", "!!int", "!!float", "!!null":
	case "!!str":
		return scalar{text: n.Value, isString: true}, true
	default:
		t.fail(positionOf(n), path, "must not have the tag '%s'", tag)
		return s, false
	}
	is, text := resolve(n.Value)
	if t.dialect == coreYAML && is == "!!bool" && !strings.EqualFold(n.Value, text) {
		is = "!!str" // 'yes' and 'on' are words
	}
	if is == outOfRange {
		t.fail(positionOf(n), path, "must not be the number '%s', which is too large; a string must be in quotes",
			n.Value)
		return s, false
	}
	if tag != "" && tag != is && !(tag == "!!float" && is == "!!int") {
		t.fail(positionOf(n), path, "must not have the tag '%s', which does not fit '%s'", tag, n.Value)
		return s, false
	}
	switch is {
	case "!!str":
		s.text, s.isString = n.Value, true
	case notANumber:
		t.fail(positionOf(n), path, "must not be '%s', which JSON cannot hold; a string must be in quotes", n.Value)
		return s, false
	default:
		s.text = text
		if is == "!!bool" && len(n.Value) == 1 {
			s.letter = n.Value[0]
		}
	}
	return s, true
}

// nonSpecificTag reports whether the node has the tag "!", which makes a string of it. The parser's
// nodes do not keep that tag, so the file's text is asked.
func (t *translator) nonSpecificTag(n *yaml.Node) bool {
	if n.Line < 1 || n.Line > len(t.lines) {
		return false
	}
	if n.Line != t.line || n.Column < t.column {
		t.line, t.column, t.rest = n.Line, 1, t.lines[n.Line-1]
	}
	for ; t.column < n.Column && len(t.rest) > 0; t.column++ { // columns count characters
		_, size := utf8.DecodeRune(t.rest)
		t.rest = t.rest[size:]
	}
	rest := t.rest
	if len(rest) > 0 && rest[0] == '&' {
		text := strings.TrimLeft(string(rest[1:]), "&")
		rest = []byte(strings.TrimLeft(strings.TrimPrefix(text, n.Anchor), " \t"))
		for i := n.Line; i < len(t.lines) && isBlankOrComment(rest); i++ {
			rest = []byte(strings.TrimLeft(string(t.lines[i]), " \t"))
		}
	}
	return len(rest) > 0 && rest[0] == '!'
}

func isBlankOrComment(line []byte) bool {
	text := strings.TrimSpace(string(line))
	return text == "" || text[0] == '#'
}

// The results of resolve for text without a value.
const (
	outOfRange = "out of range"
	notANumber = "not a number"
)

var decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolve returns the tag of a plain scalar and the JSON of what it means, if that is not a string.
func resolve(in string) (tag, text string) {
	switch in {
	case "", "~", "null", "Null", "NULL":
		return "!!null", "null"
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return "!!bool", "true"
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return "!!bool", "false"
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return notANumber, ""
	}
	switch c := in[0]; {
	case c == '.':
		// A float may not have underscores here, and ParseFloat takes none.
		return resolveDecimal(in)
	case c == '+' || c == '-' || c >= '0' && c <= '9':
		return resolveNumber(strings.ReplaceAll(in, "_", ""))
	}
	return "!!str", ""
}

func resolveNumber(in string) (tag, text string) {
	if i, err := strconv.ParseInt(in, 0, 64); err == nil {
		return "!!int", strconv.FormatInt(i, 10)
	}
	if u, err := strconv.ParseUint(in, 0, 64); err == nil {
		return "!!int", strconv.FormatUint(u, 10)
	}
	if tag, text = resolveDecimal(in); tag != "!!str" {
		return tag, text
	}
	return resolveBinary(in)
}

// resolveDecimal takes the float forms, and integers beyond 64 bits: go-yaml v2 makes floats of these.
func resolveDecimal(in string) (tag, text string) {
	if !decimal.MatchString(in) {
		return "!!str", ""
	}
	digits := strings.TrimLeft(in, "+-")
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "01234567") == "" {
		return outOfRange, "" // an octal number beyond 64 bits, which others take for a decimal one
	}
	f, err := strconv.ParseFloat(in, 64)
	if err != nil || math.IsInf(f, 0) {
		return outOfRange, "" // a string to go-yaml, which no author can have meant
	}
	rounded, err := json.Marshal(f)
	if err != nil {
		return outOfRange, ""
	}
	if sameNumber(in, string(rounded)) {
		return "!!float", string(rounded)
	}
	return "!!float", jsonNumber(in)
}

// resolveBinary takes what go-yaml takes and strconv does not: "0b" with a sign of its own.
func resolveBinary(in string) (tag, text string) {
	if digits, ok := strings.CutPrefix(in, "0b"); ok {
		if i, err := strconv.ParseInt(digits, 2, 64); err == nil {
			return "!!int", strconv.FormatInt(i, 10)
		}
	} else if digits, ok := strings.CutPrefix(in, "-0b"); ok {
		if i, err := strconv.ParseInt("-"+digits, 2, 64); err == nil {
			return "!!int", strconv.FormatInt(i, 10)
		}
	}
	return "!!str", ""
}

// jsonNumber spells a decimal number as JSON does, every digit kept.
func jsonNumber(in string) string {
	sign := ""
	switch in[0] {
	case '-':
		sign, in = "-", in[1:]
	case '+':
		in = in[1:]
	}
	mantissa, exponent := in, ""
	if i := strings.IndexAny(in, "eE"); i >= 0 {
		mantissa, exponent = in[:i], in[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent
}

// sameNumber compares the exact values of two decimal numbers.
func sameNumber(a, b string) bool {
	negativeA, digitsA, exponentA, okA := scientific(a)
	negativeB, digitsB, exponentB, okB := scientific(b)
	if !okA || !okB {
		return false
	}
	if digitsA == "" || digitsB == "" {
		return digitsA == digitsB
	}
	return negativeA == negativeB && digitsA == digitsB && exponentA == exponentB
}

// scientific splits a decimal number into its sign, its digits without zeros at the ends and the power of ten by
// which 0.digits is multiplied. Zero has no digits and no exponent.
func scientific(in string) (negative bool, digits string, exponent int, ok bool) {
	negative = in[0] == '-'
	in = strings.TrimLeft(in, "+-")
	power := "0"
	if i := strings.IndexAny(in, "eE"); i >= 0 {
		in, power = in[:i], in[i+1:]
	}
	whole, fraction, _ := strings.Cut(in, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return negative, "", 0, true
	}
	exponent, err := strconv.Atoi(power)
	if err != nil || exponent > 1<<20 || exponent < -1<<20 {
		return negative, "", 0, false // far beyond what a float64 holds
	}
	exponent += len(digits) - len(fraction)
	return negative, strings.TrimRight(digits, "0"), exponent, true
}
