package ratelimit

import (
	"fmt"
	"strconv"
	"time"

	"github.com/admission-gateway/gateway/internal/quote"
)

// Message says to the client which limit it hit.
func (d Decision) Message() string {
	if d.Unavailable {
		return d.unavailable()
	}
	return fmt.Sprintf("%s: try again after %s", d.Charge.terms(), quote.Count(d.RetryAfter, "second"))
}

// InFlightMessage says to the client which bound on requests in flight it hit.
func (c *Charge) InFlightMessage(retryAfter int) string {
	return fmt.Sprintf("%s: try again after %s", c.inFlightTerms(), quote.Count(retryAfter, "second"))
}

// Warning says to the client which limit it would have hit, were it enforced.
func (c *Charge) Warning() string {
	terms := c.terms
	if c.Wait == 0 {
		terms = c.inFlightTerms
	}
	return terms() + ": this request will be refused once it is enforced"
}

// inFlightTerms is the bound on requests in flight in words.
func (c *Charge) inFlightTerms() string {
	n, of := c.Rule.InFlight.PerKey, scope(c.Rule)
	if c.Slot == AllSlotsTaken {
		n, of = c.Rule.InFlight.Total, "in all"
	}
	return fmt.Sprintf("the rate limit '%s' allows %s at a time %s", c.Rule.Name, quote.Count(n, "request"), of)
}

// terms are the limit in words.
func (c *Charge) terms() string {
	r := c.Rule
	terms := fmt.Sprintf("the rate limit '%s' allows %s in %s %s", r.Name, quote.Count(r.Requests, "request"),
		quote.Count(int(r.Period/time.Second), "second"), scope(r))
	if c.Cost > 1 {
		terms += fmt.Sprintf(", of which this request takes %d", c.Cost)
	}
	return terms
}

func scope(r *Rule) string {
	switch r.Key {
	case User:
		return "for each user"
	case ClientAddress:
		return "for each client address"
	case Header:
		return fmt.Sprintf("for each value of the header '%s'", r.HeaderName)
	case Namespace:
		return "for each namespace"
	case Resource:
		return "for each resource"
	case Expression:
		return "for each key"
	}
	return "in all"
}

// AppendPolicy appends the value of the header RateLimit-Policy, as the IETF's draft has it: of
// each limit over time its name, how many requests it allows (q) and in how many seconds (w). It
// appends nothing if there are none to show.
func (c *Charges) AppendPolicy(b []byte) []byte {
	from := len(b)
	for i := range c.list {
		if charge := &c.list[i]; charge.shown() {
			b = append(separated(b, from), charge.rule.policy...)
		}
	}
	return b
}

// AppendState appends the value of the header RateLimit: of each limit how many requests of cost 1 are left (r), and in
// how many seconds (t) all are there again. In a refusal, whose RetryAfter is given, no time is later than that.
func (c *Charges) AppendState(b []byte, retryAfter int) []byte {
	from := len(b)
	for i := range c.list {
		charge := &c.list[i]
		if !charge.shown() {
			continue
		}
		p := charge.rule.pace
		left := max(p.tolerance+p.interval-charge.Debt, 0) / p.interval
		whole := (charge.Debt + int64(time.Second) - 1) / int64(time.Second)
		if retryAfter > 0 {
			whole = min(whole, int64(retryAfter))
		}
		b = append(append(separated(b, from), charge.rule.quoted...), ";r="...)
		b = append(strconv.AppendInt(b, left, 10), ";t="...)
		b = strconv.AppendInt(b, whole, 10)
	}
	return b
}

func (c *Charge) shown() bool { return c.Paced() && !c.Rule.Quiet && c.by != byNobody }

func separated(b []byte, from int) []byte {
	if len(b) > from {
		b = append(b, ", "...)
	}
	return b
}

// unavailable says to the client which limit cannot be counted.
func (d Decision) unavailable() string {
	return fmt.Sprintf("the rate limit '%s' cannot be counted, because the store that gateways share is unavailable: try again after %s",
		d.Charge.Rule.Name, quote.Count(d.RetryAfter, "second"))
}
