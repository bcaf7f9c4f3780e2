// Arrows counts, for each package of a module, the arrows between its files, and how many of them run back up.
//
// An arrow leads from file A to file B if A uses an identifier that B declares at package level, or a method that B
// declares. Files can be put into an order in which as many arrows as possible point down, as the packages of the
// module are; an arrow that still points up is one that makes a reader go back. A package without circles has none.
//
// Usage: arrows [-w] [-v ROOM] DIR, where DIR holds the module's go.mod. Without -v it compares the arrows back up of
// each package that has too many (more than 15 % of all, and more than 2) with limits.txt, which may only shrink. With
// -v it prints the count of each package whose folder begins with ROOM ("." is all), and the arrows that run up.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/admission-gateway/gateway/tools/limits"
	"github.com/admission-gateway/gateway/tools/load"
)

// A package whose arrows back up are at most this share of all, or at most this many, needs no row in the limits.
const (
	freePercent = 15
	free        = 2
)

func main() {
	room := flag.String("v", "", "print the arrows of the packages whose folder begins with this, and compare nothing")
	limits.Main("arrows", "arrows/limits.txt", func(dir string) (limits.Counts, error) {
		packages, err := load.Module(dir)
		if err != nil {
			return nil, err
		}
		if *room != "" {
			for _, p := range packages {
				if *room == "." || strings.HasPrefix(p.Room, *room) {
					show(p)
				}
			}
			os.Exit(0)
		}
		return count(packages), nil
	})
}

// count returns the arrows back up of the packages that have too many.
func count(packages []load.Package) limits.Counts {
	counts := limits.Counts{}
	for _, p := range packages {
		all := arrowsOf(p)
		up := len(all.backUp())
		if up > free && up*100 > len(all)*freePercent {
			counts[p.Room] = up
		}
	}
	return counts
}

func show(p load.Package) {
	all := arrowsOf(p)
	up := all.backUp()
	fmt.Printf("%s: %d of %d arrows run back up\n", p.Room, len(up), len(all))
	for _, a := range up {
		fmt.Printf("\t%s -> %s: %s\n", a.from, a.to, strings.Join(all[a], ", "))
	}
}
