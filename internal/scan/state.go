package scan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A savedState is how far a scan is, as its file has it.
type savedState struct {
	// Scan identifies the scan: what is judged, by which policies and how.
	Scan     string    `json:"scan"`
	Position position  `json:"position"`
	Tally    *Tally    `json:"tally"`
	Listed   []Finding `json:"listed"`
	Notes    []string  `json:"notes,omitempty"`
}

// fingerprint identifies the scan.
func (s *scan) fingerprint() string {
	old := ""
	if s.options.Old != nil {
		old = s.options.Old.Set.Hash()
	}
	text, _ := json.Marshal([]any{ // texts and numbers
		s.options.New.Set.Hash(), old, s.options.Upstream, s.options.Files, s.options.AuditLogs, s.options.HARs,
		s.options.Resources, s.options.Namespace, s.options.As, s.options.User.Name,
		s.options.User.Groups, s.options.GroupBy, s.options.List,
	})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// resume returns the position from which the scan goes on, and takes what was counted up to there.
func (s *scan) resume() (position, error) {
	if s.options.StateFile == "" {
		return position{}, nil
	}
	text, err := os.ReadFile(s.options.StateFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return position{}, nil
	case err != nil:
		return position{}, usage("--state: %v", err)
	}
	known := savedState{Tally: newTally()}
	if err := json.Unmarshal(text, &known); err != nil || known.Tally == nil {
		return position{}, usage("--state: '%s' is no state of a scan; delete it to begin anew", s.options.StateFile)
	}
	if known.Scan != s.fingerprint() {
		return position{}, usage("--state: '%s' is of a scan of other objects, by other policies or with other flags; delete it to begin anew", s.options.StateFile)
	}
	s.tally.add(known.Tally)
	s.listed, s.position, s.notes.all = known.Listed, known.Position, known.Notes
	return known.Position, nil
}

// save writes the state, whole or not at all.
func (s *scan) save() error {
	s.notes.mu.Lock()
	text, err := json.Marshal(savedState{s.fingerprint(), s.position, s.tally, s.listed, s.notes.all})
	s.notes.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.options.StateFile), filepath.Base(s.options.StateFile)+".*")
	if err != nil {
		return fmt.Errorf("the state cannot be written: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.options.StateFile)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // a part of a state is not valid
		return fmt.Errorf("the state cannot be written: %w", err)
	}
	return nil
}

// forget removes the state of a scan that is at its end.
func (s *scan) forget() {
	if s.options.StateFile == "" {
		return
	}
	if err := os.Remove(s.options.StateFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.notes.add("the state of the scan, which is over, cannot be removed: " + err.Error())
	}
}
