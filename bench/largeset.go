package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A large set of policy files: so many resources, with so many policies of three rules about each.
const (
	setResources, setPolicies = 500, 4
	setFiles                  = 50
)

// The goals for a gateway that starts with the large set, and for one changed line of it.
const (
	maxSetSeconds    = 1.5
	maxSetMB         = 150
	maxChangeSeconds = 0.1
)

// A SetResult is what a large set takes: the processor's time and the most resident memory of a start, and of the
// reading of one changed line after it.
type SetResult struct {
	StartSeconds  float64 `json:"startSeconds"`
	StartMB       float64 `json:"startMB"`
	ChangeSeconds float64 `json:"changeSeconds"`
	ChangeMB      float64 `json:"changeMB"`
}

// measureSet starts the gateway with the large set a few times, changes a line, and returns the medians.
func (m *Machine) measureSet(ctx context.Context) (SetResult, error) {
	var all [4][]float64
	for range 3 {
		r, err := m.measureSetOnce(ctx)
		if err != nil {
			return r, err
		}
		for i, v := range []float64{r.StartSeconds, r.StartMB, r.ChangeSeconds, r.ChangeMB} {
			all[i] = append(all[i], v)
		}
	}
	return SetResult{middle(all[0]), middle(all[1]), middle(all[2]), middle(all[3])}, nil
}

func (m *Machine) measureSetOnce(ctx context.Context) (r SetResult, err error) {
	dir, err := os.MkdirTemp(m.Dir, "set")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	resource, err := os.ReadFile(filepath.Join(m.Root, "bench", "policies", "workloads.yaml"))
	if err != nil {
		return r, err
	}
	texts := largeSet(string(resource))
	for i, text := range texts {
		if err := os.WriteFile(setFile(dir, i), []byte(text), 0o644); err != nil {
			return r, err
		}
	}
	p, admin, _, err := m.startGateway(ctx, "set", "--policies", dir)
	if err != nil {
		return r, err
	}
	defer p.stop()
	spent, peak, err := p.waitIdle()
	if err != nil {
		return r, err
	}
	r.StartSeconds, r.StartMB = spent.Seconds(), peak*(1<<20)/1e6
	before, err := reloads(admin)
	if err != nil {
		return r, err
	}
	changed := strings.Replace(texts[setFiles/2], "<= 100", "<= 200", 1)
	if err := os.WriteFile(setFile(dir, setFiles/2), []byte(changed), 0o644); err != nil {
		return r, err
	}
	for until := time.Now().Add(time.Minute); ; {
		after, err := reloads(admin)
		if err != nil {
			return r, err
		}
		if after != before {
			break
		}
		if time.Now().After(until) {
			return r, fmt.Errorf("the changed line did not come into force: %s", p.output())
		}
		time.Sleep(50 * time.Millisecond)
	}
	again, peak, err := p.waitIdle()
	r.ChangeSeconds, r.ChangeMB = (again - spent).Seconds(), peak*(1<<20)/1e6
	return r, err
}

// waitIdle waits until what was just done is over, and returns the processor's time so far and the most resident memory
// in MiB.
func (p *Process) waitIdle() (spent time.Duration, peakMiB float64, err error) {
	time.Sleep(2 * time.Second)
	if spent, err = p.cpu(); err == nil {
		peakMiB, err = p.peak()
	}
	return spent, peakMiB, err
}

func setFile(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("set-%02d.yaml", i)) }

// largeSet returns the texts of the files.
func largeSet(resource string) []string {
	texts := make([]string, setFiles)
	for i := range setResources {
		group := fmt.Sprintf("group%d.example.com", i)
		var b strings.Builder
		b.WriteString("---\n" + strings.ReplaceAll(resource, "bench.example.com", group))
		for j := range setPolicies {
			b.WriteString(furtherPolicy(fmt.Sprintf("further-%d-%d", i, j), group, "workloads", (i*setPolicies+j)*3, 3))
		}
		texts[i*setFiles/setResources] += b.String()
	}
	return texts
}

// reloads returns the line of the gateway's metrics that counts the readings of policy files.
func reloads(admin string) (string, error) {
	client := insecureClient(10 * time.Second)
	defer client.CloseIdleConnections()
	answer, err := client.Get(admin + "/metrics")
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		return "", err
	}
	for line := range strings.Lines(text.String()) {
		if strings.HasPrefix(line, "gateway_policy_reload_success_total") {
			return line, nil
		}
	}
	return "", fmt.Errorf("the metrics do not count the readings of policy files: %s", text.String())
}

// verdict writes how the goals fare, and reports whether they are reached.
func (s *SetResult) verdict(p *printer) bool {
	p.printf("- start with %d resources and %d policies: %.2f s of CPU time, goal at most %.1f; %.0f MB at the peak, goal at most %d\n",
		setResources, setResources*setPolicies, s.StartSeconds, maxSetSeconds, s.StartMB, maxSetMB)
	p.printf("- one changed line of them: %.2f s of CPU time, goal at most %.1f; %.0f MB at the peak since the start\n",
		s.ChangeSeconds, maxChangeSeconds, s.ChangeMB)
	return s.StartSeconds <= maxSetSeconds && s.StartMB <= maxSetMB && s.ChangeSeconds <= maxChangeSeconds
}

// runSet measures the large set alone.
func runSet(ctx context.Context, o options) error {
	m, _, closeAll, err := prepare(ctx, o, []Target{{OfGateway: true}})
	if err != nil {
		return err
	}
	defer closeAll()
	m.Backend = "127.0.0.1:9" // nothing is asked of it
	r, err := m.measureSet(ctx)
	if err != nil {
		return err
	}
	p := printer{to: os.Stdout}
	if isReached := r.verdict(&p); o.mustReach && !isReached {
		return fmt.Errorf("a goal is missed")
	}
	return p.err
}
