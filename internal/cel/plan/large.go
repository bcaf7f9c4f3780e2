package plan

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	celfunctions "github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// What some functions make is many times as large as what they are given, or as what they cost in Kubernetes. Here what
// is beyond heldLimit, and would be refused once it is there, is refused before it is made.

// mostFound is how many matches findAll looks for: one more than may be held.
const mostFound = value.MadeLimit/RefBytes + 1

// findAll is regexp's FindAllString, up to what may be held.
func (f *Machine) findAll(re *regexp.Regexp, s string, n int) []string {
	most := min(len(s)+1, mostFound)
	if n >= 0 {
		most = min(n, most)
	}
	// Its list of strings may double as the last match is found.
	asked := most * RefBytes
	f.Arena.MadeText(asked)
	found := re.FindAllString(s, most)
	if asked > value.ShortText {
		f.Arena.Bill.Text -= asked
	}
	return found
}

// FindAllConstant plans findAll with a literal pattern.
var FindAllConstant = &interpreter.RegexOptimization{
	Function:   library.FindAllRegexOptimization.Function,
	RegexIndex: library.FindAllRegexOptimization.RegexIndex,
	Factory: func(call interpreter.InterpretableCall, text string) (interpreter.InterpretableCall, error) {
		optimized, err := library.FindAllRegexOptimization.Factory(call, text)
		if err != nil {
			return nil, err
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return &findAllCall{optimized, re}, nil
	},
}

// findAllCall is findAll with a literal pattern, up to what may be held.
type findAllCall struct {
	interpreter.InterpretableCall
	re *regexp.Regexp
}

// Exec implements interpreter.InterpretableV2.
func (c *findAllCall) Exec(e *interpreter.ExecutionFrame) ref.Val {
	vals := make([]ref.Val, 0, 3)
	for _, arg := range c.Args() {
		v := arg.Exec(e)
		if types.IsUnknownOrError(v) {
			return v
		}
		vals = append(vals, v)
	}
	s, ok := vals[0].Value().(string)
	if !ok {
		return types.LabelErrNode(c.ID(), types.MaybeNoSuchOverloadErr(vals[0]))
	}
	n := int64(-1)
	if len(vals) == 3 {
		if n, ok = vals[2].Value().(int64); !ok {
			return types.LabelErrNode(c.ID(), types.MaybeNoSuchOverloadErr(vals[2]))
		}
	}
	return types.NewStringList(types.DefaultTypeAdapter, frameOf(e).findAll(c.re, s, int(n)))
}

// Eval implements interpreter.Interpretable.
func (c *findAllCall) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

// enlarging are the functions that are bounded, by overload: what they make, in bytes, at least.
var enlarging = map[string]func(args []ref.Val) int64{
	"string_split_string": func(args []ref.Val) int64 { return itemsOf(args, -1) },
	"string_split_string_int": func(args []ref.Val) int64 {
		n, _ := args[2].(types.Int)
		return itemsOf(args, int64(n))
	},
	"string_replace_string_string": func(args []ref.Val) int64 { return replacedBytes(args, -1) },
	"string_replace_string_string_int": func(args []ref.Val) int64 {
		n, _ := args[3].(types.Int)
		return replacedBytes(args, int64(n))
	},
	"list_join_string": joinedBytes,
	"string_format":    formattedBytes,
}

// Enlarged bounds a function that makes much of little.
func Enlarged(b *celfunctions.Overload) *celfunctions.Overload {
	if b.Operator == "string_find_all_string" {
		return boundedFindAll(b)
	}
	makes, ok := enlarging[b.Operator]
	if !ok {
		return b
	}
	bound := *b
	if b.Binary != nil {
		bound.Binary = func(v, w ref.Val) ref.Val {
			limitTo(makes([]ref.Val{v, w}))
			return b.Binary(v, w)
		}
	}
	if b.Function != nil {
		bound.Function = func(args ...ref.Val) ref.Val {
			limitTo(makes(args))
			return b.Function(args...)
		}
	}
	return &bound
}

// boundedFindAll is findAll with a pattern that is computed.
func boundedFindAll(b *celfunctions.Overload) *celfunctions.Overload {
	find := func(args ...ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		pattern, isPattern := args[1].(types.String)
		if !ok || !isPattern || len(s) < mostFound {
			if b.Binary != nil {
				return b.Binary(args[0], args[1])
			}
			return b.Function(args...)
		}
		re, err := regexp.Compile(string(pattern))
		if err != nil {
			return types.NewErr("Illegal regex: %v", err.Error())
		}
		return types.NewStringList(types.DefaultTypeAdapter, re.FindAllString(string(s), mostFound))
	}
	bound := *b
	if b.Binary != nil {
		bound.Binary = func(v, w ref.Val) ref.Val { return find(v, w) }
	}
	if b.Function != nil {
		bound.Function = find
	}
	return &bound
}

func limitTo(bytes int64) {
	if bytes > value.MadeLimit {
		panic(value.Stop(value.OverLimit))
	}
}

// pieces is how many parts a string has between separators, at most n if n is not negative.
func pieces(s, separator string, n int64) int64 {
	count := int64(strings.Count(s, separator)) + 1
	if separator == "" {
		count = int64(utf8.RuneCountInString(s))
	}
	if n >= 0 {
		count = min(count, n)
	}
	return count
}

func itemsOf(args []ref.Val, n int64) int64 {
	s, ok := args[0].(types.String)
	separator, isText := args[1].(types.String)
	if !ok || !isText {
		return 0
	}
	return pieces(string(s), string(separator), n) * RefBytes
}

func replacedBytes(args []ref.Val, n int64) int64 {
	s, ok := args[0].(types.String)
	old, isOld := args[1].(types.String)
	with, isNew := args[2].(types.String)
	if !ok || !isOld || !isNew {
		return 0
	}
	count := int64(strings.Count(string(s), string(old)))
	if n >= 0 {
		count = min(count, n)
	}
	return int64(len(s)) + count*int64(len(with)-len(old))
}

// joinedBytes is the size of the separators; the strings are there already.
func joinedBytes(args []ref.Val) int64 {
	separator, ok := args[1].(types.String)
	list, isList := args[0].(traits.Lister)
	if !ok || !isList {
		return 0
	}
	n, _ := list.Size().(types.Int)
	return min(units(int64(n)-1, int64(len(separator)), 1), math.MaxInt32)
}

const (
	// mostDigits is how many digits after the point the library prints at most, however many a format asks for.
	mostDigits = 1 << 16
	// mostBefore is how many digits a number may have before its point, in bits if that is how it is printed.
	mostBefore = 309
)

// formattedBytes is how many digits a format asks for. The strings that it prints are there already.
func formattedBytes(args []ref.Val) int64 {
	format, ok := args[0].(types.String)
	if !ok {
		return 0
	}
	list, ok := args[1].(traits.Lister)
	if !ok {
		return 0
	}
	left, _ := list.Size().(types.Int) // there is an error at the first clause without a value
	var total int64
	for rest := string(format); left > 0; {
		_, clause, found := strings.Cut(rest, "%")
		if !found || clause == "" {
			break
		}
		precision, ok := strings.CutPrefix(clause, ".")
		rest = strings.TrimLeft(precision, "0123456789")
		if ok {
			digits, _ := strconv.Atoi(precision[:len(precision)-len(rest)])
			total += min(int64(digits), mostDigits)
		}
		if rest == "" {
			break
		}
		if rest[0] != '%' {
			left--
			if rest[0] != 's' {
				total += mostBefore
			}
		}
		rest = rest[1:]
	}
	return total
}
