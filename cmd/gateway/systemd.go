package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// supervisor is systemd, if it started the process and wants to know how it fares; else nothing is
// reported.
type supervisor struct{ log *slog.Logger }

func (s supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd cannot be told", "state", state, "cause", err)
	}
}

// ready says that clients are served, and from then on twice in WatchdogSec that the process lives, until ctx ends.
func (s supervisor) ready(ctx context.Context) {
	s.tell(daemon.SdNotifyReady)
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("systemd's WATCHDOG_USEC cannot be read", "cause", err)
	}
	if within <= 0 {
		return
	}
	go func() {
		ticks := time.NewTicker(max(within/2, time.Millisecond))
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				s.tell(daemon.SdNotifyWatchdog)
			}
		}
	}()
}

// stopping says that the gateway drains.
func (s supervisor) stopping() { s.tell(daemon.SdNotifyStopping) }
