package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/source"
)

// writeList writes the operations that the files describe, and the checks of each. With a configuration it says by
// which routes they are reached.
func writeList(cmd *cobra.Command, paths []string, file string) error {
	files := source.Read(paths, &source.Progress{})
	gateway := policies.Gateway{}
	compile := func() (*policies.Set, []policies.Finding) { return policies.Compile(files) }
	if file != "" {
		c, err := loadForCheck(file)
		if err != nil {
			return err
		}
		gateway, files = asked(c), readFor(paths, c)
		compile = func() (*policies.Set, []policies.Finding) { return policies.CompileFor(files, gateway) }
	}
	set, _ := compile()
	if set == nil {
		return nil // the findings say why
	}
	var w, out bytes.Buffer
	fmt.Fprint(&w, "METHOD\tPATH\tRESOURCE\tROUTES\tHOLDS\n")
	for _, one := range set.DescribedOperations(gateway.LocalLocks) {
		fmt.Fprintf(&w, "%s\t%s\t%s\t%s\t%s\n", one.Method, one.Path, cmp.Or(one.Resource, "-"),
			cmp.Or(strings.Join(one.Routes(gateway.Routes), ", "), "-"), one.Holds())
	}
	var idle []admin.Idle
	for _, one := range set.Applicability().MayNotApply() {
		idle = append(idle, idleOf(&one))
	}
	writeIdle(&w, idle)
	writeOwners(&w, files, set)
	if err := align(&out, w.Bytes()); err != nil {
		return err
	}
	return printable(cmd.OutOrStdout(), out.Bytes())
}
