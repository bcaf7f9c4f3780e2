// Mutants measures the tests of a package: it plants single-line faults in the package, one at a time, runs the tests
// that stand in its folder, and prints each fault that they do not catch.
//
// Usage: mutants [-n N] [-seed S] [-run REGEXP] [-timeout D] [-v] DIR PACKAGE, where DIR holds the module's go.mod and
// PACKAGE is a folder in it. It takes a sample of N faults; -n 0 takes all. The same seed takes the same faults of the
// same code. The tests run with -short. No file is changed: the go command compiles the planted files through an
// overlay.
//
// equivalent.txt lists the faults that change nothing that a test could see. They are left out of the sample.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	n := flag.Int("n", 100, "how many faults to plant; 0 is all")
	seed := flag.Uint64("seed", 1, "the seed of the sample")
	only := flag.String("run", "", "run only the tests that match this expression")
	within := flag.Duration("timeout", 10*time.Second, "how much longer than without a fault tests may take before they count as failed")
	verbose := flag.Bool("v", false, "print the faults that are caught as well")
	list := flag.String("equivalent", "mutants/equivalent.txt", "the file with the faults that change nothing")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	equivalent, err := readEquivalent(*list)
	if err != nil {
		fail(err)
	}
	m, err := build(flag.Arg(0), flag.Arg(1), sample{n: *n, seed: *seed, equivalent: equivalent})
	if err != nil {
		fail(err)
	}
	defer m.remove()
	m.only, m.within = *only, *within
	if err := m.run(os.Stdout, *verbose); err != nil {
		m.remove()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "mutants:", err)
	os.Exit(2)
}
