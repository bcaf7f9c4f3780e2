// Package limits compares the counts that linters find in the code with a file of limits that may
// only shrink: a count above its limit is a step back, and a count below it has to be written down,
// so that it cannot rise again.
package limits

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Counts has how much was found, or is allowed, by name. A name that is missing counts zero.
type Counts map[string]int

// Main is the whole command of a linter named tool: it counts in the directory that the command line
// names, compares with the limits in file, and ends the process, with 1 if a limit is not held and
// with 2 if it cannot count. With -w it lowers the limits to what it counts instead.
func Main(tool, file string, count func(dir string) (Counts, error)) {
	write := flag.Bool("w", false, "write what is counted as the new limits; refused if their sum grows")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	departures, err := run(file, *write, func() (Counts, error) { return count(dir) })
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
		os.Exit(2)
	}
	for _, d := range departures {
		fmt.Println(d)
	}
	if len(departures) > 0 {
		os.Exit(1)
	}
}

// run returns a sentence for each count that departs from the limits in file.
func run(file string, write bool, count func() (Counts, error)) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the limits: %w", err)
	}
	limits, head, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	found, err := count()
	if err != nil {
		return nil, err
	}
	if write {
		if found.sum() > limits.sum() {
			return nil, fmt.Errorf("%s: the limits may only shrink: their sum is %d, and the code counts %d",
				file, limits.sum(), found.sum())
		}
		return nil, os.WriteFile(file, found.format(head), 0o644)
	}
	departures := limits.departures(found)
	for i, d := range departures {
		departures[i] = file + ": " + d
	}
	return departures, nil
}

// departures returns a sentence for each count that is not its limit, in the order of names.
func (c Counts) departures(found Counts) []string {
	names := maps.Clone(c)
	maps.Copy(names, found)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		limit, n := c[name], found[name]
		switch {
		case n > limit:
			all = append(all, fmt.Sprintf("%s: counts %d, more than its limit of %d", name, n, limit))
		case n < limit:
			all = append(all,
				fmt.Sprintf("%s: counts %d, less than its limit of %d: lower the limit with `make limits`", name, n,
					limit))
		}
	}
	return all
}

func (c Counts) sum() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

// parse reads lines of a name, a space and a count. The comment at the head is returned as it is.
func parse(text []byte) (counts Counts, head []byte, err error) {
	counts = Counts{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			if len(counts) > 0 {
				return nil, nil, fmt.Errorf("line %d: a comment must stand above the first limit", number)
			}
			head = append(append(head, line...), '\n')
			continue
		}
		name, value, err := split(line)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %q: %w", number, line, err)
		}
		if _, has := counts[name]; has {
			return nil, nil, fmt.Errorf("line %d: %s has a limit already", number, name)
		}
		counts[name] = value
	}
	return counts, head, lines.Err()
}

func split(line string) (string, int, error) {
	at := strings.LastIndexByte(line, ' ')
	if at < 1 {
		return "", 0, errors.New("must be a name, a space and a count")
	}
	value, err := strconv.Atoi(line[at+1:])
	if err != nil || value < 1 {
		return "", 0, errors.New("the count must be a whole number above 0")
	}
	return line[:at], value, nil
}

// format returns the counts above zero as parse reads them, sorted by name.
func (c Counts) format(head []byte) []byte {
	text := slices.Clone(head)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] > 0 {
			text = fmt.Appendf(text, "%s %d\n", name, c[name])
		}
	}
	return text
}
