package explain

import (
	"strconv"
	"strings"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"

	"github.com/admission-gateway/gateway/internal/cel/plan"
)

// The words are the API conventions' (VAL-3): literals in single quotes, other fields in
// back-quotes, inequalities in words.

// literalText is a literal as a message writes it.
func literalText(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return "'" + string(v) + "'"
	case types.Int:
		return strconv.FormatInt(int64(v), 10)
	case types.Uint:
		return strconv.FormatUint(uint64(v), 10)
	case types.Double:
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.Null:
		return "null"
	case types.Bytes:
		return "'" + string(v) + "'"
	}
	return ""
}

// text is a place as the message about another place names it.
func (p operandLocation) text() string {
	path := pathText(p.steps)
	switch {
	case p.base == baseKey:
		return "the key"
	case p.base == baseMember && path == "":
		return "the value"
	case p.ofObject() && p.base != baseChosen && path == "":
		return ""
	case p.ofObject() && p.base != baseChosen:
	case path == "":
		path = p.name
	case path[0] == '[':
		path = p.name + path
	default:
		path = p.name + "." + path
	}
	return "`" + path + "`"
}

// maxSource is how many bytes of an expression's own text a message repeats.
const maxSource = 512

// unreadable stands for an expression whose text is too long.
const unreadable = "…"

// text is the expression as its author could have written it, in one line and in back-quotes.
// Members of the object are named without the variable that they are read from.
func (r *reader) text(e celast.Expr) string {
	source := r.source(e)
	for _, name := range []string{plan.NameObject, plan.NameSelf} {
		if r.find(name) == nil {
			source = withoutBase(source, name)
		}
	}
	for i := range r.scope {
		if r.scope[i].known && r.scope[i].place.base == baseItem {
			source = withoutBase(source, r.scope[i].name)
		}
	}
	return "`" + source + "`"
}

// source is the expression's text in one line.
func (r *reader) source(e celast.Expr) string {
	source, err := parser.Unparse(e, r.ast.SourceInfo(), parser.WrapOnColumn(1<<30))
	if err != nil || len(source) > maxSource {
		return unreadable
	}
	return source
}

// withoutBase takes 'object.' away wherever an operand begins with it.
func withoutBase(source, name string) string {
	var b strings.Builder
	for {
		i := strings.Index(source, name+".")
		if i < 0 {
			b.WriteString(source)
			return b.String()
		}
		b.WriteString(source[:i])
		if i > 0 && (isWordByte(source[i-1]) || strings.IndexByte(`."'`, source[i-1]) >= 0) {
			b.WriteString(name + ".")
		}
		source = source[i+len(name)+1:]
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '@'
}

// comparison is an inequality in words.
var comparisons = map[string]string{
	operators.Less:          "less than",
	operators.LessEquals:    "less than or equal to",
	operators.Greater:       "greater than",
	operators.GreaterEquals: "greater than or equal to",
}

// opposite has the comparison that holds if another does not.
var opposite = map[string]string{
	operators.Less:          operators.GreaterEquals,
	operators.LessEquals:    operators.Greater,
	operators.Greater:       operators.LessEquals,
	operators.GreaterEquals: operators.Less,
	operators.Equals:        operators.NotEquals,
	operators.NotEquals:     operators.Equals,
}

// mirrored is a comparison with its operands changed over.
var mirrored = map[string]string{
	operators.Less:          operators.Greater,
	operators.LessEquals:    operators.GreaterEquals,
	operators.Greater:       operators.Less,
	operators.GreaterEquals: operators.LessEquals,
	operators.Equals:        operators.Equals,
	operators.NotEquals:     operators.NotEquals,
}

// textTests are the functions that ask something of a string, as a demand and as a statement.
var textTests = map[string]struct{ demand, statement string }{
	"startsWith": {"start with", "starts with"},
	"endsWith":   {"end with", "ends with"},
	"contains":   {"contain", "contains"},
	"matches":    {"match the regular expression", "matches the regular expression"},
}

// kindTests are the functions that ask whether a string is of a kind.
var kindTests = map[string]string{
	"isIP":       "an IP address",
	"isCIDR":     "a CIDR block",
	"isURL":      "a URL",
	"isQuantity": "a quantity",
	"isSemver":   "a semantic version",
	"isInteger":  "a quantity without a fraction",
}

// formats are the names in sentences of the formats of Kubernetes' library 'format'.
var formats = map[string]string{
	"dns1123Label":           "a DNS label",
	"dns1123LabelPrefix":     "the beginning of a DNS label",
	"dns1123Subdomain":       "a DNS subdomain",
	"dns1123SubdomainPrefix": "the beginning of a DNS subdomain",
	"dns1035Label":           "a DNS label of RFC 1035",
	"dns1035LabelPrefix":     "the beginning of a DNS label of RFC 1035",
	"qualifiedName":          "a qualified name",
	"labelValue":             "a label value",
	"uri":                    "a URI",
	"uuid":                   "a UUID",
	"byte":                   "base64",
	"date":                   "a date",
	"datetime":               "a date-time of RFC 3339",
}

// withArticle puts 'valid' before what has an article.
func valid(what string) string {
	if article, rest, ok := strings.Cut(what, " "); ok && (article == "a" || article == "an") {
		return "a valid " + rest
	}
	return "valid " + what
}

// enumerate writes texts as a list in a sentence.
func enumerate(texts []string, conjunction string) string {
	switch n := len(texts); n {
	case 0:
		return ""
	case 1:
		return texts[0]
	case 2:
		return texts[0] + " " + conjunction + " " + texts[1]
	default:
		return strings.Join(texts[:n-1], ", ") + " " + conjunction + " " + texts[n-1]
	}
}

func literalTexts(list []ref.Val) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = literalText(v)
	}
	return texts
}
