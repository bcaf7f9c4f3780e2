// Play sends the requests of a scenario to a server, and prints the answers: the head of each as it came,
// with the line ends of the scenario, and its body whole. The tests of e2e/, a module that shares no
// dependencies with this one, run it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"

	"golang.org/x/tools/txtar"

	"github.com/admission-gateway/gateway/internal/testutil/scenario"
)

func main() {
	name := flag.String("name", "", "what `NAME` stands for in the requests")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: play [-name NAME] ADDRESS STORY")
		os.Exit(2)
	}
	answers, err := play(flag.Arg(0), flag.Arg(1), *name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(answers)
}

// play returns the answers as an archive with a file for each, whose name is the first line of its
// request.
func play(address, file, name string) ([]byte, error) {
	s, err := scenario.Open(file)
	if err != nil {
		return nil, err
	}
	var answers txtar.Archive
	for _, request := range s.Sections("request.") {
		line, _, _ := bytes.Cut(request, []byte("\n"))
		c, err := net.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		answer, body, err := scenario.Ask(c, scenario.Wire(bytes.ReplaceAll(request, []byte("NAME"), []byte(name))))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		head, _, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
		shown := append(append(bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), "\n\n"...), body...)
		answers.Files = append(answers.Files,
			txtar.File{Name: string(line), Data: bytes.ReplaceAll(shown, []byte(name), []byte("NAME"))})
	}
	return txtar.Format(&answers), nil
}
