package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// A Setting says how a change of a key of the configuration comes into force.
type Setting struct {
	// Key is the path of the key. What is below it has the same Restart.
	Key string
	// Restart is why the process must be started anew; empty if a reload is enough.
	Restart string
}

// Settings has the keys in the order of the file. Each field of a Configuration is one of them or below one of them.
var Settings = []Setting{
	{"listen", ""},
	{"tls", ""},
	{"listeners", ""},
	{"http2.enabled", "clients have learned from TLS what is served"},
	{"http2.maxConcurrentStreams", ""},
	{"admin", "the listener is open; the files that it names are read again when they change"},
	{"upstreams", ""},
	{"routes", ""},
	{"policies", ""},
	{"bundles", "each has a download of its own"},
	{"admitOn", ""},
	{"limits.bodyBytes", ""},
	{"limits.bodiesInFlightBytes", "requests in progress hold memory of the one budget"},
	{"limits.heavyRequests", "requests in progress hold memory of the one budget"},
	{"limits.headerBytes", ""},
	{"limits.uriBytes", ""},
	{"limits.headers", ""},
	{"limits.jsonDepth", ""},
	{"limits.jsonNodes", ""},
	{"limits.connections", "the listener is open"},
	{"limits.drainBytesPerSecond", ""},
	{"timeouts", ""},
	{"drainSeconds", ""},
	{"shutdownDeadlineSeconds", ""},
	{"upgradeDrainSeconds", ""},
	{"underscoreHeaders", ""},
	{"trustedProxies", ""},
	{"forwardedHeader", ""},
	{"identity", ""},
	{"unregisteredResources", ""},
	{"replicas", ""},
	{"telemetry.log.level", ""},
	{"telemetry.log.format", "a log has lines of one format"},
	{"telemetry.log.requests", ""},
	{"telemetry.log.sampleOneIn", ""},
	{"telemetry.log.fieldNames", ""},
	{"telemetry.requestIDs", ""},
	{"telemetry.audit", "events wait in its queues"},
	{"telemetry.decisionLogs", "decisions wait in its queues"},
	{"telemetry.tracing", "spans wait to be exported"},
	{"telemetry.metrics", "series would have gaps"},
	{"telemetry.explanations", ""},
	{"kubernetes", "the objects of the cluster are watched"},
	{"redis", "counts and locks are there"},
}

// SettingOf returns the setting of a key; nil if the keys below it have settings of their own.
func SettingOf(key string) *Setting {
	for i := range Settings {
		if Settings[i].Key == key {
			return &Settings[i]
		}
	}
	return nil
}

// Reload reads the configuration anew for a process that runs with the configuration c. What it returns is what such a
// process can bring into force: the settings that need a restart are those of c. Pending are the keys of these settings
// whose values have changed.
func (c *Configuration) Reload(file string, flags Flags) (next *Configuration, pending []string, err error) {
	read, o, err := compose(file, flags)
	if err != nil {
		return nil, nil, err
	}
	running := *c
	running.Limits = c.stated
	pending = keep("", reflect.ValueOf(&running).Elem(), reflect.ValueOf(read).Elem())
	if len(pending) > 0 && o != nil {
		// Each of the two configurations was valid, which their mixture may not be.
		v := &validator{object: o}
		v.identity(read)
		v.limits(&read.Limits)
		checkExplanations(v, "telemetry.explanations", read.Telemetry.Explanations, read.Identity)
		if len(v.errs) > 0 {
			return nil, pending, fmt.Errorf("%w (with the values in force of %s, which need a restart)", v.errs,
				strings.Join(pending, ", "))
		}
	}
	if err := read.finish(); err != nil {
		return nil, pending, err
	}
	read.Limits.BodiesInFlightBytes, read.Limits.HeavyRequests = c.Limits.BodiesInFlightBytes, c.Limits.HeavyRequests
	return read, pending, nil
}

// keep gives the settings of to that need a restart the values that they have in from, and returns the keys of those
// that were different.
func keep(path string, from, to reflect.Value) (pending []string) {
	for _, f := range reflect.VisibleFields(to.Type()) {
		if !f.IsExported() {
			continue
		}
		key := f.Tag.Get("json")
		if path != "" {
			key = path + "." + key
		}
		have, next := from.FieldByIndex(f.Index), to.FieldByIndex(f.Index)
		switch setting := SettingOf(key); {
		case setting == nil:
			pending = append(pending, keep(key, have, next)...)
		case setting.Restart != "" && !reflect.DeepEqual(have.Interface(), next.Interface()):
			next.Set(have)
			pending = append(pending, key)
		}
	}
	return pending
}

// IsSame reports whether two configurations have the same settings, with what kubeconfigs say.
func (c *Configuration) IsSame(other *Configuration) bool { return reflect.DeepEqual(c, other) }

// finish gives the configuration its hash, and the limits that depend on the machine their values.
func (c *Configuration) finish() error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	c.hash = fmt.Sprintf("%x", sha256.Sum256(data)) // before what depends on the machine
	c.stated = c.Limits
	c.Limits.derive()
	return nil
}
