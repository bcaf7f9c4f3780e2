package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/state"
	"github.com/admission-gateway/gateway/internal/storage/kubernetes"
	"github.com/admission-gateway/gateway/internal/upstream"
)

const (
	// dialectTimeout bounds the wait for a version, maxVersion the answer in bytes.
	dialectTimeout = 3 * time.Second
	maxVersion     = 64 << 10
	// assumedPause is the time between two questions to a backend that gives no answer, and that the gateway
	// waits for to be ready; statedPause is that between two to any other.
	assumedPause = time.Second
	statedPause  = 30 * time.Second
)

// dialects asks backends that are named by a URL whether they are Kubernetes API servers. Without a
// configured dialect an API server would be served as a plain API, for which `/api` and `/apis` have
// no meaning.
type dialects struct {
	backends state.Backends
	log      *slog.Logger

	mu   sync.Mutex
	open []config.UpstreamSpec // have not answered yet
}

// newDialects returns the question to the upstreams of a configuration.
func newDialects(c *config.Configuration, backends state.Backends, log *slog.Logger) *dialects {
	d := &dialects{backends: backends, log: log}
	for _, u := range c.Upstreams {
		if u.Dialect == config.Plain {
			d.open = append(d.open, u)
		}
	}
	return d
}

// forget drops the backends for which is returns true.
func (d *dialects) forget(is func(u *config.UpstreamSpec) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(u config.UpstreamSpec) bool { return is(&u) })
}

// isOpen reports whether the backend of the name has not answered yet.
func (d *dialects) isOpen(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.open, func(u config.UpstreamSpec) bool { return u.Name == name })
}

// assumed returns the backends without a configured dialect that have not answered yet.
func (d *dialects) assumed() []config.UpstreamSpec {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.open), func(u config.UpstreamSpec) bool { return !u.AssumesDialect() })
}

// all returns the backends that have not answered yet.
func (d *dialects) all() []config.UpstreamSpec {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.open)
}

// ask asks backends. The error names each that contradicts the assumption.
func (d *dialects) ask(ctx context.Context, asked []config.UpstreamSpec) error {
	answers, wait := make([]dialectAnswer, len(asked)), sync.WaitGroup{}
	for i := range asked {
		wait.Go(func() { answers[i] = d.askOne(ctx, asked[i].Name) })
	}
	wait.Wait()
	var errs []error
	for i, u := range asked {
		switch answer := answers[i]; {
		case answer == noAnswer:
			continue
		case answer == ordinaryAnswer:
		case u.AssumesDialect():
			errs = append(errs, mistaken(&u))
		default:
			d.log.Warn("a Kubernetes API server answers where the configuration says `dialect: Plain`: its paths are not read as an API server reads them",
				"upstream", u.Name)
		}
		d.answered(u.Name)
	}
	return errors.Join(errs...)
}

// answered notes that a backend needs not be asked again.
func (d *dialects) answered(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(u config.UpstreamSpec) bool { return u.Name == name })
}

// mistaken returns the error for an API server without a configured dialect.
func mistaken(u *config.UpstreamSpec) error {
	where, line := "", "dialect: Kubernetes"
	if u.Name == config.DefaultUpstream {
		where = "--upstream: "
		line = "--dialect Kubernetes"
	}
	return fmt.Errorf("%sthe upstream '%s' (%s) is a Kubernetes API server, by its answer to GET /version, and nothing says its dialect: write `%s`, "+
		"or Plain if it is to be served as an ordinary API all the same", where, u.Name,
		strings.Join(u.Endpoints, ", "), line)
}

// A dialectAnswer says how a backend answers GET /version.
type dialectAnswer uint8

const (
	noAnswer dialectAnswer = iota
	ordinaryAnswer
	serversAnswer
)

func (d *dialects) askOne(ctx context.Context, name string) dialectAnswer {
	ctx, cancel := context.WithTimeout(ctx, dialectTimeout)
	defer cancel()
	answer, err := d.backends.Backend(name, "/version").Send(ctx,
		state.Request{Method: "GET", Target: "/version", Limit: maxVersion})
	var failed *upstream.Error
	switch {
	case errors.As(err, &failed) && failed.Kind == upstream.TooLarge:
		return ordinaryAnswer
	case err != nil, answer.Code == 429, answer.Code >= 502 && answer.Code <= 504:
		return noAnswer
	case kubernetes.IsVersion(answer.Code, answer.Body):
		return serversAnswer
	}
	return ordinaryAnswer
}

// decided returns why the gateway is not ready: a backend without a configured dialect has not
// answered yet.
func (d *dialects) decided() error {
	if open := d.assumed(); len(open) > 0 {
		return fmt.Errorf("the upstream '%s' has not answered yet whether it is a Kubernetes API server; `dialect` says it without a question", open[0].Name)
	}
	return nil
}

// run asks until every backend has answered. An error goes to failed.
func (d *dialects) run(ctx context.Context, failed chan<- error) {
	for pause := time.Duration(0); len(d.all()) > 0; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := d.ask(ctx, d.all()); err != nil {
			failed <- &failure{exitUsage, err}
			return
		}
		if pause = statedPause; len(d.assumed()) > 0 {
			pause = assumedPause
		}
	}
}
