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
	// Bundles are the bundles of the configuration.
	Bundles []Bundle `json:"bundles,omitempty"`
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

// Bundle is how a bundle is.
type Bundle struct {
	Name string `json:"name"`
	// Revision is the one in the manifest of the version in force.
	Revision string `json:"revision"`
	// ActivationTime is when the version came into force; missing while there is none.
	ActivationTime *time.Time `json:"activationTime,omitempty"`
	// ConfirmationTime is when it was last known to be the newest.
	ConfirmationTime *time.Time `json:"confirmationTime,omitempty"`
	// LastFailure is set while it is not known to be the newest.
	LastFailure *BundleFailure `json:"lastFailure,omitempty"`
}

// BundleFailure is why the newest version of a bundle is not known, or not in force.
type BundleFailure struct {
	Time time.Time `json:"time"`
	// Stage is Download, Verify, Activate or Keep.
	Stage   string `json:"stage"`
	Message string `json:"message"`
}
