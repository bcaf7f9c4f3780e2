package main

import (
	"cmp"
	"go/types"
	"maps"
	"path/filepath"
	"slices"

	"github.com/admission-gateway/gateway/tools/load"
)

// arrow leads from a file to another one whose declarations it uses.
type arrow struct{ from, to string }

// graph holds the arrows between the files of a package, each with its names.
type graph map[arrow][]string

// arrowsOf returns the arrows of the package. Uses of fields do not count: code with a value of a
// type knows them.
func arrowsOf(p load.Package) graph {
	all := graph{}
	for id, used := range p.TypesInfo.Uses {
		if used.Pkg() != p.Types || !counts(used, p.Types) {
			continue
		}
		a := arrow{
			from: filepath.Base(p.Fset.Position(id.Pos()).Filename),
			to:   filepath.Base(p.Fset.Position(used.Pos()).Filename),
		}
		if a.from != a.to && !slices.Contains(all[a], used.Name()) {
			all[a] = append(all[a], used.Name())
		}
	}
	for _, names := range all {
		slices.Sort(names)
	}
	return all
}

// counts reports whether o is declared at the package's level or is a method.
func counts(o types.Object, p *types.Package) bool {
	if f, is := o.(*types.Func); is && f.Signature().Recv() != nil {
		return true
	}
	return o.Parent() == p.Scope()
}

// backUp returns the arrows that point up in the best order of the files that is found, sorted.
func (g graph) backUp() []arrow {
	place := places(g.order())
	var up []arrow
	for a := range g {
		if place[a.from] > place[a.to] {
			up = append(up, a)
		}
	}
	slices.SortFunc(up, func(a, b arrow) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	return up
}

// order returns the files so that few arrows point up. The least number is hard to find (the minimum feedback arc set);
// the heuristic of Eades, Lin and Smyth comes near, and moves of single files as long as one helps come nearer. Ties go
// by name, so that the same code has the same count.
func (g graph) order() []string {
	files := g.greedy()
	for from := 0; from < len(files); from++ {
		if to, gain := g.bestMove(files, from); gain > 0 {
			move(files, from, to)
			from = -1 // each move helps, so it ends
		}
	}
	return files
}

// greedy takes files that no arrow leaves to the end, files that no arrow reaches to the front, and
// if there is neither, the file with most leaving over arriving arrows to the front.
func (g graph) greedy() []string {
	leaving, arriving := map[string]int{}, map[string]int{}
	rest := map[string]bool{}
	for a := range g {
		leaving[a.from]++
		arriving[a.to]++
		rest[a.from], rest[a.to] = true, true
	}
	var front, end []string
	for len(rest) > 0 {
		names := slices.Sorted(maps.Keys(rest))
		at := slices.IndexFunc(names, func(n string) bool { return leaving[n] == 0 })
		isEnd := at >= 0
		if !isEnd {
			best := func(a, b string) int { return cmp.Compare(leaving[b]-arriving[b], leaving[a]-arriving[a]) }
			at = slices.IndexFunc(names, func(n string) bool { return arriving[n] == 0 })
			if at < 0 {
				at = slices.Index(names, slices.MinFunc(names, best))
			}
		}
		next := names[at]
		if isEnd {
			end = append(end, next)
		} else {
			front = append(front, next)
		}
		delete(rest, next)
		for a := range g {
			if a.from == next {
				arriving[a.to]--
			}
			if a.to == next {
				leaving[a.from]--
			}
		}
	}
	slices.Reverse(end)
	return append(front, end...)
}

// bestMove returns the position at which the file at from has the fewest arrows up, and by how many
// they become fewer.
func (g graph) bestMove(files []string, from int) (to, gain int) {
	file, sum := files[from], 0
	// To pass another file turns the arrows between the two: one to it then points up, one from it down.
	passes := func(other string, below bool) int {
		_, toOther := g[arrow{file, other}]
		_, toFile := g[arrow{other, file}]
		switch {
		case toOther == toFile:
			return 0
		case toFile == below:
			return 1
		default:
			return -1
		}
	}
	to = from
	for i := from - 1; i >= 0; i-- {
		if sum += passes(files[i], false); sum > gain {
			to, gain = i, sum
		}
	}
	sum = 0
	for i := from + 1; i < len(files); i++ {
		if sum += passes(files[i], true); sum > gain {
			to, gain = i, sum
		}
	}
	return to, gain
}

func move(files []string, from, to int) {
	file := files[from]
	copy(files[from:], files[from+1:])
	copy(files[to+1:], files[to:len(files)-1])
	files[to] = file
}

func places(files []string) map[string]int {
	place := map[string]int{}
	for i, f := range files {
		place[f] = i
	}
	return place
}
