package policies

import (
	"context"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/defaults"
	"github.com/admission-gateway/gateway/internal/cel"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/policies/finding"
)

// TestDemo runs the policies of `gateway demo` on objects.
func TestDemo(t *testing.T) {
	set, found := Load([]string{"library/demo"})
	if set == nil || len(found) > 0 {
		t.Fatal(found)
	}
	const queues, orders = "/apis/messaging.example.com/v1/namespaces/team-a/queues", "/v2/orders"
	tests := []struct{ name, target, in, want string }{
		{"a queue with its defaults", queues, `{"metadata":{"name":"invoices"},"spec":{"owner":"team-a","deadLetter":{"queueName":"failed"}}}`,
			`{"metadata":{"name":"invoices"},"spec":{"owner":"team-a","deadLetter":{"queueName":"failed","maxAttempts":5},"delivery":"Standard","maxMessageBytes":262144,"partitions":3,"retentionSeconds":86400}}`},
		{"a queue that breaks the schema", queues,
			`{"metadata":{"name":"invoices"},"spec":{"owner":"payments","partitions":65}}`,
			"spec.owner: Invalid value: \"payments\": must match the regular expression '^team-[a-z0-9-]+$'\nspec.partitions: Invalid value: 65: must be less than or equal to 64"},
		{"a queue that breaks rules", queues, `{"metadata":{"name":"invoices"},"spec":{"owner":"team-a","delivery":"Ordered","retentionSeconds":60,"deadLetter":{"queueName":"invoices"}}}`,
			"spec.deadLetter.queueName: Invalid value: must not be the queue itself\nspec.partitions: Invalid value: must be 1 where `delivery` is 'Ordered'\nspec.retentionSeconds: Invalid value: must be greater than or equal to 3600 where `deadLetter` is set"},
		{"a queue with too many partitions", queues,
			`{"metadata":{"name":"invoices"},"spec":{"owner":"team-a","partitions":20}}`,
			"ValidatingAdmissionPolicy 'partition-limit' with binding 'partition-limit' denied request: `spec.partitions` must be less than or equal to 16 outside the namespace 'platform'"},
		{"an order with its defaults", orders, `{"id":"o-1","customer":"team-a","lines":[{"sku":"a","unitPriceCents":150},{"sku":"b","quantity":2,"unitPriceCents":100}],"totalCents":350}`,
			`{"id":"o-1","customer":"team-a","lines":[{"sku":"a","unitPriceCents":150,"quantity":1},{"sku":"b","quantity":2,"unitPriceCents":100}],"totalCents":350,"currency":"EUR","priority":"Standard"}`},
		{"an order that breaks the schema", orders, `{"id":"o-1","currency":"GBP","lines":[{"sku":"a","unitPriceCents":1},{"sku":"a","unitPriceCents":1}]}`,
			"customer: Required value\ncurrency: Unsupported value: \"GBP\": supported values: \"EUR\", \"USD\"\nlines[1]: Duplicate value: {\"sku\":\"a\"}\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"},
		{"an order with a wrong sum", orders, `{"id":"o-1","customer":"team-a","lines":[{"sku":"a","unitPriceCents":150}],"totalCents":100}`,
			"totalCents: Invalid value: must be the sum of the `lines`"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			info, r := resolve(t, set, "POST", test.target)
			d, err := document.Parse([]byte(test.in), document.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Release()
			frame := cel.NewFrame(context.Background())
			defer frame.Release()
			defaults.Apply(d, set.Schema(r))
			var lines []string
			result := set.Schema(r).Validate(frame, d.Root(), document.Node{})
			for _, err := range result.Errors {
				lines = append(lines, err.Field+": "+finding.BodyOf(err))
			}
			if result.Valid() {
				var report admission.Report
				a := &admission.Attributes{Info: &info, Resource: r, Operation: admission.Create, Object: d,
					Frame: frame}
				set.Admission().Validate(context.Background(), a, &report)
				for _, denial := range report.Denials() {
					lines = append(lines, denial.Cause.Message)
				}
			}
			got := strings.Join(lines, "\n")
			if got == "" {
				got = string(d.AppendTo(nil))
			}
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func BenchmarkLoadDemo(b *testing.B) {
	for b.Loop() {
		if set, found := Load([]string{"library/demo"}); set == nil {
			b.Fatal(found)
		}
	}
}
