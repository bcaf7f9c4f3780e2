package cases

import (
	"regexp"
	"strings"
)

// maskNames finds the masks that recorded strings carry in place of what differs from run to run.
var maskNames = regexp.MustCompile(`\$(?:NOW|RV|UID|RANDOM)\b`)

// maskPattern returns the pattern of what may stand in a mask's place.
func maskPattern(name string) string {
	switch name {
	case "$NOW":
		return `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`
	case "$RV":
		return `[0-9A-Za-z_.-]+`
	case "$UID":
		return `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	case "$RANDOM":
		return `[bcdfghjklmnpqrstvwxz2456789]{5}`
	}
	panic("no mask is named " + name)
}

// matches reports whether got equals the recorded string, masks taken into account.
func matches(recorded, got string) bool {
	if recorded == got {
		return true
	}
	found := maskNames.FindAllStringIndex(recorded, -1)
	if found == nil {
		return false
	}
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	last := 0
	for _, at := range found {
		pattern.WriteString(regexp.QuoteMeta(recorded[last:at[0]]))
		pattern.WriteString(maskPattern(recorded[at[0]:at[1]]))
		last = at[1]
	}
	pattern.WriteString(regexp.QuoteMeta(recorded[last:]))
	pattern.WriteString(`\z`)
	return regexp.MustCompile(pattern.String()).MatchString(got)
}
