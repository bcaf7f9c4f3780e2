package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Policies says where the policy files are. In a file it is a list of paths, or an object.
type Policies struct {
	// Paths are files and directories. Paths in a file are relative to its directory.
	Paths []PolicyPath `json:"paths"`
	// LastGood keeps the files that were last without errors, for gateways that start while they
	// have some; nil keeps none.
	LastGood *LastGood `json:"lastGood"`
}

// A PolicyPath leads to policy files. In a file it is a path, or an object.
//
// All paths without an owner are loaded together. A path with an owner is loaded by itself: while its files have
// errors, those that were last in force stay, and the files of others come into force.
type PolicyPath struct {
	// Path is a file or a directory.
	Path string `json:"path"`
	// Owner names who mends the files. Clients and operators read it.
	Owner string `json:"owner"`
	// Concerns says which requests the files may be about; nil means all.
	Concerns *Concerns `json:"concerns"`
}

// Concerns are requests: those by some routes, those for some hosts, and those for resources of some API groups.
type Concerns struct {
	// Routes are names of routes.
	Routes []string `json:"routes"`
	// Hosts are hosts of routes.
	Hosts []string `json:"hosts"`
	// Groups are API groups; "" is the core group.
	Groups []string `json:"groups"`
}

// PolicyPaths returns paths without owners.
func PolicyPaths(names ...string) []PolicyPath {
	paths := make([]PolicyPath, len(names))
	for i, name := range names {
		paths[i].Path = name
	}
	return paths
}

// Names returns the files and directories, whoever owns them.
func (p *Policies) Names() []string {
	names := make([]string, len(p.Paths))
	for i := range p.Paths {
		names[i] = p.Paths[i].Path
	}
	return names
}

// LastGood says where policy files are kept. In a configuration file, a path is relative to its
// directory.
type LastGood struct {
	// Path is the file that keeps them, on a volume that outlives the process.
	Path string `json:"path"`
	// KeyFile has the key that authenticates them, of at least 32 bytes.
	KeyFile string `json:"keyFile"`
	// MaxAgeSeconds is how long they may be used after they were last seen without errors.
	MaxAgeSeconds Seconds `json:"maxAgeSeconds"`
}

// MaxAge is MaxAgeSeconds.
func (l *LastGood) MaxAge() time.Duration { return l.MaxAgeSeconds.Duration() }

// policiesObject is Policies without its own way of decoding.
type policiesObject Policies

// UnmarshalJSON takes a list of paths, or an object.
func (p *Policies) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		return json.Unmarshal(data, (*policiesObject)(p))
	}
	if len(data) == 0 || data[0] != '[' {
		return errors.New("must be a list of files and directories, or an object with `paths`")
	}
	return json.Unmarshal(data, &p.Paths)
}

// policyPathObject is PolicyPath without its own way of decoding.
type policyPathObject PolicyPath

// UnmarshalJSON takes a path, or an object.
func (p *PolicyPath) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		return json.Unmarshal(data, (*policyPathObject)(p))
	}
	if json.Unmarshal(data, &p.Path) != nil {
		return errors.New("must be a file or directory, or an object with `path` and `owner`")
	}
	return nil
}

// insidePolicies says which type is behind Policies and PolicyPath.
func insidePolicies(t reflect.Type, isObject bool) (reflect.Type, bool) {
	switch {
	case t == reflect.TypeFor[Policies]() && isObject:
		return reflect.TypeFor[policiesObject](), true
	case t == reflect.TypeFor[Policies]():
		return reflect.TypeFor[[]PolicyPath](), true
	case t == reflect.TypeFor[PolicyPath]() && isObject:
		return reflect.TypeFor[policyPathObject](), true
	case t == reflect.TypeFor[PolicyPath]():
		return reflect.TypeFor[string](), true
	}
	return nil, false
}

// maxAgeSeconds bounds LastGood.MaxAgeSeconds: a month is longer than any incident.
const maxAgeSeconds = 30 * maxSeconds

// files are the names of files in p.
func (p *Policies) files() []*string {
	var names []*string
	for i := range p.Paths {
		names = append(names, &p.Paths[i].Path)
	}
	if p.LastGood != nil {
		names = append(names, &p.LastGood.Path, &p.LastGood.KeyFile)
	}
	return names
}

// policies checks where the policy files are.
func (v *validator) policies(p *Policies, routes []Route) {
	path := "policies"
	if _, isObject := v.object.At("policies.paths"); isObject {
		path = "policies.paths"
	}
	for i := range p.Paths {
		at := fmt.Sprintf("%s[%d]", path, i)
		if _, isObject := v.object.At(at + ".path"); isObject || p.Paths[i].isOwned() {
			v.ownedPath(at, &p.Paths[i], routes)
		} else if p.Paths[i].Path == "" {
			v.check(at, "must name a file or directory")
		}
		if other := p.overlapping(i); other != "" {
			v.check(at, fmt.Sprintf("must be apart from '%s': a file has one owner", other))
		}
	}
	if l := p.LastGood; l != nil {
		v.required("policies.lastGood.path", l.Path)
		v.required("policies.lastGood.keyFile", l.KeyFile)
		v.within("policies.lastGood.maxAgeSeconds", l.MaxAgeSeconds, 1, maxAgeSeconds)
	}
}

// isOwned reports whether the files are loaded by themselves.
func (p *PolicyPath) isOwned() bool { return p.Owner != "" || p.Concerns != nil }

// maxOwner bounds the letters of an owner, which metrics and answers have.
const maxOwner = 63

// ownedPath checks a path with an owner.
func (v *validator) ownedPath(at string, p *PolicyPath, routes []Route) {
	v.required(at+".path", p.Path)
	v.required(at+".owner", p.Owner)
	if len(p.Owner) > maxOwner || strings.ContainsFunc(p.Owner, func(c rune) bool { return c != '@' && notPlain(c) }) {
		v.check(at+".owner", fmt.Sprintf("must have at most %d characters, all of them letters, digits, '-', '.', '_', '~' or '@'", maxOwner))
	}
	c := p.Concerns
	if c == nil {
		return
	}
	if len(c.Routes)+len(c.Hosts)+len(c.Groups) == 0 {
		v.check(at+".concerns", "must have `routes`, `hosts` or `groups`; without `concerns` the files may concern all requests")
	}
	for i, name := range c.Routes {
		if name == "" || !slices.ContainsFunc(routes, func(r Route) bool { return r.Name == name }) {
			v.check(fmt.Sprintf("%s.concerns.routes[%d]", at, i), "must be the `name` of a route")
		}
	}
	for i, host := range c.Hosts {
		if host == "" || !slices.ContainsFunc(routes, func(r Route) bool { return r.Host == host }) {
			v.check(fmt.Sprintf("%s.concerns.hosts[%d]", at, i), "must be the `host` of a route")
		}
	}
	for i, group := range c.Groups {
		if group != "" && len(validation.IsDNS1123Subdomain(group)) > 0 {
			v.check(fmt.Sprintf("%s.concerns.groups[%d]", at, i),
				fmt.Sprintf("must be the name of an API group, or '' for the core group, not '%s'", group))
		}
	}
}

// overlapping returns a path before the one at i that leads to some of the same files, if one of the two has an owner;
// "" if none does.
func (p *Policies) overlapping(i int) string {
	one := &p.Paths[i]
	for k := range p.Paths[:i] {
		other := &p.Paths[k]
		if (one.isOwned() || other.isOwned()) && one.Path != "" && other.Path != "" &&
			(IsWithin(one.Path, other.Path) || IsWithin(other.Path, one.Path)) {
			return other.Path
		}
	}
	return ""
}

// IsWithin reports whether a path is a folder or below it. Both are absolute, or relative to the same directory.
func IsWithin(folder, path string) bool {
	to, err := filepath.Rel(folder, path)
	return err == nil && to != ".." && !strings.HasPrefix(to, ".."+string(filepath.Separator))
}
