package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admission-gateway/gateway/internal/admin"
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/telemetry"
	"github.com/admission-gateway/gateway/policies"
	"github.com/admission-gateway/gateway/policies/finding"
	"github.com/admission-gateway/gateway/policies/source"
)

// foldersOf returns the folders of policy files: the paths without an owner, which are one, and those with one.
func foldersOf(p *config.Policies) []source.Folder {
	common := source.Folder{}
	var folders []source.Folder
	for i := range p.Paths {
		if one := &p.Paths[i]; one.Owner == "" {
			common.Paths = append(common.Paths, one.Path)
		} else {
			folders = append(folders, folderOf(one, one.Path))
		}
	}
	if len(common.Paths) > 0 || len(folders) == 0 {
		folders = slices.Insert(folders, 0, common)
	}
	return folders
}

// commonAndOwned returns the paths without an owner, and the folders with one.
func commonAndOwned(p *config.Policies) (common []string, owned []source.Folder) {
	owned = foldersOf(p)
	if owned[0].Owner == "" {
		return owned[0].Paths, owned[1:]
	}
	return nil, owned
}

// readiness is an error if the files of an owner have errors: a warning as long as other requests are served.
func readiness(folders []policies.Folder) error {
	var failing []string
	for _, f := range folders {
		switch {
		case f.FailingSince.IsZero() || f.Owner == "":
		case f.Hash == "" && f.Concerns == nil:
			return fmt.Errorf("the policy files of %s have errors, and all requests are refused", f.Folder)
		case f.Hash == "":
			failing = append(failing, fmt.Sprintf("the policy files of %s have errors, and requests for what they concern (%s) are refused", f.Folder, f.Concerns))
		default:
			failing = append(failing, fmt.Sprintf("the newest policy files of %s have errors, and those that were last in force stay", f.Folder))
		}
	}
	if len(failing) == 0 {
		return nil
	}
	return admin.Warning{Err: errors.New(strings.Join(failing, "; "))}
}

// policyFolders shows how the folders with owners are.
func (n *node) policyFolders(folders []policies.Folder) {
	var shown []telemetry.PolicyFolder
	for _, f := range folders {
		if f.Owner != "" {
			shown = append(shown, telemetry.PolicyFolder{Name: f.Name(), Owner: f.Owner, Hash: f.Hash,
				FailingSince: f.FailingSince})
		}
	}
	n.metrics.PolicyFolders(shown)
}

// describeFolders shows operators how the folders with owners are.
func describeFolders(folders []policies.Folder) (all []admin.PolicyFolder) {
	for _, f := range folders {
		if f.Owner == "" {
			continue
		}
		one := admin.PolicyFolder{Path: f.Name(), Owner: f.Owner, Concerns: f.Concerns.String(), Hash: f.Hash}
		if f.Hash != "" {
			at := f.GoodAt.UTC()
			one.ConfirmationTime = &at
		}
		if !f.FailingSince.IsZero() {
			one.LastFailure = &admin.Failure{Time: f.FailingSince.UTC(), Findings: lines(f.Found)}
		}
		all = append(all, one)
	}
	return all
}

// folderOf returns the folder of a path that is one of the configuration, or below it.
func folderOf(p *config.PolicyPath, path string) source.Folder {
	f := source.Folder{Paths: []string{path}, Owner: p.Owner}
	if c := p.Concerns; c != nil {
		f.Concerns = &source.Concerns{Routes: c.Routes, Hosts: c.Hosts, Groups: c.Groups}
	}
	return f
}

// readFor reads policy files for a check: each belongs to the folder of the configuration that its path is in.
func readFor(paths []string, c *config.Configuration) *source.Source {
	p := &config.Policies{}
	for _, path := range paths {
		one := config.PolicyPath{Path: path}
		for i := range c.Policies.Paths {
			if in := &c.Policies.Paths[i]; in.Owner != "" && config.IsWithin(absolute(in.Path), absolute(path)) {
				one.Owner, one.Concerns = in.Owner, in.Concerns
			}
		}
		p.Paths = append(p.Paths, one)
	}
	folders := foldersOf(p)
	if len(folders) == 1 && folders[0].Owner == "" {
		return source.Read(paths, &source.Progress{})
	}
	return source.Join(folders, source.ReadFolders(folders, &source.Progress{}))
}

// noteOwners says of each finding who mends its file.
func noteOwners(found []finding.Finding, files *source.Source) {
	if len(files.Folders) == 0 {
		return
	}
	owners := map[string]string{}
	for _, f := range files.Files {
		owners[f.Name] = files.Folders[f.Folder].Owner
	}
	for i := range found {
		found[i].Owner = owners[found[i].File]
	}
}

// writeOwners writes the folders with owners, what each concerns, and the objects of their files.
func writeOwners(w io.Writer, files *source.Source, set *policies.Set) {
	var owned []source.Folder
	for _, f := range files.Folders {
		if f.Owner != "" {
			owned = append(owned, f)
		}
	}
	if len(owned) == 0 {
		return
	}
	_, _ = fmt.Fprint(w, "\nFOLDER\tOWNER\tCONCERNS\n")
	for _, f := range owned {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", f.Name(), f.Owner, f.Concerns)
	}
	_, _ = fmt.Fprint(w, "\nOWNER\tKIND\tNAME\tFILE\n")
	for _, f := range set.Files() {
		for _, o := range f.Objects {
			if f.Owner != "" {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Owner, o.Kind, o.Name, f.Name)
			}
		}
	}
}

// absolute returns a path that begins at the root.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
