package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/policytest"
	"github.com/admission-gateway/gateway/internal/watch"
	"github.com/admission-gateway/gateway/policies/source"
)

// The times of `gateway test --watch`: files are read when they were left alone for watchQuiet, at the latest after
// watchPatience, and every watchPoll in case a change went unnoticed.
const (
	watchQuiet    = 200 * time.Millisecond
	watchPatience = 2 * time.Second
	watchPoll     = 2 * time.Second
)

// rerun plays the tests now, and whenever a file changes that they may read, until ctx is done. What fails is said, and
// ends nothing.
func (f *testFlags) rerun(ctx context.Context, cmd *cobra.Command) error {
	read := func() *source.Source {
		paths := policytest.Reads(f.options)
		if f.config != "" {
			paths = append(paths, f.config)
		}
		return source.Read(paths, &source.Progress{})
	}
	known := ""
	files := watch.Files{
		Of: "the tests and policies", Dirs: func() []string { return read().Dirs }, Quiet: watchQuiet,
		Patience: watchPatience, Poll: watchPoll,
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
		Changed: func() {
			now := read().Fingerprint()
			if now == known || ctx.Err() != nil {
				return
			}
			known = now
			err := f.readService()
			if err == nil {
				err = f.once(ctx, cmd)
			}
			if err != nil && ctx.Err() == nil {
				cmd.PrintErrln(fmt.Sprintf("%s: %s", cmd.CommandPath(), err))
			}
		},
	}
	files.Run(ctx)
	return nil
}
