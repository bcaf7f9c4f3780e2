package wording

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admission-gateway/gateway/internal/status"
)

// AnyOf says that a value matches no alternative. If each of them demands one member and nothing else, members are
// their names, and the failure names them; else there are none.
func AnyOf(path *field.Path, members []string) *field.Error {
	if members != nil {
		return field.Invalid(path, Omitted, "must have at least one of "+Among(members))
	}
	return status.AnyOf(text(path), Omitted)
}

// OneOf says that a value matches no alternative, or several. For the members see [AnyOf].
func OneOf(path *field.Path, matching int, members []string) *field.Error {
	err, verb := status.OneOf(text(path), Omitted), "matches"
	if members != nil {
		err.Detail, verb = "must have exactly one of "+Among(members), "has"
	}
	count := "none"
	if matching > 0 {
		count = strconv.Itoa(matching)
	}
	err.Detail += ", and " + verb + " " + count
	return err
}

// Among writes names as a sentence does: `a`, `b` and `c`.
func Among(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + Clip(name) + "`"
	}
	last := len(quoted) - 1
	if last < 1 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}
