package main

import (
	"context"
	"path/filepath"
	"slices"
	"time"
)

// The goals for a gateway that starts with the demo's policies and then idles.
const (
	maxStartMilliseconds = 300
	maxIdleMiB           = 60
)

// A Footprint is the gateway's time to start, and its memory before it serves anything; zero if it was not measured.
type Footprint struct {
	StartMilliseconds float64 `json:"startMilliseconds"` // from exec to ready
	IdleMiB           float64 `json:"idleMiB"`           // resident two seconds later
}

// measureFootprint starts the gateway with the demo's policies a few times and returns the medians.
func (m *Machine) measureFootprint(ctx context.Context) (Footprint, error) {
	const times = 3
	var start, idle []float64
	for range times {
		listen, err := freeAddress()
		if err != nil {
			return Footprint{}, err
		}
		command, err := m.gateway(listen, "--policies", filepath.Join(m.Root, "policies", "library", "demo"))
		if err != nil {
			return Footprint{}, err
		}
		admin := command[slices.Index(command, "--admin")+1]
		p, err := startProcess(m.Dir, "footprint", m.serverCPUs, command...)
		if err != nil {
			return Footprint{}, err
		}
		took, err := p.waitReady(ctx, "http://"+admin+"/readyz")
		if err == nil {
			time.Sleep(2 * time.Second)
			var mib float64
			mib, err = p.resident()
			start, idle = append(start, float64(took.Microseconds())/1000), append(idle, mib)
		}
		p.stop()
		if err != nil {
			return Footprint{}, err
		}
	}
	return Footprint{StartMilliseconds: middle(start), IdleMiB: middle(idle)}, nil
}
