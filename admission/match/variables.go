package match

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateVariables checks the variables of a policy, but for what their
// expressions say. As on an API server two of them may have one name.
func ValidateVariables(variables []admissionv1.Variable, fldPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range variables {
		name := fldPath.Index(i).Child("name")
		switch {
		case v.Name == "":
			errs = append(errs, field.Required(name, "name is not specified"))
		case !isIdentifier(v.Name):
			errs = append(errs, field.Invalid(name, v.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(v.Expression) == "" {
			errs = append(errs, field.Required(fldPath.Index(i).Child("expression"), "expression is not specified"))
		}
	}
	return errs
}

// reserved are the words that CEL's grammar reserves.
var reserved = sets.New("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
	"if",
	"import", "let", "loop", "package", "namespace", "return", "var", "void", "while")

// isIdentifier reports whether the text is an identifier of CEL: [_a-zA-Z][_a-zA-Z0-9]*, and no
// reserved word.
func isIdentifier(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return false
	}
	return s != "" && !reserved.Has(s)
}
