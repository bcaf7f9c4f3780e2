package bundles

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/admission-gateway/gateway/admission/rego/bundle"
	"github.com/admission-gateway/gateway/internal/memory"
	"github.com/admission-gateway/gateway/policies/modules"
)

// A Source is the location of a bundle and how to fetch it.
type Source struct {
	// From gets it.
	From Fetcher
	// Read returns how it is read. Keys may change.
	Read func() bundle.Options
	// MinDelay and MaxDelay are the least and the longest time between two questions. After an error
	// there is less time between them at first.
	MinDelay, MaxDelay time.Duration
	// Wait is how long a server may hold an answer back; 0: it is not asked to.
	Wait time.Duration
	// MaxStaleness is how old the bundle may be that policies judge by, since the server last said
	// that it is the newest; 0: as old as it gets.
	MaxStaleness time.Duration
	// Keep is the file that the last good version is kept in; empty: none is.
	Keep string
}

// Options configure Bundles.
type Options struct {
	// Sources are the bundles by their names.
	Sources map[string]Source
	// Activate brings a version into force. The error says why it cannot.
	Activate func(name string, b modules.Bundle) error
	// Failed counts what went wrong with a bundle, by stage.
	Failed func(name string, s Stage)
	// Log receives new versions and errors; nil discards it.
	Log *slog.Logger
	// Memory bounds what is taken to fetch and decode bundles; nil sets no bound.
	Memory *memory.Budget
	// Now is the clock; nil is the machine's.
	Now func() time.Time
}

// A Stage is the step at which a version of a bundle failed.
type Stage string

// The stages.
const (
	// Download failed: there is no whole answer.
	Download Stage = "Download"
	// Verify failed: the archive cannot be read, or is not signed as it must be.
	Verify Stage = "Verify"
	// Activate failed: the policies cannot be compiled with it.
	Activate Stage = "Activate"
	// Keep failed: it could not be written to disk, or not be read from there.
	Keep Stage = "Keep"
)

// A Status is how a bundle is.
type Status struct {
	Name     string
	Revision string
	// Activated is when the version came into force, Confirmed when it was last known to be the newest;
	// zero for neither.
	Activated, Confirmed time.Time
	// Failed is when something went wrong, since the bundle was last known to be the newest, Failure
	// what it was.
	Failed  time.Time
	Stage   Stage
	Failure string
}

// failure is an error with the stage that it came up at.
type failure struct {
	stage Stage
	err   error
}

func (f *failure) Error() string { return f.err.Error() }

func failed(s Stage, err error) error {
	if err == nil {
		return nil
	}
	return &failure{s, err}
}

// notLoaded is the failure of policies whose bundle is not there.
func notLoaded(name string) error { return fmt.Errorf("the bundle '%s' has not been loaded", name) }
