package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/policies/finding"
)

// A Folder is what one owner has of the policy files. It is loaded by itself: its errors hold back no other folder.
type Folder struct {
	// Paths are files and directories.
	Paths []string
	// Owner names who mends the files; "" for the paths that have no owner, which are one folder.
	Owner string
	// Concerns says which requests the files may be about; nil means all.
	Concerns *Concerns
}

// Name returns the paths of the folder.
func (f *Folder) Name() string { return strings.Join(f.Paths, ", ") }

// String names the folder to the author of a file.
func (f *Folder) String() string {
	if f.Owner == "" {
		return "'" + f.Name() + "'"
	}
	return "'" + f.Name() + "' of '" + f.Owner + "'"
}

// Concerns are requests: those by some routes, those for some hosts, and those for resources of some API groups.
type Concerns struct{ Routes, Hosts, Groups []string }

// CoversRoute reports whether all requests by a route are meant. Its name and its host may be empty.
func (c *Concerns) CoversRoute(name, host string) bool {
	return c == nil || name != "" && slices.Contains(c.Routes, name) || host != "" && slices.Contains(c.Hosts, host)
}

// HasGroup reports whether all requests for resources of a group are meant.
func (c *Concerns) HasGroup(group string) bool { return c == nil || slices.Contains(c.Groups, group) }

// String names the requests.
func (c *Concerns) String() string {
	if c == nil {
		return "all requests"
	}
	var parts []string
	for _, one := range []struct {
		word  string
		names []string
	}{{"route", c.Routes}, {"host", c.Hosts}, {"group", c.Groups}} {
		switch len(one.names) {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf("the %s '%s'", one.word, one.names[0]))
		default:
			parts = append(parts, fmt.Sprintf("the %ss '%s'", one.word, strings.Join(one.names, "', '")))
		}
	}
	return strings.Join(parts, ", ")
}

// ReadFolders reads each folder as [Read] does.
func ReadFolders(folders []Folder, p *Progress) []*Source {
	read := make([]*Source, len(folders))
	for i := range folders {
		read[i] = Read(folders[i].Paths, p)
	}
	return read
}

// Join makes one source of the files of folders. A folder without files, nil, is left out: none of what it concerns may
// be served.
func Join(folders []Folder, read []*Source) *Source {
	joined := &Source{Folders: folders}
	for i, s := range read {
		if s == nil {
			joined.Held = append(joined.Held, &folders[i])
			continue
		}
		for _, f := range s.Files {
			f.Folder = i
			joined.Files = append(joined.Files, f)
		}
		joined.Found = append(joined.Found, s.Found...)
		joined.Dirs = append(joined.Dirs, s.Dirs...)
	}
	slices.SortStableFunc(joined.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(joined.Dirs)
	joined.Dirs = slices.Compact(joined.Dirs)
	joined.Hash = hashOf(joined.Files, joined.Held)
	return joined
}

// FolderOf returns the folder of a file, and -1 if none has it. Findings about a folder as a whole name one of its
// paths.
func FolderOf(folders []Folder, read []*Source, file string) int {
	for i, s := range read {
		if s == nil {
			continue
		}
		if slices.Contains(folders[i].Paths, file) ||
			slices.ContainsFunc(s.Files, func(f File) bool { return f.Name == file }) ||
			slices.ContainsFunc(s.Found, func(f finding.Finding) bool { return f.File == file }) {
			return i
		}
	}
	return -1
}
