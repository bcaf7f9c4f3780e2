package policies

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admission-gateway/gateway/internal/rollout"
	"github.com/admission-gateway/gateway/internal/watch"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/lastgood"
	"github.com/admission-gateway/gateway/policies/modules"
	"github.com/admission-gateway/gateway/policies/source"
)

// Options of a Manager.
type Options struct {
	// Loaded, if set, is called with each set as it comes into force, the first one included.
	Loaded func(set *Set, at time.Time)
	// Activated, if set, is called instead with each set that comes into force because a bundle
	// changed, and not the files.
	Activated func(set *Set, at time.Time)
	// Confirmed, if set, is called when the files were read again, by a change or by Reload, and
	// are those in force: with Rejected before, that what was refused is gone.
	Confirmed func(set *Set, at time.Time)
	// Seen, if set, is called when the files were read again and have not changed since, and are in force.
	Seen func(at time.Time)
	// Rejected, if set, is called with each change of the files that was refused; the set in force
	// stays.
	Rejected func(found []Finding)
	// Folders, if set, is called after each reading of the files, with how each folder is.
	Folders func([]Folder)
	// Overdue, if set, is called for a reading that has taken longer than a minute and goes on.
	// Loaded, Confirmed or Rejected is called when it ends.
	Overdue func(Finding)
	// Blocked, if set, is asked about each set of changed files before it comes into force. Its findings are errors:
	// they say what of the gateway is in the way.
	Blocked func(set *Set) []Finding
	// LastGood keeps the files in force for gateways that start while the files have errors; nil
	// keeps none.
	LastGood *lastgood.Store
	// Owned are folders that have owners. Each is loaded by itself, after the paths without one.
	Owned []source.Folder
	// Gateway says what the gateway's configuration has. Files that ask for something else are
	// refused.
	Gateway Gateway
	// Log gets every finding and every change; nil discards it.
	Log *slog.Logger
	// System watches the files; nil: the Manager has a watch of its own.
	System *watch.System
	// Poll is how often the files are looked at even if no change is reported; 0 means every
	// minute.
	Poll time.Duration
	// Quiet is how long the files must be left alone after a change before they are read, so that what is written in
	// several steps is read once and whole; 0 means 100 milliseconds.
	Quiet time.Duration
}

const (
	defaultPoll  = time.Minute
	defaultQuiet = 100 * time.Millisecond
	// maxQuiet bounds the waiting while changes keep coming, as a multiple of Options.Quiet.
	maxQuiet = 10
)

// Manager holds the set in force and replaces it, whole and at once, when the files change. Files that do not compile
// never replace it, and neither does their absence. Of folders with owners, each keeps the files that it has in force.
type Manager struct {
	folders []source.Folder
	options Options
	current atomic.Pointer[Set]
	read    func(*source.Progress) []*source.Source // the files of each folder
	last    atomic.Pointer[Reading]
	counts  *rollout.Counts // of policies that are tried
	shown   atomic.Pointer[[]Folder]

	before   int64   // the generation of the last set that was in force before
	replaced *Set    // in force until Begin; nil from then on, and for a Manager that replaces none
	pending  *choice // what Begin brings into force

	mu     sync.Mutex    // one reading at a time
	tried  string        // the fingerprint of the files read last
	dirs   []string      // what they depend on
	states []folderState // of the folders
}

// NewManager loads the policies in files and directories, which have no owner, and those of Options.Owned. Without a
// Manager, the findings say why there is none.
func NewManager(paths []string, options Options) (*Manager, []Finding) {
	return newManager(paths, options, &rollout.Counts{}).start()
}

// newManager returns a Manager without a set.
func newManager(paths []string, options Options, counts *rollout.Counts) *Manager {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Poll <= 0 {
		options.Poll = defaultPoll
	}
	if options.Quiet <= 0 {
		options.Quiet = defaultQuiet
	}
	if options.Gateway.Print == nil && options.Log.Enabled(context.Background(), slog.LevelDebug) {
		options.Gateway.Print = func(file string, line int, text string) {
			options.Log.Debug(text, "file", file, "line", line)
		}
	}
	m := &Manager{options: options, counts: counts}
	if len(paths) > 0 || len(options.Owned) == 0 {
		m.folders = append(m.folders, source.Folder{Paths: paths})
	}
	m.folders = append(m.folders, options.Owned...)
	m.states = make([]folderState, len(m.folders))
	m.options.Gateway.readsOnce = len(options.Gateway.Bundles) == 0 && options.LastGood == nil && len(m.folders) == 1
	m.options.Gateway.Timed = logged(options.Log, options.Gateway.Timed)
	m.read = func(p *source.Progress) []*source.Source { return source.ReadFolders(m.folders, p) }
	return m
}

// start brings the first set into force.
func (m *Manager) start() (*Manager, []Finding) {
	p, done := m.expect()
	read := m.read(p)
	m.tried, m.dirs = fingerprintOf(read), dirsOf(read)
	c := m.choose(read, nil)
	m.restore(c, read)
	done()
	c.hold()
	found := c.all()
	if c.set == nil {
		return nil, found
	}
	m.recordFolders(c, read)
	m.swap(c.set, m.options.Loaded)
	m.report(c, ReadNew)
	return m, found
}

// keep keeps the files in force for gateways that start later. What fails is logged: the files are in force all the
// same.
func (m *Manager) keep() {
	if m.options.LastGood == nil {
		return
	}
	var parts []lastgood.Part
	for i := range m.states {
		if s := &m.states[i]; s.files != nil {
			parts = append(parts, lastgood.Part{Folder: m.folders[i].Name(), Files: s.files, At: s.goodAt})
		}
	}
	if err := m.options.LastGood.Keep(parts); err != nil {
		m.options.Log.Error("the policy files in force cannot be kept for gateways that start later", "cause", err)
	}
}

// logged returns a function that logs the times of the stages of a load, and passes them to told,
// which may be nil.
func logged(log *slog.Logger, told func([]StageTime)) func([]StageTime) {
	return func(times []StageTime) {
		if told != nil {
			told(times)
		}
		var attrs []slog.Attr
		for _, t := range times {
			if t.Kind == "" {
				attrs = append(attrs, slog.Duration(t.Stage, t.Took))
			}
		}
		log.LogAttrs(context.Background(), slog.LevelDebug, "the policy files went through all stages", attrs...)
	}
}

// Current is the set in force. A request asks once and keeps the answer.
func (m *Manager) Current() *Set { return m.current.Load() }

// Outcome is the result of a reading of the files.
type Outcome string

// The outcomes.
const (
	// ReadNew brought another set into force.
	ReadNew Outcome = "Loaded"
	// ReadSame found the files that are in force already.
	ReadSame Outcome = "Unchanged"
	// ReadPartly brought the files of some folders into force, and left those of others, which have errors.
	ReadPartly Outcome = "Partly"
	// ReadRefused left the set in force because the files have errors.
	ReadRefused Outcome = "Refused"
)

// A Reading is a time at which the files were read, and what was found.
type Reading struct {
	At      time.Time
	Outcome Outcome
	Found   []Finding
}

// LastReading returns the last reading of the files that has ended.
func (m *Manager) LastReading() *Reading { return m.last.Load() }

func (m *Manager) note(o Outcome, found []Finding) { m.last.Store(&Reading{time.Now(), o, found}) }

// Reload reads the files now. It returns what it found, which has an error if the files were refused.
func (m *Manager) Reload() []Finding { return m.refresh(true) }

// refresh reads the files and replaces the set if they changed since they were last tried, or if it is forced.
func (m *Manager) refresh(force bool) []Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, done := m.expect()
	read := m.read(p)
	m.dirs = dirsOf(read)
	fingerprint := fingerprintOf(read)
	if fingerprint == m.tried && !force && !done() {
		m.confirm() // still as they were
		m.keep()
		return nil // what was reported as overdue has an end that is reported too
	}
	m.tried = fingerprint
	c := m.choose(read, nil)
	done()
	if c.isBlocked {
		m.tried = ""
	}
	found := c.all()
	m.recordFolders(c, read)
	switch {
	case c.set == nil:
		m.report(c, ReadRefused)
	case c.set.hash != m.Current().hash:
		m.swap(c.set, m.options.Loaded)
		m.report(c, ReadNew)
	case len(c.refused) > 0:
		m.report(c, ReadRefused)
	default:
		m.options.Log.Info("the policy files are those in force", "generation", m.Current().generation, "hash",
			c.set.hash)
		m.report(c, ReadSame)
		if m.options.Confirmed != nil {
			m.options.Confirmed(m.Current(), time.Now())
		}
	}
	return found
}

// Activate compiles the files in force with another version of a bundle, and brings that into force.
// If one of the findings is an error, the bundle in force stays.
func (m *Manager) Activate(name string, b modules.Bundle) []Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.options.Gateway
	g.Bundles = maps.Clone(g.Bundles)
	g.Bundles[name] = b
	set, found := CompileAfter(m.Current(), m.join(m.inForce()), g)
	if set == nil {
		return found
	}
	m.options.Gateway = g
	if set.hash != m.Current().hash {
		m.swap(set, m.options.Activated)
	}
	return found
}

// expect has a reading that begins now reported if it is overdue, until done is called.
func (m *Manager) expect() (p *source.Progress, done func() bool) {
	p = &source.Progress{}
	return p, watch.Overdue(func() {
		found := Finding{File: m.folders[0].Name(), Message: fmt.Sprintf(
			"must be loaded within %s; the policies that were read are still being compiled, and are not in force", watch.Patience)}
		if at, reading := p.File(); reading {
			found = Finding{File: at, Message: fmt.Sprintf(
				"must be readable within %s; until it is read, or gone, no change of the policy files comes into force", watch.Patience)}
		}
		m.options.Log.Error("the policy files take too long to load", "finding", found.Text())
		if m.options.Overdue != nil {
			m.options.Overdue(found)
		}
	})
}

// swap brings a set into force and reports it.
func (m *Manager) swap(set *Set, tell func(set *Set, at time.Time)) {
	if old := m.Current(); old != nil && old != set {
		m.before = old.generation
	}
	set.generation = m.before + 1
	m.counts.Adopt(set.terms.Rollouts, time.Now())
	m.current.Store(set)
	m.options.Log.Info("policies are in force", "generation", set.generation, "hash", set.hash, "resources",
		len(set.compiled))
	if tell != nil {
		tell(set, time.Now())
	}
}

func (m *Manager) logFindings(found []Finding) {
	for _, f := range finding.Summarized(found) {
		if f.Severity == Wording {
			continue // advice for the author, whom 'gateway check' gives it
		}
		level := slog.LevelWarn
		switch f.Severity {
		case Error:
			level = slog.LevelError
		case Gap, Note, Remark:
			level = slog.LevelInfo
		}
		m.options.Log.Log(context.Background(), level, "policy file", f.Attributes()...)
	}
}

// Run keeps the set up to date until ctx is done.
func (m *Manager) Run(ctx context.Context) {
	files := watch.Files{
		Of: "the policy files", Dirs: m.watched, Changed: func() { m.refresh(false) },
		Poll: m.options.Poll, Quiet: m.options.Quiet, Patience: maxQuiet * m.options.Quiet, Log: m.options.Log,
		System: m.options.System,
	}
	files.Run(ctx)
}

func (m *Manager) watched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dirs
}
