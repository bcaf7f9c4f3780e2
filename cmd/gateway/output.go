package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/quote"
	"github.com/admission-gateway/gateway/policies/finding"
)

// output says how findings are written, and which of them fail the command.
type output struct {
	format string
	strict bool
	// strictest says that --strict was given: what documents ask for and the gateway cannot enforce is a warning too.
	strictest bool
	verbose   bool
	// advice says that findings about wording are shown, which never fail the command.
	advice bool
	checks []finding.Check
	// summarize counts the findings that only -v lists.
	summarize func([]finding.Finding) []finding.Finding
}

func (o *output) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", string(finding.Text),
		"write the findings as `FORMAT`: text, json, sarif or github")
	choices(cmd, "output", finding.Formats...)
	cmd.Flags().BoolVar(&o.strict, "strict", o.strict, "let warnings fail the command too")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also list what is only counted otherwise")
}

func (o *output) validate(cmd *cobra.Command) error {
	o.strictest = o.strict && cmd.Flags().Changed("strict")
	o.format = strings.ToLower(o.format)
	if !slices.Contains(finding.Formats, o.format) {
		return usageError("--output: must be '%s', not '%s'", strings.Join(finding.Formats, "', '"), o.format)
	}
	return nil
}

// withAdvice counts what only -v lists, and leaves out advice that is not asked for.
func (o *output) withAdvice(found []finding.Finding) []finding.Finding {
	var matter, advice []finding.Finding
	for _, f := range found {
		if f.Severity == finding.Wording {
			advice = append(advice, f)
		} else {
			matter = append(matter, f)
		}
	}
	if matter = finding.Summarized(matter); o.advice {
		matter = append(matter, advice...)
	}
	return matter
}

// write writes findings to w. It returns a failure if they have errors; in strict mode also if they have warnings.
func (o *output) write(w io.Writer, found []finding.Finding) error {
	if o.strictest {
		found = slices.Clone(found)
		for i := range found {
			if found[i].Severity == finding.Gap {
				found[i].Severity = finding.Warning
			}
		}
		found = finding.Sort(found)
	}
	if !o.verbose && o.format == string(finding.Text) {
		found = o.summarize(found)
	}
	if err := finding.Write(inColor(w, o.format, findingColors()), finding.Format(o.format), found,
		o.checks); err != nil {
		return err
	}
	errs, warnings := 0, 0
	for _, f := range found {
		switch f.Severity {
		case finding.Error:
			errs++
		case finding.Warning:
			warnings++
		}
	}
	if errs == 0 && (warnings == 0 || !o.strict) {
		return nil
	}
	return &failure{exitFailure, fmt.Errorf("%s, %s", quote.Count(errs, "error"), quote.Count(warnings, "warning"))}
}

// isTerminal reports whether the output goes to a terminal.
func isTerminal(w io.Writer) bool {
	file, is := w.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
