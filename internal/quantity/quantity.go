// Package quantity decides which texts may be read as quantities: Kubernetes' library takes time
// and memory without bound for some of a few characters.
package quantity

import (
	"errors"
	"strconv"
	"strings"
)

// Bounds is the demand of [Bounded] on a quantity, in words that follow "must be".
const Bounds = "a quantity of at most 256 characters with an exponent between -256 and 256"

// Bounded reports whether reading a quantity takes next to no time: the library writes out 10 to the power of the
// exponent. What is no quantity at all may be bounded as well.
func Bounded(s string) bool {
	if len(s) > 256 {
		return false
	}
	at := strings.LastIndexAny(s, "eE")
	if at < 0 || at == len(s)-1 {
		return true
	}
	exponent, err := strconv.Atoi(s[at+1:])
	return err != nil && !errors.Is(err, strconv.ErrRange) || err == nil && exponent >= -256 && exponent <= 256
}
