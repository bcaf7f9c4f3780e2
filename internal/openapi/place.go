package openapi

import (
	"strconv"
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// Place is the location of a value of a document, as findings write it. Unlike the paths of
// messages to clients it is never cut: it leads to a line of a file.
func Place(n document.Node) string {
	var steps []string
	for parent := n.Parent(); parent.Valid(); n, parent = parent, parent.Parent() {
		if parent.Kind() == document.Array {
			i := 0
			for m := parent.First(); m != n; m = m.Next() {
				i++
			}
			steps = append(steps, "["+strconv.Itoa(i)+"]")
			continue
		}
		key := n.Key()
		if key == "" || strings.ContainsAny(key, ".[]/ \t\n") {
			steps = append(steps, "["+key+"]")
		} else {
			steps = append(steps, "."+key)
		}
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
	}
	path := strings.TrimPrefix(b.String(), ".")
	if _, converted := n.Get(swaggerKey); converted {
		return inSwagger(path)
	}
	return path
}
