package pattern

import "testing"

// BenchmarkMatch compares the table with package regexp, for strings as objects have them.
func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct{ name, pattern, text string }{
		{"label", `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, "payments-backend-7d9c"},
		{"host", `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
			"checkout.payments.example.com"},
		{"duration", `^([0-9]{1,5}(h|m|s|ms)){1,4}$`, "1h30m"},
		{"path", `^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$`, "/v1/orders/7f3a"},
	} {
		p, err := New(c.pattern)
		if err != nil || p.table == nil || !p.Match(c.text) {
			b.Fatal(c.name, p, err)
		}
		for _, way := range []struct {
			name  string
			match func(string) bool
		}{{"table", p.Match}, {"regexp", p.regexp.MatchString}} {
			b.Run(c.name+"/"+way.name, func(b *testing.B) {
				for b.Loop() {
					way.match(c.text)
				}
			})
		}
	}
}
