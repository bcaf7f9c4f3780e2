package scan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/proxy"
)

// Compile compiles policy files as the gateway does. Tests among them are left out.
func Compile(paths []string, gateway *policies.Gateway) (*policies.Set, error) {
	set, found := policytest.Compile(paths, gateway)
	if set != nil && !finding.HasErrors(found) {
		return set, nil
	}
	var lines []string
	for _, f := range found {
		if f.Severity == finding.Error {
			lines = append(lines, f.Text())
		}
	}
	return nil, usage("the policy files have errors:\n%s", strings.Join(lines, "\n"))
}

// Offline returns a gateway without a backend: collections that policies read are empty, and every namespace exists.
func Offline(set *policies.Set) (_ *Side, end func(), err error) {
	o, err := policytest.NewOffline(set, policytest.Service{})
	if err != nil {
		return nil, nil, err
	}
	return &Side{Set: set, Gateway: o.Gateway()}, o.Close, nil
}

// syncTimeout is how long a scan waits for the collections that policies read.
const syncTimeout = 30 * time.Second

// Before returns a gateway in front of the backends of a configuration, which it asks for what
// policies refer to.
func Before(ctx context.Context, set *policies.Set, c *config.Configuration) (_ *Side, end func(), err error) {
	metrics, err := telemetry.New(telemetry.Options{Version: "scan"})
	if err != nil {
		return nil, nil, err
	}
	states, err := state.NewManager(state.Options{})
	if err != nil {
		return nil, nil, err
	}
	states.Apply(set.States())
	g, err := proxy.New(proxy.Options{
		Config: c, Policies: func() *policies.Set { return set }, Limiter: ratelimit.New(0), States: states,
		Metrics: metrics,
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		states.Close()
		return nil, nil, UsageError{Err: err}
	}
	end = func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()             // no request is in progress
		_ = g.Shutdown(over) // which is why it has nothing to wait for
		states.Close()
	}
	if err := synced(ctx, states); err != nil {
		end()
		return nil, nil, err
	}
	return &Side{Set: set, Gateway: g}, end, nil
}

// synced waits until the collections that policies read are known.
func synced(ctx context.Context, states *state.Manager) (err error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	for {
		if err = states.Synced(); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the collections of the policies are not read: %w", errors.Join(err, context.Cause(ctx)))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// UpstreamOf returns the upstream whose objects are read: the one of the name, or the only one of the configuration.
// Without a configuration there is the one of a gateway without a backend.
func UpstreamOf(c *config.Configuration, name string) (string, error) {
	if c == nil {
		return config.DefaultUpstream, nil
	}
	names := make([]string, len(c.Upstreams))
	for i := range c.Upstreams {
		if names[i] = c.Upstreams[i].Name; names[i] == name || name == "" && len(c.Upstreams) == 1 {
			return names[i], nil
		}
	}
	return "", usage("--upstream: must be one of the upstreams of the configuration: '%s'", strings.Join(names, "', '"))
}
