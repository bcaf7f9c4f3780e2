package policies

import (
	"reflect"
	"slices"
)

// Next returns a Manager for another configuration of the gateway, with the files as they are now. Until it begins, the set
// in force is that of m. If the files have errors and the paths are the same, the set is made of the files in force, if their
// texts are known still. Without a Manager, the findings say why there is none.
func (m *Manager) Next(paths []string, options Options) (*Manager, []Finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	options.Gateway.Bundles = m.options.Gateway.Bundles
	next := newManager(paths, options, m.counts)
	var before *Set // to take over what was compiled for a gateway with the same routes
	if next.options.Gateway.isLike(&m.options.Gateway) {
		before = m.Current()
	}
	p, done := next.expect()
	s := next.read(p)
	next.tried, next.dirs = s.Fingerprint(), s.Dirs
	set, found := CompileAfter(before, s, next.options.Gateway)
	done()
	set, found = next.without(m.Current(), set, found)
	if set == nil {
		if m.options.Gateway.readsOnce || !slices.Equal(paths, m.paths) {
			return nil, found
		}
		if set, _ = CompileAfter(before, m.source, next.options.Gateway); set == nil {
			return nil, found
		}
		s, next.refused = m.source, found
	}
	next.source = s
	next.current.Store(set)
	return next, found
}

// Begin brings the set of a Manager that Next has returned into force. The Manager before must read no files any more.
func (m *Manager) Begin(before *Manager) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = before.Current().generation
	set := m.Current()
	if m.refused == nil {
		m.note(ReadNew, nil)
		m.swap(set, m.options.Loaded)
		m.keep()
		return
	}
	m.swap(set, m.options.Activated)
	m.refuse(m.refused)
	m.refused = nil
}

// isLike reports whether files are compiled for one gateway as they are for another one, but for bundles.
func (g Gateway) isLike(other *Gateway) bool {
	o := *other
	for _, one := range []*Gateway{&g, &o} {
		one.Bundles, one.Print, one.Timed = nil, nil, nil
	}
	return reflect.DeepEqual(g, o)
}
