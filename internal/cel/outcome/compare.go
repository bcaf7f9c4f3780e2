package outcome

import (
	"slices"

	"github.com/google/cel-go/common/operators"
)

// opposite has for each comparison the one that is true if it is false.
var opposite = map[string]string{
	operators.Equals: operators.NotEquals, operators.NotEquals: operators.Equals,
	operators.Less: operators.GreaterEquals, operators.GreaterEquals: operators.Less,
	operators.Greater: operators.LessEquals, operators.LessEquals: operators.Greater,
}

// mirror has for each comparison the one with its sides exchanged.
var mirror = map[string]string{
	operators.Equals: operators.Equals, operators.NotEquals: operators.NotEquals,
	operators.Less: operators.Greater, operators.Greater: operators.Less,
	operators.LessEquals: operators.GreaterEquals, operators.GreaterEquals: operators.LessEquals,
}

func isComparison(name string) bool { return mirror[name] != "" }

// compare compares two values by their possible ranges.
func (v *evaluation) compare(operator string, x, y result) result {
	if x.isFailure() || y.isFailure() {
		return failure()
	}
	t := either
	switch {
	case x.isNull() && y.isNull(), x.isNull() && y.isObject(), x.isObject() && y.isNull():
		isSame := x.isNull() && y.isNull()
		switch operator {
		case operators.Equals:
			return boolean(truth{isSame, !isSame}, x.fails || y.fails)
		case operators.NotEquals:
			return boolean(truth{!isSame, isSame}, x.fails || y.fails)
		}
	case x.shape.Enum != nil && y.shape.Enum != nil &&
		(operator == operators.Equals || operator == operators.NotEquals):
		t = sameText(x.shape.Enum, y.shape.Enum)
		if operator == operators.NotEquals {
			t = truth{t.no, t.yes}
		}
	case isNumber(x) && isNumber(y):
		t = order(operator, x.shape, y.shape)
	}
	v.decided(t, x, y)
	return boolean(t, x.fails || y.fails)
}

func isNumber(r result) bool { return r.shape.Type == "number" || r.shape.Type == "integer" }

// sameText says whether one of some texts can be one of others, and whether it can be none of them.
func sameText(x, y []string) truth {
	t := truth{no: len(x) != 1 || len(y) != 1 || x[0] != y[0]}
	t.yes = slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) })
	return t
}

// order compares two ranges of numbers.
func order(operator string, x, y *Shape) truth {
	switch operator {
	case operators.Less:
		return truth{yes: !reaches(x.Min, y.Max), no: !beyond(x.Max, y.Min)}
	case operators.LessEquals:
		return truth{yes: !beyond(y.Max, x.Min), no: !reaches(y.Min, x.Max)}
	case operators.Greater:
		return order(operators.Less, y, x)
	case operators.GreaterEquals:
		return order(operators.LessEquals, y, x)
	}
	overlap := !beyond(x.Max, y.Min) && !beyond(y.Max, x.Min)
	one := x.Min != nil && x.Max != nil && y.Min != nil && y.Max != nil && *x.Min == *x.Max && *y.Min == *y.Max &&
		*x.Min == *y.Min
	if operator == operators.Equals {
		return truth{yes: overlap, no: !one}
	}
	return truth{yes: !one, no: overlap}
}

// reaches reports whether a lower bound is surely at or above an upper one.
func reaches(lower, upper *float64) bool { return lower != nil && upper != nil && *lower >= *upper }

// beyond reports whether an upper bound is surely below a lower one.
func beyond(upper, lower *float64) bool { return upper != nil && lower != nil && *upper < *lower }
