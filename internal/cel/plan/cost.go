package plan

import (
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A cost says how much work a function is, as units of the sizes of its arguments.
type cost struct {
	// size measures an argument; first the first one, if it is set.
	size, first func(ref.Val) int64
	// characters: the size of a string is the number of its characters.
	characters bool
	// deep: the size counts everything in the argument.
	deep bool
	// work is the units for arguments of these sizes; nil if too little to count. Sizes of
	// arguments that were counted when they were read are 0 unless always is set.
	work func(sizes []int64) int64
	// always: what was counted when arguments were read is not enough.
	always bool
	// makes: the result is a list of new items.
	makes bool
	// again has the places of lists that are read more than once.
	again []int
	// pays: the length of the result is counted, for no size of an argument says it.
	pays bool
	// skip reports whether the sizes of the literal arguments make the work so small that always
	// need not hold.
	skip func(sizes []int64) bool
}

// Functions that are not listed are linear.
var costs = map[string]*cost{
	operators.LogicalAnd: free, operators.LogicalOr: free, operators.LogicalNot: free, operators.Conditional: free,
	operators.Index: free, operators.OptIndex: free, operators.OptSelect: free,
	operators.Subtract: free, operators.Multiply: free, operators.Divide: free, operators.Modulo: free,
	operators.Negate:           free,
	operators.NotStrictlyFalse: free,
	"value":                    free, "hasValue": free, "or": free, "orValue": free, "optional.of": free, "optional.none": free,
	"type": free, "dyn": free, "first": free, "last": free, mapInsert: free,

	operators.Equals:    compared,
	operators.NotEquals: compared,
	operators.In:        compared,
	"indexOf":           compared,
	"lastIndexOf":       compared,
	"includes":          compared,
	"contains":          compared,
	"flatten":           {size: deepSize, deep: true, work: compared.work, makes: true},
	"join":              printed,
	"format":            printed,

	"matches": matched,
	"find":    matched,
	"findAll": {size: characters, characters: true, work: matched.work, always: true, makes: true},
	"split":   {size: size, work: Linear.work, makes: true},
	"reverse": {size: size, work: Linear.work, makes: true},
	"slice":   {size: size, work: Linear.work, makes: true},
	"validate": {size: characters, characters: true, first: formatPattern,
		work: func(s []int64) int64 { return matchUnits(s[len(s)-1], s[0]) }, always: true},
	"replace": {size: size, work: Linear.work, pays: true},

	"sets.contains":   pairs(0),
	"sets.equivalent": pairs(0, 1),
	"sets.intersects": pairs(1),
	"distinct":        {size: size, work: func(s []int64) int64 { return units(s[0], s[0], 16) }, always: true, makes: true},
	"sort":            sorted,
	"lists.range":     ranged,

	"@sortByAssociatedKeys": sorted,

	"check": asked,
}

var (
	free = &cost{}

	// Linear is one pass over the arguments.
	Linear = &cost{size: size, work: func(s []int64) int64 { return sum(s) / value.BytesPerUnit }}

	// compared is one pass over everything in the arguments.
	compared = &cost{size: deepSize, deep: true, work: func(s []int64) int64 { return sum(s) / value.BytesPerUnit }}

	// printed is one pass over everything in the arguments, and over the resulting string.
	printed = &cost{size: deepSize, deep: true, work: compared.work, pays: true}

	// matched is the cost of matching in Kubernetes. Short patterns cost no more than what was counted for the string.
	matched = &cost{
		size: characters, characters: true,
		work:   func(s []int64) int64 { return matchUnits(s[0], patternSize(s)) },
		always: true,
		skip:   func(s []int64) bool { return len(s) > 1 && s[1] != unknownSize && s[1] <= 16 },
	}

	// ranged makes as many items as its argument says, if there may be so many.
	ranged = &cost{size: rangeSize, work: func(s []int64) int64 { return s[0] }, always: true, makes: true}

	// asked is a question to the authorizer, at Kubernetes' price: two fit into one expression.
	asked = &cost{size: size, work: func([]int64) int64 { return 350_000 }, always: true}

	// sorted compares each item with a few others.
	sorted = &cost{size: size, work: func(s []int64) int64 {
		return units(s[0], int64(bits.Len64(uint64(s[0]))), 2)
	}, always: true, makes: true}
)

// characters is size, but of a string the number of its characters: what Kubernetes multiplies.
func characters(v ref.Val) int64 {
	if s, ok := v.(types.String); ok {
		return int64(utf8.RuneCountInString(string(s)))
	}
	return size(v)
}

// matchUnits is Kubernetes' cost of matching a string with a pattern, by their numbers of characters: a tenth of the
// one times a quarter of the other.
func matchUnits(text, pattern int64) int64 {
	return units((text+1+value.BytesPerUnit-1)/value.BytesPerUnit, (pattern+3)/4, 1)
}

func patternSize(s []int64) int64 {
	if len(s) < 2 {
		return 1
	}
	return s[1]
}

// formatPattern is the length of the pattern of a named format, as Kubernetes counts it.
func formatPattern(v ref.Val) int64 {
	if f, ok := v.Value().(apiservercel.Format); ok {
		return int64(f.MaxRegexSize)
	}
	return size(v)
}

func sum(s []int64) int64 {
	var total int64
	for _, n := range s {
		total = min(total+min(n, math.MaxInt32), math.MaxInt32)
	}
	return total
}

// units is a*b/per, at most a number that is beyond every limit.
func units(a, b, per int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt32
	}
	return min(int64(lo)/per, math.MaxInt32)
}

// size is the length of a string in bytes, or the number of a list's or map's items.
func size(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case *value.Record, counted:
		return 0
	case traits.Sizer:
		if n, ok := v.Size().(types.Int); ok {
			return int64(n)
		}
	}
	return 0
}

// counted are values of variables that count for themselves what is read of them.
type counted interface{ CountsItself() }

// deepSize is the size of everything in the value; ten for each item, so that it costs a unit. Containers of documents
// count for themselves.
func deepSize(v ref.Val) int64 { return deep(v, math.MaxInt32) }

func deep(v ref.Val, most int64) int64 {
	switch v := v.(type) {
	case *value.List, *value.Map, *value.Documents, *value.Record, counted:
		return 0
	case traits.Lister:
		var total int64
		n, _ := v.Size().(types.Int)
		for i := types.IntZero; i < n && total < most; i++ {
			total += value.BytesPerUnit + deep(v.Get(i), most-total)
		}
		return total
	case traits.Mapper:
		var total int64
		for it := v.Iterator(); it.HasNext() == types.True && total < most; {
			key := it.Next()
			total += value.BytesPerUnit + size(key)
			if x, found := v.Find(key); found {
				total += deep(x, most-total)
			}
		}
		return total
	}
	return size(v)
}

// pairs compares each item of one list with each item of the other. The lists at these places are gone through again
// and again: if they are of a document, they count that for themselves.
func pairs(again ...int) *cost {
	return &cost{size: size, again: again, work: func(s []int64) int64 { return units(s[0], s[1], 4) }, always: true}
}

// sizeOf is the size of the argument at a place.
func (c *cost) sizeOf(at int, v ref.Val) int64 {
	if _, ok := v.(*value.List); ok && slices.Contains(c.again, at) {
		return 0
	}
	if at == 0 && c.first != nil {
		return c.first(v)
	}
	return c.size(v)
}

// mostRanged is how many items lists.range makes at most. For a larger number it returns an error.
const mostRanged = 1_000_000

// rangeSize is how many items lists.range makes.
func rangeSize(v ref.Val) int64 {
	n, _ := v.(types.Int)
	return rangeItems(int64(n))
}

func rangeItems(n int64) int64 {
	if n < 0 || n > mostRanged {
		return 0
	}
	return n
}

// Measure is the size of the argument at a place that native code has.
func (c *cost) Measure(f *Machine, at int, v Val) int64 {
	switch v.Kind {
	case ValString:
		if c.characters {
			return int64(utf8.RuneCountInString(v.Str()))
		}
		if c != ranged {
			return int64(len(v.Str()))
		}
	case valNode:
		if c.deep || slices.Contains(c.again, at) {
			return 0 // containers of documents count for themselves
		}
		return int64(v.node().Len())
	case ValList:
		if !c.deep {
			return int64(len(v.List().vals))
		}
		var total int64
		for _, item := range v.List().vals {
			total = min(total+value.BytesPerUnit+c.Measure(f, at, item), math.MaxInt32)
		}
		return total
	case ValInt:
		if c == ranged {
			return rangeItems(v.Int())
		}
		return 0
	case valRef:
	default:
		return 0
	}
	return c.sizeOf(at, f.Ref(v))
}

// Units and bytes that lists and maps cost: the units are Kubernetes'.
const (
	listUnits   = 10
	mapUnits    = 30
	structUnits = 40

	valBytes   = 64  // of an item of a built list
	RefBytes   = 32  // of an item of a list of cel-go's
	EntryBytes = 128 // of a member of a map
)

// insertUnits is the cost of adding to the result of transformMap; mapInsert is the function that
// does it.
const (
	insertUnits = 3
	mapInsert   = "cel.@mapInsert"
)
