package conventions

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/status"
)

// conditions checks status.conditions: a list of objects with different types, each of the standard form (STAT-4).
func (c *checker) conditions(list document.Node) {
	switch list.Kind() {
	case document.Null:
		return
	case document.Array:
	default:
		c.found(Conditions, list, status.Type(c.path(list), list.Kind().String(), "array"))
		return
	}
	types := make(map[string]struct{}, list.Len())
	for condition := list.First(); condition.Valid(); condition = condition.Next() {
		if condition.Kind() != document.Object {
			c.found(Conditions, condition, status.Type(c.path(condition), condition.Kind().String(), "object"))
			continue
		}
		c.condition(condition)
		kind, found := condition.Get("type")
		if !found || kind.Kind() != document.String {
			continue
		}
		if _, twice := types[kind.Str()]; twice {
			c.found(Conditions, condition, status.Duplicate(c.path(condition), map[string]any{"type": shown(kind)}))
		}
		types[kind.Str()] = struct{}{}
	}
}

// condition checks the members of one condition.
func (c *checker) condition(condition document.Node) {
	if v, ok := c.text(condition, "type"); ok && !isConditionType(v.Str()) {
		c.found(Conditions, v, c.invalid(v, "must be in PascalCase, such as 'Ready', or have a domain in front of that, such as 'example.com/Ready'"))
	}
	if v, ok := c.text(condition, "status"); ok && !v.Is("True") && !v.Is("False") && !v.Is("Unknown") {
		c.found(Conditions, v, status.Enum(c.path(v), shown(v), []string{"False", "True", "Unknown"}))
	}
	if v, ok := c.text(condition, "reason"); ok && !isCamelCase(v.Str()) {
		c.found(Conditions, v, c.invalid(v, "must be in CamelCase, such as 'MinimumReplicasAvailable', and must not be empty"))
	}
	if v, ok := c.text(condition, "lastTransitionTime"); ok && !isRFC3339(v.Str()) {
		c.found(Conditions, v, c.invalid(v, "must be a date of RFC 3339, such as '2006-01-02T15:04:05Z'"))
	}
	c.text(condition, "message")
}

// text is a member of a condition, which must be a string.
func (c *checker) text(condition document.Node, key string) (v document.Node, ok bool) {
	v, found := condition.Get(key)
	switch {
	case !found || v.Kind() == document.Null:
		c.found(Conditions, condition, status.Required(c.path(condition)+"."+key, "must be set in every condition"))
		return v, false
	case v.Kind() != document.String:
		c.found(Conditions, v, status.Type(c.path(v), v.Kind().String(), "string"))
		return v, false
	}
	return v, true
}

// isConditionType reports whether a name is in PascalCase, with or without a domain.
func isConditionType(s string) bool {
	if domain, name, found := strings.Cut(s, "/"); found {
		return len(validation.IsDNS1123Subdomain(domain)) == 0 && isCamelCase(name)
	}
	return isCamelCase(s)
}

// isCamelCase reports whether a word has only letters and digits and begins with a capital letter.
func isCamelCase(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('A' <= c && c <= 'Z') && (i == 0 || !('a' <= c && c <= 'z') && !('0' <= c && c <= '9')) {
			return false
		}
	}
	return s != ""
}
