package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/tools/load"
)

// memory bounds a test binary, because a loop that never ends may allocate. In KiB, of address space.
const memory = 12 << 20

// A sample says which faults of a package are planted.
type sample struct {
	n          int
	seed       uint64
	equivalent map[string]bool // by name
}

// A mutant is a test binary of a package with all faults of a sample.
type mutant struct {
	room, folder string
	faults       []*fault // in the order of the text; the first has number 1
	possible     int      // how many faults the sample was taken from
	temporary    string
	only         string
	within       time.Duration
}

// readEquivalent returns the names in a list: one a line, with the reason behind two spaces and "#".
func readEquivalent(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, "  #")
		if name = strings.TrimSpace(name); name != "" && name[0] != '#' {
			names[name] = true
		}
	}
	return names, nil
}

// build compiles the tests of a package in the module in dir, with the faults of a sample.
func build(dir, pattern string, s sample) (*mutant, error) {
	found, err := load.Packages(dir, pattern)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s names %d packages, not one", pattern, len(found))
	}
	p := found[0]
	temporary, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	m := &mutant{room: p.Room, temporary: temporary}
	if err := m.plant(p, s); err != nil {
		m.remove()
		return nil, err
	}
	return m, nil
}

// remove deletes what was compiled. A file that stays is in a folder for temporary files.
func (m *mutant) remove() { _ = os.RemoveAll(m.temporary) }

func (m *mutant) plant(p load.Package, s sample) error {
	texts := make([][]byte, len(p.Syntax))
	spots := make([][]*spot, len(p.Syntax))
	var all []*fault
	for i, file := range p.Syntax {
		name := p.CompiledGoFiles[i]
		m.folder = filepath.Dir(name)
		var err error
		if texts[i], err = os.ReadFile(name); err != nil {
			return err
		}
		spots[i] = find(p.Fset, p.TypesInfo, p.Types, file, texts[i])
		for _, spot := range spots[i] {
			all = append(all, spot.faults...)
		}
	}
	if err := m.choose(all, s); err != nil {
		return err
	}
	if len(m.faults) == 0 {
		return fmt.Errorf("%s has no code that can have a fault", m.room)
	}
	replace := map[string]string{}
	for i, file := range p.Syntax {
		name := p.CompiledGoFiles[i]
		planted := plant(p.Fset, file, texts[i], spots[i])
		if err := m.overlay(replace, name, planted); err != nil {
			return err
		}
	}
	if err := m.overlay(replace, filepath.Join(m.folder, "mutants_planted.go"),
		fmt.Appendf(nil, helpers, p.Name, len(m.faults)+1)); err != nil {
		return err
	}
	return m.compile(replace)
}

// choose gives numbers to the faults of the sample.
func (m *mutant) choose(all []*fault, s sample) error {
	exists := map[string]bool{}
	for _, f := range all {
		exists[f.name(m.room)] = true
	}
	for name := range s.equivalent {
		if strings.HasPrefix(name, m.room+": ") && !exists[name] {
			return fmt.Errorf("the list of equivalent faults has one that cannot be planted: %s", name)
		}
	}
	all = slices.DeleteFunc(all, func(f *fault) bool { return s.equivalent[f.name(m.room)] })
	m.possible = len(all)
	chosen := all
	if s.n > 0 && s.n < len(all) {
		chosen = slices.Clone(all)
		random := rand.New(rand.NewPCG(s.seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:s.n]
	}
	isChosen := map[*fault]bool{}
	for _, f := range chosen {
		isChosen[f] = true
	}
	for _, f := range all {
		if isChosen[f] {
			m.faults = append(m.faults, f)
			f.id = len(m.faults)
		}
	}
	return nil
}

func (m *mutant) overlay(replace map[string]string, name string, text []byte) error {
	written := filepath.Join(m.temporary, strconv.Itoa(len(replace))+"_"+filepath.Base(name))
	replace[name] = written
	return os.WriteFile(written, text, 0o644)
}

func (m *mutant) compile(replace map[string]string) error {
	overlay := filepath.Join(m.temporary, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", m.binary(), ".")
	cmd.Dir = m.folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot compile the tests of %s with faults: %w\n%s", m.room, err, out)
	}
	if _, err := os.Stat(m.binary()); err != nil {
		return fmt.Errorf("%s has no tests in its folder", m.room)
	}
	return nil
}

func (m *mutant) binary() string { return filepath.Join(m.temporary, "planted.test") }

// run runs the tests without a fault, and then once for each fault that they reach. It prints the faults that no test
// catches, and last how many were caught.
func (m *mutant) run(w io.Writer, verbose bool) error {
	start := time.Now()
	reached := filepath.Join(m.temporary, "reached")
	if err := os.WriteFile(reached, nil, 0o644); err != nil {
		return err
	}
	out, err := m.tests(10*time.Minute, 0, reached)
	if err != nil {
		return fmt.Errorf("the tests of %s fail without any fault: %w\n%s", m.room, err, out)
	}
	took := time.Since(start)
	isReached, err := readReached(reached)
	if err != nil {
		return err
	}
	caught, missed := 0, 0
	for _, f := range m.faults {
		result := "no test runs it"
		if isReached[f.id] {
			out, err := m.tests(m.within+2*took, f.id, "")
			if result = "no test fails"; err != nil {
				result = "caught"
				caught++
			}
			if bytes.Contains(out, []byte("panic: test timed out")) || errors.Is(err, context.DeadlineExceeded) {
				result = "caught: the tests do not end"
			}
		} else {
			missed++
		}
		if verbose || !strings.HasPrefix(result, "caught") {
			if _, err := fmt.Fprintf(w, "%s/%s:%d:%d: %s: %s: %s\n", m.room, filepath.Base(f.pos.Filename), f.pos.Line,
				f.pos.Column, f.in, f.what, result); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(w, "%s: %d of %d faults caught (%d %%), %d in code that no test runs; "+
		"%d are possible; the tests take %v\n", m.room, caught, len(m.faults), caught*100/len(m.faults), missed,
		m.possible,
		took.Round(100*time.Millisecond))
	return err
}

// tests runs the test binary with a fault. It returns an error if a test fails, or if the tests take too long.
func (m *mutant) tests(within time.Duration, id int, reached string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within+5*time.Second)
	defer cancel()
	args := []string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$@"`, memory), "sh", m.binary(),
		"-test.short", "-test.failfast", "-test.timeout=" + within.String(), "-test.run=" + m.only}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = m.folder
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id), "MUTANT_REACHED="+reached)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}

func readReached(file string) (map[int]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := map[int]bool{}
	for _, line := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		all[id] = true
	}
	return all, nil
}
