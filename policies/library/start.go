package library

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// A Start says what a team begins with.
type Start struct {
	// IsKubernetes reports whether the policies are for a Kubernetes API server; else they are for a plain API.
	IsKubernetes bool
	// Warns makes all policies warn, and refuse nothing yet.
	Warns bool
	// Version is the version of the gateway that the workflow installs; by default the latest.
	Version string
}

// The sets that a team begins with.
var (
	forKubernetes = []string{"pod-security/baseline", "workloads", "hygiene", "immutable", "ratelimits/per-user.yaml"}
	forOrdinary   = []string{"ordinary-apis", "ratelimits/per-user.yaml"}
)

// Files returns the files of a start by their paths: policies, their tests, a workflow that runs them, and a
// configuration with which they can be served.
func (s Start) Files() (map[string][]byte, error) {
	all := map[string][]byte{}
	// Configurations are no YAML files in the library, because a check of the library would take them for policies.
	sets, configuration := forOrdinary, "start/plain.txt"
	if s.IsKubernetes {
		sets, configuration = forKubernetes, "start/kubernetes.txt"
	}
	for _, set := range sets {
		err := fs.WalkDir(files, set, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := files.ReadFile(name)
			all[path.Join("policies", name)] = s.soften(name, data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for from, to := range map[string]string{"start/workflow.txt": ".github/workflows/policies.yml",
		"start/README.md": "README.md", configuration: "gateway.yaml"} {
		data, err := files.ReadFile(from)
		if err != nil {
			return nil, err
		}
		all[to] = s.pin(data)
	}
	return all, nil
}

// isRelease reports whether a version can be installed by its name: builds of changed files cannot.
var isRelease = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString

// pin names the version of the gateway in a workflow. Go verifies it by its checksum database.
func (s Start) pin(workflow []byte) []byte {
	if !isRelease(s.Version) {
		return workflow
	}
	return []byte(strings.Replace(string(workflow), "cmd/gateway@latest", "cmd/gateway@"+s.Version, 1))
}

var denied = regexp.MustCompile(`(?m)decision: Denied, message: (.*)\}$`)

// soften makes policies warn, and their tests expect it. Schemas refuse all the same.
func (s Start) soften(name string, data []byte) []byte {
	switch {
	case !s.Warns || !s.IsKubernetes:
		return data
	case strings.HasSuffix(name, "_test.yaml"):
		return denied.ReplaceAll(data, []byte("decision: Warned, warnings: [$1]}"))
	}
	return []byte(strings.Replace(string(data), "validationActions: [Deny]", "validationActions: [Warn]", 1))
}
