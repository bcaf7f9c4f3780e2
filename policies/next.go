package policies

import (
	"reflect"
)

// Next returns a Manager for another configuration of the gateway, with the files as they are now. Until it begins, the
// set in force is that of m. A folder whose files have errors keeps the ones that it has in force, if their texts are
// known still. Without a Manager, the findings say why there is none.
func (m *Manager) Next(paths []string, options Options) (*Manager, []Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	options.Gateway.Bundles = m.options.Gateway.Bundles
	next := newManager(paths, options, m.counts)
	next.replaced = m.Current()
	next.inherit(m)
	var alike *Set // to take over what was compiled for a gateway with the same routes
	if next.options.Gateway.isLike(&m.options.Gateway) {
		alike = m.Current()
	}
	p, done := next.expect()
	read := next.read(p)
	next.tried, next.dirs = fingerprintOf(read), dirsOf(read)
	c := next.choose(read, alike)
	if c.set == nil && !c.lacksCommon() {
		c.try(c.files) // the ones in force, as another gateway has them
	}
	done()
	found := c.all()
	if c.set == nil || c.lacksCommon() {
		return nil, found
	}
	if len(c.set.files) == 0 && len(m.Current().files) > 0 && len(paths) > 0 {
		// A mount that was lost, or a folder between two versions: that is not meant as a wish for
		// no policies.
		return nil, append(found, Finding{File: next.folders[0].Name(),
			Message: "must hold policy files; to run without any the gateway must be started anew"})
	}
	if c.isBlocked {
		next.tried = ""
	}
	next.recordFolders(c, read)
	next.show()
	next.current.Store(c.set)
	next.pending = c
	return next, found
}

// inherit takes over how the folders of another Manager are that have the same paths. Files whose texts are not known
// any more could not be compiled again.
func (m *Manager) inherit(before *Manager) {
	if before.options.Gateway.readsOnce {
		return
	}
	for i := range m.folders {
		for k := range before.folders {
			if m.folders[i].Name() == before.folders[k].Name() {
				m.states[i] = before.states[k]
			}
		}
	}
}

// Begin brings the set of a Manager that Next has returned into force. The Manager before must read no files any more.
func (m *Manager) Begin(before *Manager) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.pending
	m.pending, m.replaced = nil, nil
	m.before = before.Current().generation
	loaded := m.options.Loaded
	if len(m.folders) == 1 && len(c.refused) > 0 {
		loaded = m.options.Activated // the files in force are as they were
	}
	m.swap(c.set, loaded)
	m.report(c, ReadNew)
}

// standing is the set in force, of this Manager or of the one that it replaces; nil if there is none.
func (m *Manager) standing() *Set {
	if m.replaced != nil {
		return m.replaced
	}
	return m.Current()
}

// isLike reports whether files are compiled for one gateway as they are for another one, but for bundles.
func (g Gateway) isLike(other *Gateway) bool {
	o := *other
	for _, one := range []*Gateway{&g, &o} {
		one.Bundles, one.Print, one.Timed = nil, nil, nil
	}
	return reflect.DeepEqual(g, o)
}
