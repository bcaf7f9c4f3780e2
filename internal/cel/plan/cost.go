package plan

import (
	"math"
	"math/bits"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/admission-gateway/gateway/internal/cel/value"
)

// A cost says how much work a function is, as units of the sizes of its arguments.
type cost struct {
	// size measures an argument.
	size func(ref.Val) int64
	// deep: the size counts everything in the argument.
	deep bool
	// work is the units for arguments of these sizes; nil: there is none worth counting. Sizes of arguments that were
	// counted when they were read are 0 unless always is set.
	work func(sizes []int64) int64
	// always: what was counted when arguments were read is not enough.
	always bool
	// makes: the result is a list of new items.
	makes bool
	// skip reports whether the sizes of the literal arguments make the work so small that always
	// need not hold.
	skip func(sizes []int64) bool
}

// Functions that are not listed are linear.
var costs = map[string]*cost{
	operators.LogicalAnd: free, operators.LogicalOr: free, operators.LogicalNot: free, operators.Conditional: free,
	operators.Index: free, operators.OptIndex: free, operators.OptSelect: free,
	operators.Subtract: free, operators.Multiply: free, operators.Divide: free, operators.Modulo: free, operators.Negate: free,
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
	"join":              compared,
	"format":            formatted,

	"matches":  matched,
	"find":     matched,
	"findAll":  {size: size, work: matched.work, always: true, makes: true},
	"split":    {size: size, work: Linear.work, makes: true},
	"reverse":  {size: size, work: Linear.work, makes: true},
	"slice":    {size: size, work: Linear.work, makes: true},
	"validate": {size: size, work: func(s []int64) int64 { return units(s[len(s)-1]+1, formatPattern, 4*value.BytesPerUnit) }, always: true},
	"replace":  product,

	"sets.contains":   pairs,
	"sets.equivalent": pairs,
	"sets.intersects": pairs,
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

	// formatted prints the arguments, some with as many digits as the format says.
	formatted = &cost{size: formatSize, deep: true, work: func(s []int64) int64 { return sum(s) / value.BytesPerUnit }, always: true}

	// matched is the cost of matching in Kubernetes: the length of the string times a quarter of
	// the pattern's length. Short patterns cost no more than what was counted for the string.
	matched = &cost{
		size:   size,
		work:   func(s []int64) int64 { return units(s[0]+1, patternSize(s), 4*value.BytesPerUnit) },
		always: true,
		skip:   func(s []int64) bool { return len(s) > 1 && s[1] != unknownSize && s[1] <= 16 },
	}

	// product is replacing each byte of the first argument with the last one.
	product = &cost{size: size, work: func(s []int64) int64 { return units(s[0]+1, s[2]+1, value.BytesPerUnit) }, always: true}

	// pairs compares each item of one list with each item of the other.
	pairs = &cost{size: size, work: func(s []int64) int64 { return units(s[0], s[1], 4) }, always: true}

	// ranged makes as many items as its argument says.
	ranged = &cost{size: number, work: func(s []int64) int64 { return s[0] }, always: true, makes: true}

	// asked is a question to the authorizer, at Kubernetes' price: two fit into one expression.
	asked = &cost{size: size, work: func([]int64) int64 { return 350_000 }, always: true}

	// sorted compares each item with a few others.
	sorted = &cost{size: size, work: func(s []int64) int64 {
		return units(s[0], int64(bits.Len64(uint64(s[0]))), 2)
	}, always: true, makes: true}
)

// formatPattern is about the length of the patterns behind the named formats.
const formatPattern = 64

func patternSize(s []int64) int64 {
	if len(s) < 2 {
		return 1
	}
	return s[1] + 1
}

func sum(s []int64) int64 {
	var total int64
	for _, n := range s {
		total = min(total+n, math.MaxInt32)
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

// formatSize is deepSize, with the numbers in a format counted for the digits that they ask for.
func formatSize(v ref.Val) int64 {
	s, ok := v.(types.String)
	if !ok {
		return deepSize(v)
	}
	total, digits := int64(len(s)), int64(0)
	for i := range len(s) {
		if c := s[i]; c >= '0' && c <= '9' {
			digits = min(10*digits+int64(c-'0'), math.MaxInt32)
			continue
		}
		total += digits
		digits = 0
	}
	return min(total+digits, math.MaxInt32)
}

// number is the value of an int, for functions that make so many items.
func number(v ref.Val) int64 {
	if n, ok := v.(types.Int); ok {
		return max(int64(n), 0)
	}
	return 0
}

// Measure is the size of an argument that native code has.
func (c *cost) Measure(f *Machine, v Val) int64 {
	switch v.Kind {
	case ValString:
		if c != formatted && c != ranged {
			return int64(len(v.Str()))
		}
	case valNode:
		if c.deep {
			return 0 // containers of documents count for themselves
		}
		return int64(v.node().Len())
	case ValList:
		if !c.deep {
			return int64(len(v.List().vals))
		}
		var total int64
		for _, item := range v.List().vals {
			total = min(total+value.BytesPerUnit+c.Measure(f, item), math.MaxInt32)
		}
		return total
	case ValInt:
		if c == ranged {
			return max(v.Int(), 0)
		}
		return 0
	case valRef:
	default:
		return 0
	}
	return c.size(f.Ref(v))
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
