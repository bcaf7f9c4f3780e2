package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page for each command into a folder: gateway.1, gateway-serve.1 and so on. They bear the version of the
gateway, and the month, or the one of SOURCE_DATE_EPOCH if it is set, so that a build that sets it is reproducible.`,
		Example: `  gateway man /usr/local/share/man/man1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("name the folder that the pages are written to")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			prepareForMan(cmd.Root())
			return doc.GenManTree(cmd.Root(),
				&doc.GenManHeader{Source: "gateway " + version(), Manual: "Admission Gateway"}, args[0])
		},
	}
}

// prepareForMan makes the help of a command and of all below it what cobra's generator understands:
// Markdown, in which an example is indented by four spaces, and a '*' or '_' of our own is escaped.
func prepareForMan(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	cmd.InitDefaultHelpFlag()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		f.Usage = escaped.Replace(usage)
	})
	for _, c := range cmd.Commands() {
		prepareForMan(c)
	}
}

// escaped escapes what Markdown would take for marks.
var escaped = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`)

func markdown(help string) string {
	lines := strings.Split(help, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "    " + line
		} else {
			lines[i] = escaped.Replace(line)
		}
	}
	return strings.Join(lines, "\n")
}
