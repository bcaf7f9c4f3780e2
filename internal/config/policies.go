package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Policies says where the policy files are. In a file it is a list of paths, or an object.
type Policies struct {
	// Paths are files and directories. Paths in a file are relative to its directory.
	Paths []string `json:"paths"`
	// LastGood keeps the files that were last without errors, for gateways that start while they
	// have some; nil keeps none.
	LastGood *LastGood `json:"lastGood"`
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
	var paths []string
	if json.Unmarshal(data, &paths) != nil {
		return fmt.Errorf("must be a list of files and directories, or an object with `paths`")
	}
	p.Paths = paths
	return nil
}

// insidePolicies says which type is behind Policies.
func insidePolicies(t reflect.Type, isObject bool) (reflect.Type, bool) {
	switch {
	case t != reflect.TypeFor[Policies]():
		return nil, false
	case isObject:
		return reflect.TypeFor[policiesObject](), true
	}
	return reflect.TypeFor[[]string](), true
}

// maxAgeSeconds bounds LastGood.MaxAgeSeconds: a month is longer than any incident.
const maxAgeSeconds = 30 * maxSeconds

// files are the names of files in p.
func (p *Policies) files() []*string {
	var names []*string
	for i := range p.Paths {
		names = append(names, &p.Paths[i])
	}
	if p.LastGood != nil {
		names = append(names, &p.LastGood.Path, &p.LastGood.KeyFile)
	}
	return names
}

// policies checks where the policy files are.
func (v *validator) policies(p *Policies) {
	path := "policies"
	if _, isObject := v.object.At("policies.paths"); isObject {
		path = "policies.paths"
	}
	for i, name := range p.Paths {
		if name == "" {
			v.check(fmt.Sprintf("%s[%d]", path, i), "must name a file or directory")
		}
	}
	if l := p.LastGood; l != nil {
		v.required("policies.lastGood.path", l.Path)
		v.required("policies.lastGood.keyFile", l.KeyFile)
		v.within("policies.lastGood.maxAgeSeconds", l.MaxAgeSeconds, 1, maxAgeSeconds)
	}
}
