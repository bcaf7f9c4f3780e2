package policies

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
)

// APIResourceBackend says what a plain backend does itself; what is left empty is as the preset of the envelope has it.
type APIResourceBackend struct {
	Versions       string `json:"versions"`
	Scale          string `json:"scale"`
	Patch          string `json:"patch"`
	GenerateName   string `json:"generateName"`
	SystemMetadata string `json:"systemMetadata"`
	Selectors      string `json:"selectors"`
	DryRun         string `json:"dryRun"`
	Deletion       string `json:"deletion"`
	ListEnvelope   string `json:"listEnvelope"`
	ExistingNames  string `json:"existingNames"`
}

// settings are the values by the names of capabilities.
func (b *APIResourceBackend) settings() map[string]string {
	return map[string]string{
		"versions": b.Versions, "scale": b.Scale, "patch": b.Patch, "generateName": b.GenerateName, "systemMetadata": b.SystemMetadata,
		"selectors": b.Selectors, "dryRun": b.DryRun, "deletion": b.Deletion, "listEnvelope": b.ListEnvelope, "existingNames": b.ExistingNames,
	}
}

// refused is what becomes of PATCH where nobody is to use it.
const refused = "Refused"

// setBackend lets settings, by the names of capabilities, override the preset of the resource's envelope.
func setBackend(r *resource.Resource, settings map[string]string) {
	r.Emulated = resource.Preset(r.Envelope)
	for name, value := range settings {
		switch value {
		case "Native", "Disabled":
			r.Emulated &^= resource.CapabilityNamed(name)
		case "Emulated":
			r.Emulated |= resource.CapabilityNamed(name)
		}
	}
	if settings["patch"] == refused {
		r.RefusesPatch = true
		r.Emulated &^= resource.PatchVerb
	}
	for _, v := range []resource.Versions{resource.ETagVersions, resource.FieldVersions, resource.NativeVersions, resource.NoVersions} {
		if settings["versions"] == v.String() {
			r.Versions = v
		}
	}
	if !r.Status {
		r.Emulated &^= resource.StatusSubresource
	}
	if !r.Scale {
		r.Emulated &^= resource.ScaleSubresource
	}
	if settings["deletion"] == "" && (r.Emulated&resource.SystemMetadata == 0 || r.Versions == resource.FieldVersions && r.Concurrency == resource.Optimistic) {
		// Whoever keeps deletionTimestamp keeps objects from being deleted; and a version in a field pins no deletion.
		r.Emulated &^= resource.Deletion
	}
	if r.Envelope == resource.Bare && r.Fields.Version == nil {
		r.Emulated &^= resource.ResourceVersions // a client's If-Match reaches the backend as it is
	}
}

// backendPrefix is that of the annotations of a CustomResourceDefinition that say what a plain backend does itself.
const backendPrefix = "backend.admission-gateway.io/"

// annotated applies the annotations that say what a plain backend does itself, which a definition has no fields for.
func (l *loader) annotated(o *manifest.Object, crd *apiextensionsv1.CustomResourceDefinition, r *resource.Resource) {
	settings := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(crd.Annotations)) {
		name, ours := strings.CutPrefix(key, backendPrefix)
		if !ours {
			continue
		}
		value, path := crd.Annotations[key], "metadata.annotations["+key+"]"
		name = camelCase(name)
		allowed := []string{"Emulated", "Native"}
		switch {
		case name == "concurrency":
			allowed = []string{"Optimistic", "BestEffort"}
			if value == resource.BestEffort.String() {
				r.Concurrency = resource.BestEffort
			}
		case name == "versionField":
			r.Fields.Version = fieldPath(value)
			continue
		case name == "versions":
			allowed = []string{"ETag", "Field", "Native", "None"}
			settings[name] = value
		case name == "patch":
			allowed = append(allowed, refused)
			settings[name] = value
		case resource.CapabilityNamed(name) == 0:
			l.at(o, Error, path, "must be one of the settings %s", quoted(backendAnnotations()))
			continue
		default:
			settings[name] = value
		}
		if !slices.Contains(allowed, value) {
			l.at(o, Error, path, "Unsupported value: %q: supported values: %s", value, quoted(allowed))
		}
	}
	setBackend(r, settings)
	if r.Versions == resource.FieldVersions && r.Fields.Version == nil {
		l.at(o, Error, "metadata.annotations["+backendPrefix+"versions]", "must not be 'Field' unless `%sversion-field` names the field", backendPrefix)
	}
}

// backendAnnotations are the keys behind the prefix.
func backendAnnotations() []string {
	names := []string{"concurrency", "version-field"}
	for _, name := range resource.CapabilityNames() {
		names = append(names, kebabCase(name))
	}
	slices.Sort(names)
	return names
}

// camelCase makes 'dryRun' of 'dry-run'; names of another form stay unknown.
func camelCase(s string) string {
	if strings.ToLower(s) != s {
		return ""
	}
	words := strings.Split(s, "-")
	for i, w := range words[1:] {
		if w != "" {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

func kebabCase(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('-')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func quoted(words []string) string { return "'" + strings.Join(words, "', '") + "'" }

// pinnable refuses resources whose writes have to be pinned to a version that their backend does not tell.
func (l *loader) pinnable(chain *admission.Chain) {
	for _, r := range l.resources {
		if r.Concurrency == resource.BestEffort {
			continue
		}
		path := "spec.backend.versions"
		if r.from.Kind != "APIResource" {
			path = "metadata.annotations[" + backendPrefix + "versions]"
		}
		if r.Versions != resource.ETagVersions && r.Emulated&resource.ExistingNames != 0 {
			l.at(r.from, Error, path, "must be 'ETag', or the concurrency 'BestEffort', where the gateway emulates `existingNames`")
		}
		if r.Versions != resource.NoVersions {
			continue
		}
		needs := r.Emulated.NeedPrecondition()
		if r.schema != nil && r.schema.NeedsOld() {
			needs = append(needs, "rules of the schema about the stored object")
		}
		info := resource.Info{Verb: resource.VerbUpdate, IsResource: true, Group: r.Group, Version: r.Version, Resource: r.Plural, Name: "x"}
		if chain.NeedsOld(&info, admission.Update) {
			needs = append(needs, "policies about the stored object")
		}
		if len(needs) > 0 {
			l.at(r.from, Error, path, "must not be 'None' unless the concurrency is 'BestEffort': these need writes that are pinned to a version: %s",
				strings.Join(needs, ", "))
		}
	}
}
