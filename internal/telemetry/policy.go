package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// policyState describes the active policy set and the attempts to replace it.
type policyState struct {
	succeeded, failed atomic.Int64
	overdue           atomic.Bool
	active            atomic.Pointer[activePolicies]
	stages            atomic.Pointer[[]PolicyStage]
	folders           atomic.Pointer[[]PolicyFolder]
}

// A PolicyFolder is how the policy files of an owner are.
type PolicyFolder struct {
	Name, Owner string
	// Hash is of the files in force; "" if none are.
	Hash string
	// FailingSince is since when newer files are refused; zero while they are not.
	FailingSince time.Time
}

// A PolicyStage says how long a stage of a load of the policy files took.
type PolicyStage struct {
	Name string
	Took time.Duration
}

type activePolicies struct {
	generation int64
	hash       string
	read       time.Time
}

// PoliciesLoaded records that the policy files were read at the given time, and that the set of the given generation
// and content hash is in force: newly, or still if the files say the same.
func (t *Telemetry) PoliciesLoaded(generation int64, hash string, at time.Time) {
	t.policy.active.Store(&activePolicies{generation: generation, hash: hash, read: at})
	t.policy.overdue.Store(false)
	t.policy.succeeded.Add(1)
}

// PoliciesCompiled records how long the stages of a load of the policy files took, whether the set comes into force or
// not.
func (t *Telemetry) PoliciesCompiled(stages []PolicyStage) { t.policy.stages.Store(&stages) }

// PolicyFolders records how the folders with owners are.
func (t *Telemetry) PolicyFolders(folders []PolicyFolder) { t.policy.folders.Store(&folders) }

// PoliciesActivated records that the set of the given generation and content hash is in force because
// a bundle changed, and not the files.
func (t *Telemetry) PoliciesActivated(generation int64, hash string) {
	next := activePolicies{generation: generation, hash: hash}
	if before := t.policy.active.Load(); before != nil {
		next.read = before.read
	}
	t.policy.active.Store(&next)
}

// PoliciesSeen records that the policy files were read at the given time, and are those in force still.
func (t *Telemetry) PoliciesSeen(at time.Time) {
	before := t.policy.active.Load()
	if before == nil {
		return
	}
	next := *before
	next.read = at
	t.policy.active.Store(&next)
}

// PoliciesRejected records that the policy files were read and refused; the set in force stayed.
func (t *Telemetry) PoliciesRejected() {
	t.policy.overdue.Store(false)
	t.policy.failed.Add(1)
}

// PoliciesOverdue records that a reading of the policy files takes too long. PoliciesLoaded or PoliciesRejected ends
// it.
func (t *Telemetry) PoliciesOverdue() { t.policy.overdue.Store(true) }

func (p *policyState) register(m metric.Meter) error {
	counter := func(name, description string, value *atomic.Int64) error {
		_, err := m.Int64ObservableCounter(name, metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(value.Load())
				return nil
			}))
		return err
	}
	if err := counter("gateway_policy_reload_success",
		"Readings of the policy files that succeeded, the first one included.", &p.succeeded); err != nil {
		return err
	}
	if err := counter("gateway_policy_reload_failure",
		"Readings of the policy files that failed; the set in force stayed.", &p.failed); err != nil {
		return err
	}
	if _, err := m.Float64ObservableGauge("gateway_policy_reload_last_success_timestamp",
		metric.WithDescription("When the policy files were last read with success, in Unix time."),
		metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if a := p.active.Load(); a != nil {
				o.Observe(float64(a.read.UnixMilli()) / 1000)
			}
			return nil
		})); err != nil {
		return err
	}
	if _, err := m.Float64ObservableGauge("gateway_policy_load_stage",
		metric.WithDescription("How long each stage of the last load of the policy files took."), metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if stages := p.stages.Load(); stages != nil {
				for _, s := range *stages {
					o.Observe(s.Took.Seconds(), metric.WithAttributes(attribute.String("stage", s.Name)))
				}
			}
			return nil
		})); err != nil {
		return err
	}
	if _, err := m.Int64ObservableGauge("gateway_policy_reload_overdue",
		metric.WithDescription("1 while a reading of the policy files takes longer than a minute; the set in force stays."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			value := int64(0)
			if p.overdue.Load() {
				value = 1
			}
			o.Observe(value)
			return nil
		})); err != nil {
		return err
	}
	if _, err := m.Int64ObservableGauge("gateway_policy_generation",
		metric.WithDescription("Generation of the active policy set; it counts the sets of this process."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := p.active.Load(); a != nil {
				o.Observe(a.generation)
			}
			return nil
		})); err != nil {
		return err
	}
	if err := p.registerFolders(m); err != nil {
		return err
	}
	_, err := m.Int64ObservableGauge("gateway_policy_info",
		metric.WithDescription("Always 1; the label is the content hash of the active policy set, equal on replicas that agree."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := p.active.Load(); a != nil {
				o.Observe(1, metric.WithAttributes(attribute.String("hash", a.hash)))
			}
			return nil
		}))
	return err
}

// configState describes the configuration in force and the attempts to replace it.
type configState struct {
	succeeded, failed atomic.Int64
	active            atomic.Pointer[activeConfiguration]
}

type activeConfiguration struct {
	hash    string
	pending []string
	read    time.Time
}

// ConfigurationLoaded records that the configuration was read at the given time, and that the one of the hash is in
// force, newly or still. Pending are the keys of the settings that need a restart.
func (t *Telemetry) ConfigurationLoaded(hash string, pending []string, at time.Time) {
	t.config.active.Store(&activeConfiguration{hash, pending, at})
	t.config.succeeded.Add(1)
}

// ConfigurationRejected records that the configuration was read and refused; the one in force stayed.
func (t *Telemetry) ConfigurationRejected() { t.config.failed.Add(1) }

func (c *configState) register(m metric.Meter) error {
	for _, one := range []struct {
		name, description string
		value             *atomic.Int64
	}{
		{"gateway_config_reload_success", "Readings of the configuration that succeeded, the first one included.",
			&c.succeeded},
		{"gateway_config_reload_failure", "Readings of the configuration that failed; the one in force stayed.",
			&c.failed},
	} {
		if _, err := m.Int64ObservableCounter(one.name, metric.WithDescription(one.description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(one.value.Load())
				return nil
			})); err != nil {
			return err
		}
	}
	if _, err := m.Float64ObservableGauge("gateway_config_reload_last_success_timestamp",
		metric.WithDescription("When the configuration was last read with success, in Unix time."),
		metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if a := c.active.Load(); a != nil {
				o.Observe(float64(a.read.UnixMilli()) / 1000)
			}
			return nil
		})); err != nil {
		return err
	}
	if _, err := m.Int64ObservableGauge("gateway_config_restart_needed",
		metric.WithDescription("1 for each key whose value in the configuration file differs from the one in force until a restart."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := c.active.Load(); a != nil {
				for _, key := range a.pending {
					o.Observe(1, metric.WithAttributes(attribute.String("key", key)))
				}
			}
			return nil
		})); err != nil {
		return err
	}
	_, err := m.Int64ObservableGauge("gateway_config_info",
		metric.WithDescription("Always 1; the label is the hash of the configuration in force, equal on replicas that agree."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if a := c.active.Load(); a != nil {
				o.Observe(1, metric.WithAttributes(attribute.String("hash", a.hash)))
			}
			return nil
		}))
	return err
}

// registerFolders makes the metrics of folders with owners.
func (p *policyState) registerFolders(m metric.Meter) error {
	each := func(visit func(*PolicyFolder)) {
		if folders := p.folders.Load(); folders != nil {
			for i := range *folders {
				visit(&(*folders)[i])
			}
		}
	}
	if _, err := m.Int64ObservableGauge("gateway_policy_folder_info",
		metric.WithDescription("Always 1; the labels are an owner's folder of policy files, and the content hash of its files in force, empty if none are."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			each(func(f *PolicyFolder) {
				o.Observe(1, metric.WithAttributes(attribute.String("folder", f.Name),
					attribute.String("owner", f.Owner), attribute.String("hash", f.Hash)))
			})
			return nil
		})); err != nil {
		return err
	}
	_, err := m.Float64ObservableGauge("gateway_policy_folder_failing_since_timestamp",
		metric.WithDescription("Since when the newest policy files of an owner are refused, in Unix time; 0 while they are in force."), metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			each(func(f *PolicyFolder) {
				since := 0.0
				if !f.FailingSince.IsZero() {
					since = float64(f.FailingSince.UnixMilli()) / 1000
				}
				o.Observe(since, metric.WithAttributes(attribute.String("folder", f.Name),
					attribute.String("owner", f.Owner)))
			})
			return nil
		}))
	return err
}
