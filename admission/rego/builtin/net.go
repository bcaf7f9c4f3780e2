package builtin

import (
	"math"
	"net/netip"

	"github.com/open-policy-agent/opa/v1/ast"
)

// hosts is the set of the addresses of a network.
func hosts(o operands) need {
	prefix, err := netip.ParsePrefix(o.text(0))
	if err != nil {
		return need{memory: 512 + 4*o.len(0)}
	}
	bits := prefix.Addr().BitLen() - prefix.Bits()
	if bits > 40 {
		return need{memory: math.MaxInt64}
	}
	return need{memory: 512 + multiply(320, 1<<bits)}
}

// addressBytes is what a network takes that is read from a text.
const addressBytes = 384

// paired is what each network of one collection says of each of another one: both are read anew for
// each pair.
func paired(o operands) need {
	one, ones := networks(o.of[0])
	other, others := networks(o.of[1])
	pairs := multiply(ones, others)
	work := add(multiply(addressBytes, pairs), add(multiply(one, others), multiply(other, ones)))
	return need{memory: 512 + multiply(itemBytes, pairs), steps: work}
}

// networks returns how long the texts of networks are, and how many there are.
func networks(t *ast.Term) (bytes, count int64) {
	look := func(t *ast.Term) {
		count++
		if list, ok := t.Value.(*ast.Array); ok && list.Len() > 0 {
			t = list.Elem(0)
		}
		bytes += length(t)
	}
	switch v := t.Value.(type) {
	case ast.String:
		return int64(len(v)), 1
	case ast.Object:
		v.Foreach(func(_, t *ast.Term) { look(t) })
	default:
		forEach(v, look)
	}
	return bytes, count
}

// mergedNetworks is the smallest set of networks. Each that is merged moves all behind it.
func mergedNetworks(o operands) need {
	bytes, count := networks(o.of[0])
	return need{memory: 512 + add(4*bytes, multiply(3*addressBytes, count)), steps: square(count, 32)}
}
