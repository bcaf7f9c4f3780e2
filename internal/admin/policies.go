package admin

import "time"

// Policies is the answer of /policies.
type Policies struct {
	// Generation counts the sets that came into force in this process, from 1.
	Generation int64 `json:"generation"`
	// Hash of the contents of all files: replicas that agree on their policies agree on it.
	Hash string `json:"hash"`
	// LoadTime is when the set came into force.
	LoadTime time.Time `json:"loadTime"`
	// Files that the set was made of, with the objects in each.
	Files []PolicyFile `json:"files"`
	// LastReload is when the files were last read to the end, and what was found in them.
	LastReload *Reload `json:"lastReload,omitempty"`
	// LastFailure is set while the files differ from the set in force because they were refused, or
	// take too long to load.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// PolicyFile is one file of the active set.
type PolicyFile struct {
	Path    string         `json:"path"`
	Objects []PolicyObject `json:"objects"`
}

// PolicyObject is one object in a policy file.
type PolicyObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// Reload is a reading of the policy files.
type Reload struct {
	Time time.Time `json:"time"`
	// Outcome is Loaded, Unchanged or Refused.
	Outcome  string   `json:"outcome"`
	Findings []string `json:"findings"`
}

// Failure is why the newest policy files are not in force.
type Failure struct {
	Time     time.Time `json:"time"`
	Findings []string  `json:"findings"`
}
