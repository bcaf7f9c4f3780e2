package scan

import (
	"strings"

	"github.com/admission-gateway/gateway/internal/document"
)

// A group is a further key by which objects are counted, beside policies and resources. The zero
// group counts by nothing.
type group struct {
	byNamespace bool
	label       string
}

func parseGroup(text string) (g group, err error) {
	switch label, isLabel := strings.CutPrefix(text, "label="); {
	case text == "":
	case text == "namespace":
		g.byNamespace = true
	case isLabel && label != "":
		g.label = label
	default:
		return g, usage("--group-by: must be 'namespace' or 'label=KEY', not '%s'", text)
	}
	return g, nil
}

func (g *group) isSet() bool { return g.byNamespace || g.label != "" }

// unlabelled is the group of objects without the label.
const unlabelled = "(none)"

// of returns the group of an object by its label. It must come before the object is judged.
func (g *group) of(t *trial) string {
	if g.label == "" {
		return ""
	}
	d := t.object
	if d == nil {
		parsed, err := document.Parse(t.body, document.Limits{})
		if err != nil {
			return unlabelled
		}
		defer parsed.Release()
		d = parsed
	}
	metadata, _ := d.Root().Get("metadata")
	labels, _ := metadata.Get("labels")
	if value := textIn(labels, g.label); value != "" {
		return strings.Clone(clipName(value))
	}
	return unlabelled
}

// maxName is how long the name of a group may be, in bytes.
const maxName = 63

func clipName(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	return s
}
