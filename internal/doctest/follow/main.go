// Follow follows a page of the documentation as its reader would; see package doctest. The tests of e2e/, a module
// that shares no dependencies with this one, run it.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/admission-gateway/gateway/internal/doctest"
)

func main() {
	o := doctest.Options{Commands: map[string]string{}}
	flag.StringVar(&o.Gateway, "gateway", "gateway", "the `PROGRAM` that the page calls gateway")
	flag.Func("command", "another program, as `NAME=PATH`; may be repeated", func(s string) error {
		name, path, _ := strings.Cut(s, "=")
		o.Commands[name] = path
		return nil
	})
	flag.Func("env", "a variable of the environment, as `NAME=VALUE`; may be repeated", func(s string) error {
		o.Env = append(o.Env, s)
		return nil
	})
	flag.Func("volatile", "a regular `EXPRESSION` of what differs from run to run", func(s string) (err error) {
		o.Volatile, err = regexp.Compile(s)
		return err
	})
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: follow [flags] PAGE")
		os.Exit(2)
	}
	if err := doctest.Follow(flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
