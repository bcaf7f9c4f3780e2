package policies

import (
	"context"

	"github.com/admission-gateway/gateway/internal/watch"
)

// Run keeps the set up to date until ctx is done.
func (m *Manager) Run(ctx context.Context) {
	files := watch.Files{
		Of: "the policy files", Dirs: m.watched, Changed: func() { m.refresh(false) },
		Poll: m.options.Poll, Quiet: m.options.Quiet, Patience: maxQuiet * m.options.Quiet, Log: m.options.Log,
	}
	files.Run(ctx)
}

func (m *Manager) watched() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dirs
}
