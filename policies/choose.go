package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// folderState is how a folder of policy files is.
type folderState struct {
	files  *source.Source // in force; nil: none
	goodAt time.Time      // when they were last without errors
	since  time.Time      // since when newer files are refused; zero: they are not
	found  []Finding      // why
}

// Folder is how a folder of policy files is, for operators.
type Folder struct {
	*source.Folder
	// Hash is the SHA-256 of the files that are in force; "" if none are, so that what the folder concerns is refused.
	Hash string
	// GoodAt is when these files were last seen without errors.
	GoodAt time.Time
	// FailingSince is since when newer files are refused; zero while they are not.
	FailingSince time.Time
	// Found says why they are.
	Found []Finding
}

// Folders returns how each folder is. The answer must not be changed.
func (m *Manager) Folders() []Folder { return *m.shown.Load() }

// inForce returns the files in force of each folder.
func (m *Manager) inForce() []*source.Source {
	files := make([]*source.Source, len(m.states))
	for i := range m.states {
		files[i] = m.states[i].files
	}
	return files
}

// join makes one source of the files of the folders.
func (m *Manager) join(files []*source.Source) *source.Source {
	if len(files) == 1 && m.folders[0].Owner == "" {
		return files[0]
	}
	return source.Join(m.folders, files)
}

// A choice is which files of each folder are to be in force.
type choice struct {
	m *Manager
	// files are the ones that are in force with set; of a folder that is nil, none.
	files []*source.Source
	// newest are the ones that were read.
	newest []*source.Source
	// kept is since when the files of a folder are the ones that were kept by another process; zero for others.
	kept []time.Time
	set  *Set // nil if everything stays as it is
	// found are the findings of the files of set, refused those by which the newest files of a folder are left out.
	found   []Finding
	refused map[int][]Finding
	// isBlocked says that something of the gateway is in the way, which may go without a change of the files.
	isBlocked bool
	// alike is a set of another Manager of which compiled parts can be reused, or nil.
	alike *Set
}

// choose compiles the newest files of all folders. If they have errors, it leaves those of the folders out that have
// them, and takes the ones in force in their place. Of folders with errors only together, the one that has changed is
// left out, and of several that have, the one that is later in the configuration.
func (m *Manager) choose(read []*source.Source, alike *Set) *choice {
	c := &choice{m: m, alike: alike, files: m.inForce(), newest: read, kept: make([]time.Time, len(read)),
		refused: map[int][]Finding{}}
	newest, changed := slices.Clone(read), []int(nil)
	for i, s := range read {
		before := c.files[i]
		if m.standing() != nil && before != nil && len(s.Files) == 0 && len(before.Files) > 0 &&
			!finding.HasErrors(s.Found) {
			// A mount that was lost, or a folder between two versions: that is not meant as a wish for
			// no policies.
			newest[i] = before
			c.refused[i] = append(slices.Clone(s.Found), Finding{File: m.folders[i].Name(),
				Message: "must hold policy files; to run without any the gateway must be started anew"})
			continue
		}
		if before == nil || before.Fingerprint() != s.Fingerprint() {
			changed = append(changed, i)
		}
	}
	if len(m.folders) == 1 && len(c.refused) > 0 {
		return c
	}
	if c.try(newest) {
		return c
	}
	failed := c.found
	c.found = nil
	if len(changed) == 0 { // the configuration or the time changed what may be in force
		changed = []int{max(source.FolderOf(m.folders, read, failed[0].File), 0)}
	}
	for _, i := range changed {
		c.refused[i] = failed
	}
	if len(changed) > 1 {
		c.add(changed, newest)
	}
	return c
}

// try compiles files, and chooses them if they have no errors.
func (c *choice) try(files []*source.Source) bool {
	m := c.m
	before := m.Current()
	if before == nil {
		before = c.set
	}
	if before == nil {
		before = c.alike
	}
	set, found := CompileAfter(before, m.join(files), m.options.Gateway)
	if standing := m.standing(); set != nil && standing != nil {
		if lost := set.applicability.LostSince(standing.applicability); len(lost) > 0 {
			set, found = nil, append(found, lost...)
		}
	}
	if set != nil && m.standing() != nil && m.options.Blocked != nil {
		if blocked := m.options.Blocked(set); len(blocked) > 0 {
			set, found = nil, append(found, blocked...)
			c.isBlocked = true
		}
	}
	c.found = found
	if set == nil {
		return false
	}
	c.set, c.files = set, slices.Clone(files)
	return true
}

// add chooses the newest files of one folder after the other, as far as they have no errors.
func (c *choice) add(waiting []int, newest []*source.Source) {
	good := c.found
	for hasAdded := true; hasAdded && len(waiting) > 0; {
		hasAdded = false
		for _, i := range slices.Clone(waiting) {
			with := slices.Clone(c.files)
			with[i] = newest[i]
			if !c.try(with) {
				c.refused[i] = c.found
				continue
			}
			good, hasAdded = c.found, true
			waiting = slices.DeleteFunc(waiting, func(k int) bool { return k == i })
			delete(c.refused, i)
		}
	}
	// Folders that need each other have no errors together, if the files of others that have some are left out.
	for together := slices.Clone(waiting); len(together) > 1; {
		with := slices.Clone(c.files)
		for _, i := range together {
			with[i] = newest[i]
		}
		if c.try(with) {
			good = c.found
			for _, i := range together {
				delete(c.refused, i)
			}
			break
		}
		failed := c.found
		before := len(together)
		together = slices.DeleteFunc(together, func(i int) bool {
			return slices.ContainsFunc(failed, func(f Finding) bool {
				return f.Severity == Error && source.FolderOf(c.m.folders, newest, f.File) == i
			})
		})
		if len(together) == before {
			break
		}
	}
	c.found = good
}

// restore chooses for folders that have no files in force the ones that another process kept.
func (m *Manager) restore(c *choice, read []*source.Source) {
	if m.options.LastGood == nil || len(c.refused) == 0 {
		return
	}
	good := c.found
	if c.set == nil {
		good = nil
	}
	for i := range m.folders {
		if c.refused[i] == nil || c.files[i] != nil {
			continue
		}
		name := m.folders[i].Name()
		files, at, err := m.options.LastGood.Restore(name, read[i], time.Now())
		if err != nil {
			c.refused[i] = append(c.refused[i], Finding{File: name,
				Message: "must have no errors, because there are no older policy files to begin with: " + err.Error()})
			continue
		}
		with := slices.Clone(c.files)
		with[i] = files
		if !c.try(with) {
			c.refused[i] = append(c.refused[i], c.found...)
			continue
		}
		c.kept[i] = at
		good = append(c.found, Finding{File: name, Severity: Warning,
			Message: "the policy files have errors, so that the gateway began with the policy files that were in force at " + at.Format(time.RFC3339)})
		var others []int // which may have needed this one
		for k := range m.folders {
			if c.refused[k] != nil && c.files[k] == nil {
				others = append(others, k)
			}
		}
		c.found = good
		c.add(others, read)
		good = c.found
	}
	c.found = good
}

// hold leaves the files of all folders out if none of them can be in force. Those without an owner must be: they
// concern all requests, and the operator of the gateway wrote them.
func (c *choice) hold() {
	switch {
	case c.lacksCommon():
		c.set = nil
	case c.set == nil:
		c.try(make([]*source.Source, len(c.m.folders)))
	}
}

// lacksCommon reports whether there are paths without an owner, and none of their files can be in force.
func (c *choice) lacksCommon() bool { return c.m.folders[0].Owner == "" && c.files[0] == nil }

// all returns the findings of all files, and the outcome for each folder with refused files.
func (c *choice) all() []Finding {
	var all []Finding
	if c.set != nil {
		all = append(all, c.found...)
	}
	for _, i := range c.failing() {
		all = append(all, c.refused[i]...)
		if c.set != nil || c.m.Current() != nil {
			all = append(all, c.outcome(i)...)
		}
	}
	return finding.Sort(all)
}

// outcome returns what happens to a folder with refused files. A single folder needs no such finding.
func (c *choice) outcome(i int) []Finding {
	if len(c.m.folders) == 1 && c.files[i] != nil {
		return nil
	}
	f := &c.m.folders[i]
	isOwn := slices.ContainsFunc(c.refused[i], func(found Finding) bool {
		return found.Severity == Error && source.FolderOf(c.m.folders, c.newest, found.File) == i
	})
	why := ""
	if !isOwn {
		why = " because of the errors in the files of others that come with it"
	}
	message := fmt.Sprintf("is refused%s: the files of %s that were last in force stay", why, f)
	if c.files[i] == nil {
		message = fmt.Sprintf("is refused%s: until the files of %s are mended, requests for what they concern (%s) are answered with 503", why, f, f.Concerns)
	}
	return []Finding{{File: f.Name(), Message: message}}
}

// failing returns the folders whose newest files are refused.
func (c *choice) failing() (all []int) {
	for i := range c.m.folders {
		if c.refused[i] != nil {
			all = append(all, i)
		}
	}
	return all
}

// recordFolders records the state of each folder.
func (m *Manager) recordFolders(c *choice, read []*source.Source) {
	now := time.Now()
	for i := range m.states {
		s := &m.states[i]
		s.files = c.files[i]
		switch refused := c.refused[i]; {
		case refused == nil:
			s.files, s.goodAt, s.since, s.found = read[i], now, time.Time{}, nil
		default:
			if s.since.IsZero() {
				s.since = now
			}
			s.found = refused
			if at := c.kept[i]; !at.IsZero() {
				s.goodAt = at
			}
		}
	}
}

// confirm notes that files that are in force still have no errors.
func (m *Manager) confirm() {
	now, isFailing := time.Now(), false
	for i := range m.states {
		if s := &m.states[i]; s.since.IsZero() {
			s.goodAt = now
		} else {
			isFailing = true
		}
	}
	m.show()
	if !isFailing && m.options.Seen != nil {
		m.options.Seen(now)
	}
}

// show lets others read how each folder is.
func (m *Manager) show() {
	all := make([]Folder, len(m.states))
	for i := range m.states {
		s := &m.states[i]
		all[i] = Folder{Folder: &m.folders[i], GoodAt: s.goodAt, FailingSince: s.since, Found: s.found}
		if s.files != nil {
			all[i].Hash = s.files.Hash
		}
	}
	m.shown.Store(&all)
}

// report logs and shows what was found in the files, and what has come of them.
func (m *Manager) report(c *choice, outcome Outcome) {
	m.show()
	if m.options.Folders != nil {
		m.options.Folders(m.Folders())
	}
	m.keep()
	found := c.all()
	if outcome == ReadNew && len(c.refused) > 0 {
		outcome = ReadPartly
	}
	if len(c.files) == 1 && len(c.refused) > 0 {
		outcome = ReadRefused // an older set of the only folder is in force
	}
	m.logFindings(found)
	if len(c.refused) > 0 {
		m.logRefused(c)
	}
	m.note(outcome, found)
	if len(c.refused) > 0 && m.options.Rejected != nil {
		m.options.Rejected(found)
	}
}

// logRefused logs which files are refused.
func (m *Manager) logRefused(c *choice) {
	set := m.Current()
	if len(m.folders) == 1 {
		m.options.Log.Error("the policy files are refused, the policies in force stay", "generation", set.generation,
			"hash", set.hash)
		return
	}
	for _, i := range c.failing() {
		f := &m.folders[i]
		if files := c.files[i]; files != nil {
			m.options.Log.Error("the policy files of a folder are refused, those that were last in force stay",
				"folder", f.Name(), "owner", f.Owner, "folderHash", files.Hash, "generation", set.generation, "hash",
				set.hash)
			continue
		}
		m.options.Log.Error("the policy files of a folder are refused, and requests for what they concern with them",
			"folder", f.Name(), "owner", f.Owner, "concerns", f.Concerns.String(), "generation", set.generation, "hash",
			set.hash)
	}
}

// fingerprintOf changes with whatever would change the outcome of compiling the files.
func fingerprintOf(read []*source.Source) string {
	var all []string
	for _, s := range read {
		all = append(all, s.Fingerprint())
	}
	return strings.Join(all, "\n\n")
}

// dirsOf returns the directories that the files depend on.
func dirsOf(read []*source.Source) (dirs []string) {
	for _, s := range read {
		dirs = append(dirs, s.Dirs...)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
