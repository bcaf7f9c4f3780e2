package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// stdinFlags say that a file comes from the standard input.
type stdinFlags struct {
	on    bool
	watch bool
	name  string
}

func (s *stdinFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.on, "stdin", false, "also check a file that comes from the standard input")
	cmd.Flags().StringVar(&s.name, "stdin-name", "stdin.yaml",
		"say `FILE` for the standard input; it takes the place of a file of this name")
	cmd.Flags().BoolVar(&s.watch, "watch", false, "with --stdin: check each version of the file that ends with a zero byte, and answer it with a line of JSON")
}

// check checks what comes from the standard input beside the files of the paths. Only findings in
// it are reported.
func (s *stdinFlags) check(cmd *cobra.Command, paths []string, file string, out *output) error {
	var c *config.Configuration
	if file != "" {
		var err error
		if c, err = loadForCheck(file); err != nil {
			return &failure{exitUsage, err}
		}
	}
	if !s.watch {
		data, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return err
		}
		return out.write(cmd.OutOrStdout(), s.examine(data, paths, c))
	}
	in := bufio.NewReader(cmd.InOrStdin())
	for {
		data, err := in.ReadBytes(0)
		if len(data) > 0 {
			var b, line bytes.Buffer
			if err := finding.Write(&b, finding.JSON, s.examine(bytes.TrimSuffix(data, []byte{0}), paths, c),
				nil); err != nil {
				return err
			}
			if err := json.Compact(&line, b.Bytes()); err != nil {
				return err
			}
			cmd.Println(line.String())
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// examine finds what is wrong with a version of the file.
func (s *stdinFlags) examine(data []byte, paths []string, c *config.Configuration) (about []finding.Finding) {
	read := source.Read(paths, &source.Progress{})
	files := []source.File{{Name: s.name, Data: data}}
	for _, f := range read.Files {
		if f.Name != s.name {
			files = append(files, f)
		} else {
			files[0].IsUnused = f.IsUnused
		}
	}
	all := source.Of(files)
	all.Focus = s.name
	for _, f := range examine(all, c, nil) {
		if f.File == s.name {
			about = append(about, f)
		}
	}
	return about
}
