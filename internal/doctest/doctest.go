// Package doctest follows a page of the documentation as its reader would: it writes the files that the page shows,
// runs the commands in their order, and compares what they print with what the page says they print.
//
// A page is Markdown. Its blocks mean:
//
//   - a block of any language below a paragraph that begins with "Write `NAME`" is the file NAME;
//   - a block of the language sh is a script. If the paragraph above begins with "In a terminal of its own", the script
//     runs until the page ends; else its exit code must be 0, unless the page shows what it prints;
//   - a block of another language that is the next one after a script shows the output of the
//     script.
//
// A page is followed up to the line [reference], if it has one.
package doctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/admission-gateway/gateway/internal/testutil"
)

// patience is how long a command may take, and a server until it serves.
const patience = 2 * time.Minute

// reference is the line of a page below which it has blocks to look up rather than to follow.
const reference = "\n<!-- what follows is reference -->\n"

// Options say what a page needs beside itself.
type Options struct {
	// Gateway is the program that the page calls gateway.
	Gateway string
	// Commands are further programs, by the names that the page calls them.
	Commands map[string]string
	// Env are variables of the environment, as in [os.Environ].
	Env []string
	// Volatile matches what differs from one run to the next, such as times.
	Volatile *regexp.Regexp
}

// Follow follows the page in a directory of its own, which it removes. Its error says what went otherwise than the page
// says.
func Follow(page string, o Options) (err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	followed, _, _ := strings.Cut(string(text), reference)
	blocks, err := parse(followed)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	r := &reader{Options: o}
	defer func() {
		if ended := r.end(); err != nil {
			err = fmt.Errorf("%w\n%s", err, ended)
		}
	}()
	if err := r.begin(); err != nil {
		return err
	}
	for i, b := range blocks {
		var next *block
		if i+1 < len(blocks) && blocks[i+1].isAnswer() {
			next = &blocks[i+1]
		}
		if b.isAnswer() && (i == 0 || blocks[i-1].language != "sh" || blocks[i-1].isServer) {
			err = errors.New("the block is neither a file nor an answer")
		} else {
			err = r.follow(&b, next)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", page, b.line, err)
		}
	}
	return nil
}

// follow does what a block says; answer has its output, nil if the page does not show it.
func (r *reader) follow(b, answer *block) error {
	switch {
	case b.file != "":
		return r.write(b.file, b.text)
	case b.isAnswer():
		return nil
	case b.isServer:
		return r.start(b.text)
	}
	got, err := r.run(b.text)
	switch {
	case answer == nil && err != nil:
		return fmt.Errorf("%w\n%s", err, got)
	case answer != nil && r.fixed(got) != r.fixed(answer.text):
		return fmt.Errorf("prints\n%s\nthe page shows\n%s", got, answer.text)
	}
	return nil
}

// A block is a fenced block of a page.
type block struct {
	line     int
	language string
	text     string
	file     string // that it is, "" if it is none
	isServer bool   // it runs until the page ends
}

// isAnswer reports whether the block shows the output of a script.
func (b *block) isAnswer() bool { return b.language != "sh" && b.file == "" }

var (
	fence    = regexp.MustCompile("^```([a-z]*)$")
	fileName = regexp.MustCompile("^Write `([^`]+)`")
)

// parse returns the blocks of a page.
func parse(page string) (blocks []block, err error) {
	var open *block
	paragraph, isOver := "", false
	for i, line := range strings.SplitAfter(page, "\n") {
		bare := strings.TrimRight(line, "\n")
		switch m := fence.FindStringSubmatch(bare); {
		case open != nil && bare == "```":
			blocks, open = append(blocks, *open), nil
			paragraph = ""
		case open != nil:
			open.text += line
		case m != nil:
			open = &block{line: i + 1, language: m[1],
				isServer: strings.HasPrefix(paragraph, "In a terminal of its own")}
			if name := fileName.FindStringSubmatch(paragraph); name != nil {
				open.file = name[1]
			}
		case bare == "":
			isOver = true
		default:
			if isOver {
				paragraph, isOver = "", false
			}
			paragraph += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block of line %d does not end", open.line)
	}
	return blocks, nil
}

// A reader follows a page.
type reader struct {
	Options
	dir     string // the reader's directory; bin, beside it, has the programs
	env     []string
	here    *strings.Replacer // from the page's ports to the ports of this run
	page    *strings.Replacer // and back
	servers []*server
}

// A server runs until the page ends.
type server struct {
	command *exec.Cmd
	script  string
	printed output
	ended   chan struct{}
}

// ports are the ports that pages name.
var ports = []string{"8001", "8080", "8081", "8082", "8083", "9000", "9090"}

// begin makes the directories, and finds free ports.
func (r *reader) begin() error {
	root, err := os.MkdirTemp("", "doctest-")
	if err != nil {
		return err
	}
	r.dir = filepath.Join(root, "work")
	bin, home := filepath.Join(root, "bin"), filepath.Join(root, "home")
	for _, dir := range []string{r.dir, bin, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	var here, page []string
	free := map[string]string{}
	for _, port := range ports {
		reserved, err := testutil.ReservePort()
		if err != nil {
			return err
		}
		free[port] = strconv.Itoa(reserved)
		here, page = append(here, port, free[port]), append(page, free[port], port)
	}
	r.here, r.page = strings.NewReplacer(here...), strings.NewReplacer(page...)
	script := fmt.Sprintf(`#!/bin/sh
case "$*" in
serve*--listen*) exec %[1]s "$@" ;;
esac
case "$1" in
serve) exec %[1]s "$@" --listen 127.0.0.1:%[2]s --admin 127.0.0.1:%[3]s ;;
backend) exec %[1]s "$@" --listen 127.0.0.1:%[4]s ;;
esac
exec %[1]s "$@"
`, r.Gateway, free["8080"], free["8081"], free["9000"])
	if err := os.WriteFile(filepath.Join(bin, "gateway"), []byte(script), 0o700); err != nil {
		return err
	}
	for name, path := range r.Commands {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	r.env = append(append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH")), r.Env...)
	return nil
}

// end stops the servers, removes the directories and returns what the servers printed.
func (r *reader) end() string {
	var all strings.Builder
	for _, s := range r.servers {
		_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
		<-s.ended
		all.WriteString(s.script + s.printed.String())
	}
	if r.dir != "" {
		_ = os.RemoveAll(filepath.Dir(r.dir)) // the system clears what is left
	}
	return all.String()
}

// write makes a file of the page.
func (r *reader) write(name, text string) error {
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(r.here.Replace(text)), 0o600)
}

// command prepares a script of the page.
func (r *reader) command(ctx context.Context, script string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", r.here.Replace(script))
	c.Dir, c.Env = r.dir, r.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

// run runs a script and returns what it prints, with the ports of the page.
func (r *reader) run(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := r.command(ctx, script)
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	out, err := c.CombinedOutput()
	return r.page.Replace(string(out)), err
}

var isServing = regexp.MustCompile(`serv(e|es|ing)\b|ready to receive`)

// start runs a script until the page ends, and waits until it says that it serves.
func (r *reader) start(script string) error {
	s := &server{command: r.command(context.Background(), script), script: script, ended: make(chan struct{})}
	s.command.Stdout, s.command.Stderr = &s.printed, &s.printed
	if err := s.command.Start(); err != nil {
		return err
	}
	r.servers = append(r.servers, s)
	go func() {
		_ = s.command.Wait()
		close(s.ended)
	}()
	for deadline := time.Now().Add(patience); !isServing.MatchString(s.printed.String()); time.Sleep(
		5 * time.Millisecond) {
		select {
		case <-s.ended:
			return errors.New("the server ended")
		default:
		}
		if time.Now().After(deadline) {
			return errors.New("the server does not serve")
		}
	}
	return nil
}

// fixed returns what is printed without what differs from run to run.
func (r *reader) fixed(printed string) string {
	printed = strings.TrimSpace(strings.ReplaceAll(printed, "\r\n", "\n"))
	if r.Volatile == nil {
		return printed
	}
	return r.Volatile.ReplaceAllString(printed, "…")
}

// An output collects what a server prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
