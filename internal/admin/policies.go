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
	// Folders are the folders of policy files that have owners, and how they are.
	Folders []PolicyFolder `json:"folders,omitempty"`
	// LastReload is when the files were last read to the end, and what was found in them.
	LastReload *Reload `json:"lastReload,omitempty"`
	// Bundles are the bundles of the configuration.
	Bundles []Bundle `json:"bundles,omitempty"`
	// LastFailure is set while the files differ from the set in force because they were refused, or
	// take too long to load.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// PolicyFolder is how an owner's folder of policy files is.
type PolicyFolder struct {
	Path  string `json:"path"`
	Owner string `json:"owner"`
	// Concerns says which requests the files may be about.
	Concerns string `json:"concerns"`
	// Hash of the files in force; empty if none are, so that the requests that they may be about are refused.
	Hash string `json:"hash,omitempty"`
	// ConfirmationTime is when these files were last seen without errors; missing if none are in force.
	ConfirmationTime *time.Time `json:"confirmationTime,omitempty"`
	// LastFailure is set while newer files are refused. Its time is when that began.
	LastFailure *Failure `json:"lastFailure,omitempty"`
}

// State says in words which files are in force.
func (f *PolicyFolder) State() string {
	switch {
	case f.LastFailure == nil:
		return "in force"
	case f.Hash == "":
		return "NOT IN FORCE: requests are refused since " + f.LastFailure.Time.Format(time.RFC3339)
	}
	return "older files in force, newer ones refused since " + f.LastFailure.Time.Format(time.RFC3339)
}

// PolicyFile is one file of the active set.
type PolicyFile struct {
	Path string `json:"path"`
	// Owner is who mends the file; empty if the configuration does not say.
	Owner   string         `json:"owner,omitempty"`
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
	// Outcome is Loaded, Unchanged, Partly or Refused.
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
