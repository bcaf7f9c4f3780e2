package status

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// VAL-3: the whole text of each message.
func TestWording(t *testing.T) {
	tests := []struct {
		err  *field.Error
		want string
	}{
		{Minimum("spec.size", int64(0), 1, false), `spec.size: Invalid value: 0: must be greater than or equal to 1`},
		{Minimum("spec.size", 0.5, 0.5, true), `spec.size: Invalid value: 0.5: must be greater than 0.5`},
		{Maximum("spec.size", int64(300), 256, false),
			`spec.size: Invalid value: 300: must be less than or equal to 256`},
		{Maximum("spec.size", int64(256), 256, true), `spec.size: Invalid value: 256: must be less than 256`},
		{Maximum("spec.size", int64(1), 1e15, true), `spec.size: Invalid value: 1: must be less than 1000000000000000`},
		{Range("spec.size", int64(1<<40), -1<<31, 1<<31-1), `spec.size: Invalid value: 1099511627776: must be between -2147483648 and 2147483647, inclusive`},
		{MultipleOf("spec.ratio", 0.3, 0.5), `spec.ratio: Invalid value: 0.3: must be a multiple of 0.5`},
		{MinLength("spec.color", "", 1), `spec.color: Too short: must be at least 1 character`},
		{MaxLength("spec.color", 8), `spec.color: Too long: must be at most 8 characters`},
		{MinItems("spec.tags", 0, 1), `spec.tags: Too few: 0: must have at least 1 item`},
		{MaxItems("spec.tags", 5, 4), `spec.tags: Too many: 5: must have at most 4 items`},
		{MinProperties("spec.labels", 0, 1), `spec.labels: Too few: 0: must have at least 1 property`},
		{MaxProperties("spec.labels", 4, 3), `spec.labels: Too many: 4: must have at most 3 properties`},
		{Pattern("spec.color", "Red", "^[a-z]+$"),
			`spec.color: Invalid value: "Red": must match the regular expression '^[a-z]+$'`},
		{Format("spec.data", "%", "byte"), `spec.data: Invalid value: "%": must be base64 (RFC 4648), with padding`},
		{Format("spec.when", "yesterday", "date-time"),
			`spec.when: Invalid value: "yesterday": must be a valid 'date-time'`},
		{Enum("spec.mode", "ajar", []string{"open", "locked"}),
			`spec.mode: Unsupported value: "ajar": supported values: "open", "locked"`},
		{Enum("spec.mode", "ajar", nil), `spec.mode: Unsupported value: "ajar"`},
		{Type("spec.size", "string", "integer"), `spec.size: Invalid value: "string": must be of type integer`},
		{Type("spec.port", "boolean", "integer", "string"),
			`spec.port: Invalid value: "boolean": must be of type integer or string`},
		{Required("spec.size", ""), `spec.size: Required value`},
		{Required("metadata.name", "name or generateName is required"),
			`metadata.name: Required value: name or generateName is required`},
		{Duplicate("spec.tags[2]", "a"), `spec.tags[2]: Duplicate value: "a"`},
		{Immutable("spec.owner", "bob"), `spec.owner: Invalid value: "bob": field is immutable`},
		{AnyOf("spec", nil), `spec: Invalid value: null: must match at least one of the alternatives in 'anyOf'`},
		{OneOf("spec", nil), `spec: Invalid value: null: must match exactly one of the alternatives in 'oneOf'`},
		{Not("spec", nil), `spec: Invalid value: null: must not match the schema in 'not'`},
	}
	forbidden := regexp.MustCompile(`(?i)\bshould|\b(larger|bigger|more|higher|smaller|fewer|lower) than|[<>]|\bcan(no|')t\b`)
	for _, tt := range tests {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if bad := forbidden.FindString(tt.err.Detail); bad != "" {
			t.Errorf("%q has %q in it", tt.err.Detail, bad)
		}
	}
}

// VAL-3: if Kubernetes' native validation conforms, its text is ours.
func TestWordingAgainstKubernetes(t *testing.T) {
	path := field.NewPath("spec", "size")
	tests := []struct{ got, want string }{
		{Minimum("spec.size", int64(0), 3, false).Detail, content.MinError(3)},
		{Maximum("spec.size", int64(9), 3, false).Detail, content.MaxError(3)},
		{Range("spec.size", int64(0), 1, 65535).Detail, validation.InclusiveRangeError(1, 65535)},
		{MinLength("spec.size", "a", 3).Error(), field.TooShort(path, "a", 3).Error()},
		{MinLength("spec.size", "", 1).Error(), field.TooShort(path, "", 1).Error()},
		{MaxItems("spec.size", 5, 3).Error(), field.TooMany(path, 5, 3).Error()},
		{MaxItems("spec.size", 2, 1).Error(), field.TooMany(path, 2, 1).Error()},
		{Enum("spec.size", "c", []string{"a", `b"`}).Error(),
			field.NotSupported(path, "c", []string{"a", `b"`}).Error()},
		{Required("spec.size", "x").Error(), field.Required(path, "x").Error()},
		{Duplicate("spec.size", "x").Error(), field.Duplicate(path, "x").Error()},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %s, Kubernetes says %s", tt.got, tt.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{0: "0", -1: "-1", 256: "256", 1e15: "1000000000000000", 0.5: "0.5",
		1e300: "1e+300", 1.0 / 3: "0.3333333333333333"} {
		if got := Number(f); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
}
