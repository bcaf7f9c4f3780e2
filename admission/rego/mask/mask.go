// Package mask decides what decision logs show, by the rules data.system.log.mask and
// data.system.log.drop, as Open Policy Agent has them. The rules see an event as their input.
package mask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/admission-gateway/gateway/admission/decisions"
	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/document"
)

// The rules.
const (
	maskRule = "data.system.log.mask"
	dropRule = "data.system.log.drop"
)

// Rules are compiled rules. They are immutable and safe for concurrent use.
type Rules struct {
	mask, drop *rego.Query // nil for a missing rule
	usable     func() error
}

// Compile compiles the rules of a bundle. usable returns why they must not be used now; nil: they always
// may.
func Compile(b *bundle.Bundle, usable func() error) (*Rules, error) {
	program, err := rego.Compile(rego.Options{Data: b.Data()}, b.Modules()...)
	if err != nil {
		return nil, err
	}
	r := &Rules{usable: usable}
	for name, to := range map[string]**rego.Query{maskRule: &r.mask, dropRule: &r.drop} {
		if !program.Has(name) {
			continue
		}
		if *to, err = program.Query(name); err != nil {
			return nil, err
		}
	}
	if r.mask == nil && r.drop == nil {
		return nil, fmt.Errorf("no module defines %s or %s, which decision logs need", maskRule, dropRule)
	}
	return r, nil
}

// A Filter masks events by the rules in force. It is safe for concurrent use.
type Filter struct{ rules atomic.Pointer[Rules] }

// Set brings rules into force.
func (f *Filter) Set(r *Rules) { f.rules.Store(r) }

// Apply implements decisions.Filter.
func (f *Filter) Apply(ctx context.Context, event []byte) ([]byte, error) {
	r := f.rules.Load()
	if r == nil {
		return nil, decisions.ErrNotReady
	}
	if r.usable != nil {
		if err := r.usable(); err != nil {
			return nil, fmt.Errorf("%w: %w", decisions.ErrNotReady, err)
		}
	}
	return r.apply(ctx, event)
}

// The bounds of events. What they hold was bounded before.
const (
	maxNodes = 4 << 20
	maxDepth = 10_100
)

func (r *Rules) apply(ctx context.Context, event []byte) ([]byte, error) {
	d, err := document.Parse(event, document.Limits{Bytes: len(event), Depth: maxDepth, Nodes: maxNodes})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	root, err := rego.ValueOf(d.Root())
	if err != nil {
		return nil, err
	}
	in := &rego.Input{Root: root}
	if isDropped, err := r.drops(ctx, in); isDropped || err != nil {
		return nil, err
	}
	if r.mask == nil {
		return event, nil
	}
	value, err := r.mask.Value(ctx, in)
	if errors.Is(err, rego.ErrUndefined) {
		return event, nil
	}
	if err != nil {
		return nil, err
	}
	steps, err := stepsOf(value)
	if err != nil {
		return nil, err
	}
	return masked(event, steps)
}

// drops reports whether the event is not logged. As with OPA only true drops it.
func (r *Rules) drops(ctx context.Context, in *rego.Input) (bool, error) {
	if r.drop == nil {
		return false, nil
	}
	value, err := r.drop.Value(ctx, in)
	if errors.Is(err, rego.ErrUndefined) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, err := value.AppendJSON(nil)
	return string(text) == "true", err
}

// masked returns the event after steps.
func masked(event []byte, steps []step) ([]byte, error) {
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(event))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		return nil, err
	}
	for _, s := range steps {
		s.take(members)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
