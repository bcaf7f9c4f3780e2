package lint

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admission-gateway/gateway/internal/reword"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// Fix mends in a file what can be mended without a decision: messages of rules, and lists without a type, which become
// atomic as they are treated already. It returns the file and how many findings it mended; everything else of the
// file stays as it is.
func Fix(f source.File, found []finding.Finding) (data []byte, fixed int) {
	lines := strings.Split(string(f.Data), "\n")
	// From the last line to the first, so that lines which are added move no other place.
	about := slices.Clone(found)
	slices.SortStableFunc(about, func(a, b finding.Finding) int {
		return cmp.Or(b.Line-a.Line, cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.File, b.File))
	})
	// What stands behind an alias is found once for each place that it is read at, and mended once.
	about = slices.CompactFunc(about, func(a, b finding.Finding) bool {
		return a.Line == b.Line && a.Rule == b.Rule &&
			a.File == b.File
	})
	for _, one := range about {
		if one.File != f.Name || one.Line < 1 || one.Line > len(lines) {
			continue
		}
		var ok bool
		switch one.Rule {
		case messageWording.id:
			ok = replaceMessage(lines, one.Line-1)
		case listTypes.id:
			lines, ok = typeList(lines, one.Line-1)
		}
		if ok {
			fixed++
		}
	}
	return []byte(strings.Join(lines, "\n")), fixed
}

// replaceMessage replaces the message that a line has by the one that is proposed. A message that goes on in the next
// line, or stands there with other members, is left alone.
func replaceMessage(lines []string, at int) bool {
	line := lines[at]
	start := strings.Index(line, "message:")
	if start < 0 || strings.Contains(line[:start], "{") || goesOn(lines[at+1:], indentOf(line)) {
		return false
	}
	start += len("message:")
	var message yaml.Node
	if yaml.Unmarshal([]byte(line[start:]), &message) != nil || len(message.Content) != 1 {
		return false
	}
	value := message.Content[0]
	isInLine := value.Kind == yaml.ScalarNode &&
		value.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0 &&
		value.Anchor == "" && value.LineComment == "" && !strings.HasSuffix(value.Value, "}") &&
		!strings.HasSuffix(value.Value, ",")
	if !isInLine {
		return false
	}
	better, problems := reword.Message(value.Value)
	if len(problems) == 0 {
		return false
	}
	lines[at] = line[:start] + " " + strconv.Quote(better)
	return true
}

// keyOfMember matches a line that begins a member of an object.
var keyOfMember = regexp.MustCompile(`:(?: |$)`)

// goesOn reports whether the value of a member goes on in the lines behind it, which are deeper than its key.
func goesOn(lines []string, indent int) bool {
	for _, line := range lines {
		if text := strings.TrimSpace(line); text != "" {
			return indentOf(line) > indent && text[0] != '#' && !keyOfMember.MatchString(text)
		}
	}
	return false
}

// typeList adds the type to a list whose schema begins in a line.
func typeList(lines []string, at int) ([]string, bool) {
	const flow, block = "type: array", "x-kubernetes-list-type: atomic"
	if strings.Count(lines[at], flow) == 1 && strings.Contains(lines[at], "{") {
		lines[at] = strings.Replace(lines[at], flow, flow+", "+block, 1)
		return lines, true
	}
	indent := indentOf(lines[at])
	for i := at + 1; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		switch deeper := indentOf(lines[i]); {
		case text == "" || strings.HasPrefix(text, "#"):
			continue
		case deeper <= indent:
			return lines, false
		case text == flow && isOwn(lines[at+1:i], deeper):
			return slices.Insert(lines, i+1, strings.Repeat(" ", deeper)+block), true
		}
	}
	return lines, false
}

// isOwn reports whether no line before is less deep: what follows is of the same mapping.
func isOwn(before []string, indent int) bool {
	return !slices.ContainsFunc(before,
		func(l string) bool { return strings.TrimSpace(l) != "" && indentOf(l) < indent })
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
