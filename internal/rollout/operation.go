package rollout

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxOperations bounds the operations of a document that are counted by themselves.
	maxOperations = 4096
	// maxExamples bounds the kinds of refusals of an operation that are kept apart.
	maxExamples = 8
	// maxFields bounds the fields of an example, and maxField the length of each.
	maxFields, maxField = 8, 128
)

// An Operation says what a document that is only tried would have done to requests of one operation.
type Operation struct {
	// Method and Path are the operation's; the path is a template.
	Method, Path string
	// Name is both.
	Name string

	tried, would, unjudged atomic.Int64

	mu       sync.Mutex
	examples []Example
}

// An Example is a kind of refusal. It has no value that a client sent.
type Example struct {
	// Code and Reason are of the refusal.
	Code   int
	Reason string
	// Fields are the fields that are wrong, without their values.
	Fields []string
	// Count is how many requests would have been refused so, and Last when the last one came.
	Count int64
	Last  time.Time
}

// A Refusal is why a request would have been refused.
type Refusal struct {
	Code   int
	Reason string
	Fields []string
}

// Admit counts a request that would have been admitted.
func (o *Operation) Admit() { o.tried.Add(1) }

// Skip counts a request that could not be judged.
func (o *Operation) Skip() {
	o.unjudged.Add(1)
	o.tried.Add(1)
}

// Refuse counts a request that would have been refused.
func (o *Operation) Refuse(r *Refusal, at time.Time) {
	o.tried.Add(1)
	o.would.Add(1)
	var fields []string
	for _, f := range r.Fields[:min(len(r.Fields), maxFields)] {
		if len(f) > maxField {
			f = strings.ToValidUTF8(f[:maxField], "") + "..."
		}
		fields = append(fields, strings.Clone(f))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.examples {
		if e := &o.examples[i]; e.Code == r.Code && e.Reason == r.Reason && slices.Equal(e.Fields, fields) {
			e.Count, e.Last = e.Count+1, at
			return
		}
	}
	one := Example{Code: r.Code, Reason: strings.Clone(r.Reason), Fields: fields, Count: 1, Last: at}
	if len(o.examples) < maxExamples {
		o.examples = append(o.examples, one)
		return
	}
	// The rarest and oldest one gives way, so that the frequent ones stay.
	rarest := slices.IndexFunc(o.examples, func(e Example) bool {
		return !slices.ContainsFunc(o.examples, func(other Example) bool {
			return cmp.Or(cmp.Compare(other.Count, e.Count), other.Last.Compare(e.Last)) < 0
		})
	})
	o.examples[rarest] = one
}

// OperationNumbers are the numbers of an operation: Would of Tried requests would have been refused, and Unjudged could
// not be judged.
type OperationNumbers struct {
	Method, Path           string
	Would, Tried, Unjudged int64
	Examples               []Example // the most frequent first
}

// numbers returns what was counted.
func (o *Operation) numbers() OperationNumbers {
	n := OperationNumbers{Method: o.Method, Path: o.Path, Would: o.would.Load(), Unjudged: o.unjudged.Load()}
	n.Tried = o.tried.Load() // last: it is never the smaller number
	o.mu.Lock()
	n.Examples = slices.Clone(o.examples)
	o.mu.Unlock()
	slices.SortFunc(n.Examples,
		func(a, b Example) int { return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last)) })
	return n
}

// Operation returns the count of an operation. Beyond a bound all others share one.
func (c *Count) Operation(method, path string) *Operation {
	key := [2]string{method, path}
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.operations[key]
	if o != nil {
		return o
	}
	if len(c.operations) >= maxOperations {
		key = [2]string{"other", ""}
		if o = c.operations[key]; o != nil {
			return o
		}
	}
	if c.operations == nil {
		c.operations = map[[2]string]*Operation{}
	}
	o = &Operation{Method: strings.Clone(key[0]), Path: strings.Clone(key[1]),
		Name: strings.TrimSpace(key[0] + " " + key[1])}
	c.operations[[2]string{o.Method, o.Path}] = o
	return o
}

// Operations returns the numbers of the operations for which there was a request: the ones of which most requests would
// have been refused first.
func (c *Count) Operations() []OperationNumbers {
	c.mu.Lock()
	all := make([]*Operation, 0, len(c.operations))
	for _, o := range c.operations {
		all = append(all, o)
	}
	c.mu.Unlock()
	var numbers []OperationNumbers
	for _, o := range all {
		if n := o.numbers(); n.Tried > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b OperationNumbers) int {
		return cmp.Or(cmp.Compare(b.Would, a.Would), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return numbers
}
