package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The goals for a gateway that starts with the demo's policies and then idles.
const (
	maxStartMilliseconds = 300
	maxIdleMiB           = 60
)

// The goals for a gateway that starts with GitHub's OpenAPI document of 12.7 MB, beyond what one without files takes.
const (
	maxDocumentSeconds = 1.0
	maxDocumentMB      = 100
)

// A Footprint is the gateway's time to start, and its memory before it serves anything; zero if it was not measured.
type Footprint struct {
	StartMilliseconds float64 `json:"startMilliseconds"` // from exec to ready
	IdleMiB           float64 `json:"idleMiB"`           // resident two seconds later
	// DocumentSeconds and DocumentMB are what the load of a large document takes: the processor's time, and memory at
	// the peak. They are 0 without the document.
	DocumentSeconds float64 `json:"documentSeconds"`
	DocumentMB      float64 `json:"documentMB"`
}

// measureFootprint starts the gateway with the demo's policies a few times and returns the medians.
func (m *Machine) measureFootprint(ctx context.Context) (Footprint, error) {
	demo, err := m.starts(ctx, "--policies", filepath.Join(m.Root, "policies", "library", "demo"))
	if err != nil {
		return Footprint{}, err
	}
	f := Footprint{StartMilliseconds: demo.milliseconds, IdleMiB: demo.idleMiB}
	folder, err := m.documents()
	if folder == "" || err != nil {
		return f, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	without, err := m.starts(ctx)
	if err != nil {
		return Footprint{}, err
	}
	with, err := m.starts(ctx, "--policies", folder)
	f.DocumentSeconds, f.DocumentMB = with.seconds-without.seconds, (with.peakMiB-without.peakMiB)*(1<<20)/1e6
	return f, err
}

// documents returns a folder with the large document; "" if there is none.
func (m *Machine) documents() (folder string, err error) {
	suites := os.Getenv("SUITES_DIR")
	packed, err := os.ReadFile(filepath.Join(suites, "data", "openapi", "github.json.gz"))
	if suites == "" || os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp(m.Dir, "documents"); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "github.json"), text, 0o600)
}

// started says what it took to start a gateway until it was idle.
type started struct{ milliseconds, idleMiB, peakMiB, seconds float64 }

// starts starts the gateway a few times and returns the medians.
func (m *Machine) starts(ctx context.Context, args ...string) (started, error) {
	const times = 3
	var took, idle, peak, spent []float64
	for range times {
		one, err := m.startOnce(ctx, args)
		if err != nil {
			return started{}, err
		}
		took, idle, peak, spent = append(took, one.milliseconds), append(idle, one.idleMiB), append(peak, one.peakMiB),
			append(spent, one.seconds)
	}
	return started{middle(took), middle(idle), middle(peak), middle(spent)}, nil
}

func (m *Machine) startOnce(ctx context.Context, args []string) (s started, err error) {
	p, _, took, err := m.startGateway(ctx, "footprint", args...)
	if err != nil {
		return s, err
	}
	defer p.stop()
	spent, peak, err := p.waitIdle()
	if err != nil {
		return s, err
	}
	s.milliseconds, s.seconds, s.peakMiB = float64(took.Microseconds())/1000, spent.Seconds(), peak
	s.idleMiB, err = p.resident()
	return s, err
}

// startGateway starts a gateway that is measured alone. It returns the address of its admin listener, and the time from
// exec to ready.
func (m *Machine) startGateway(ctx context.Context, name string,
	args ...string) (p *Process, admin string, took time.Duration, err error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, "", 0, err
	}
	command, err := m.gateway(listen, args...)
	if err != nil {
		return nil, "", 0, err
	}
	admin = "http://" + command[slices.Index(command, "--admin")+1]
	if p, err = startProcess(m.Dir, name, m.serverCPUs, command...); err != nil {
		return nil, "", 0, err
	}
	if took, err = p.waitReady(ctx, admin+"/readyz"); err != nil {
		p.stop()
		return nil, "", 0, err
	}
	return p, admin, took, nil
}
