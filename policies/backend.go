package policies

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/manifest"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/policies/finding"
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
		"versions": b.Versions, "scale": b.Scale, "patch": b.Patch, "generateName": b.GenerateName,
		"systemMetadata": b.SystemMetadata,
		"selectors":      b.Selectors, "dryRun": b.DryRun, "deletion": b.Deletion, "listEnvelope": b.ListEnvelope,
		"existingNames": b.ExistingNames,
	}
}

const (
	// passedErrors says that errors of a plain backend reach clients unchanged.
	passedErrors = "Pass"
	// problemFormat says that refusals of the gateway are problem details, templateFormat that an ErrorTemplate writes
	// them.
	problemFormat  = "Problem"
	templateFormat = "Template"
)

// setBackend lets settings, by the names of capabilities, override the preset of the resource's envelope.
func setBackend(r *resource.Resource, settings map[string]string) {
	r.Backend.Emulated = resource.Preset(r.Envelope)
	for name, value := range settings {
		switch value {
		case "Native", "Disabled":
			r.Backend.Emulated &^= resource.CapabilityNamed(name)
		case "Emulated":
			r.Backend.Emulated |= resource.CapabilityNamed(name)
		}
	}
	r.Backend.Patch = resource.PatchEmulated
	if r.Envelope == resource.Bare {
		r.Backend.Patch = resource.PatchValidated
	}
	for _, mode := range []resource.PatchMode{resource.PatchNative, resource.PatchEmulated, resource.PatchRefused} {
		if settings["patch"] == mode.String() {
			r.Backend.Patch = mode
		}
	}
	for _, v := range []resource.Versions{resource.ETagVersions, resource.FieldVersions, resource.NativeVersions,
		resource.NoVersions} {
		if settings["versions"] == v.String() {
			r.Backend.Versions = v
		}
	}
	setErrors(r, settings["errors"], settings["errorFormat"], settings["errorTemplate"])
	if !r.Subresources.Status {
		r.Backend.Emulated &^= resource.StatusSubresource
	}
	if r.Subresources.Scale == nil {
		r.Backend.Emulated &^= resource.ScaleSubresource
	}
	if settings["deletion"] == "" && (r.Backend.Emulated&resource.SystemMetadata == 0 ||
		r.Backend.Versions == resource.FieldVersions && r.Backend.Concurrency == resource.Optimistic) {
		// A client that keeps deletionTimestamp keeps objects from being deleted; and a version in
		// a field pins no deletion.
		r.Backend.Emulated &^= resource.Deletion
	}
	if r.Envelope == resource.Bare && r.Fields.Version == nil {
		r.Backend.Emulated &^= resource.ResourceVersions // a client's If-Match reaches the backend as it is
	}
}

// setErrors says what clients get of errors. A plain API writes its own.
func setErrors(r *resource.Resource, errors, format, template string) {
	r.Errors.ArePassed = errors == passedErrors || errors == "" && r.Envelope == resource.Bare
	r.Errors.Format, r.Errors.Template = format, template
}

// backendPrefix begins the annotations of a CustomResourceDefinition that say what a plain backend
// does itself.
const backendPrefix = "backend.admission-gateway.io/"

// annotate applies the annotations that say what a plain backend does itself, which a definition has no fields for.
func annotate(f *findings, o *manifest.Object, crd *apiextensionsv1.CustomResourceDefinition, r *resource.Resource) {
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
				r.Backend.Concurrency = resource.BestEffort
			}
		case name == "preconditions":
			allowed = []string{"Auto", "Gateway", "Backend"}
			r.Backend.Preconditions = resource.PreconditionsNamed(value)
		case name == "dataMaps":
			for path := range strings.SplitSeq(value, ",") {
				r.Fields.DataMaps = append(r.Fields.DataMaps, fieldPath(strings.TrimSpace(path)))
			}
			continue
		case name == "versionField":
			r.Fields.Version = fieldPath(value)
			continue
		case name == "errors":
			allowed = []string{passedErrors, "Status"}
			settings[name] = value
		case name == "errorFormat":
			allowed = []string{"Status", problemFormat, templateFormat}
			settings[name] = value
		case name == "errorTemplate":
			settings[name] = value
			continue
		case name == "versions":
			allowed = []string{"ETag", "Field", "Native", "None"}
			settings[name] = value
		case name == "patch":
			allowed = append(allowed, resource.PatchRefused.String())
			settings[name] = value
		case resource.CapabilityNamed(name) == 0:
			f.At(o, Error, path, "must be one of the settings %s", finding.Quoted(backendAnnotations()))
			continue
		default:
			settings[name] = value
		}
		if !slices.Contains(allowed, value) {
			f.At(o, Error, path, "Unsupported value: %q: supported values: %s", value, finding.Quoted(allowed))
		}
	}
	setBackend(r, settings)
	if isNamed := r.Errors.Template != ""; isNamed != (r.Errors.Format == templateFormat) {
		f.At(o, Error, "metadata.annotations["+backendPrefix+"error-format]",
			"must be 'Template' where `%serror-template` names one, and only there", backendPrefix)
	}
	if r.Backend.Versions == resource.FieldVersions && r.Fields.Version == nil {
		f.At(o, Error, "metadata.annotations["+backendPrefix+"versions]",
			"must not be 'Field' unless `%sversion-field` names the field", backendPrefix)
	}
}

// backendAnnotations are the keys behind the prefix.
func backendAnnotations() []string {
	names := []string{"concurrency", "data-maps", "error-format", "error-template", "errors", "patch", "preconditions",
		"version-field"}
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

// warnOfBestEffort says which conflicts remain if only the gateway keeps writers apart.
func warnOfBestEffort(f *findings, r *loadedResource) {
	if r.Backend.Versions == resource.NativeVersions || r.Backend.Versions == resource.FieldVersions {
		return
	}
	path := "spec.concurrency"
	if r.at.from.Kind != "APIResource" {
		path = "metadata.annotations[" + backendPrefix + "concurrency]"
	}
	f.At(r.at.from, Warning, path, "the writes to one object come one after the other in one gateway only: where several gateways run, or others write to the backend, "+
		"an update may be lost unless the backend compares If-Match with a strong ETag")
}

// racedWrites finds resources whose writes depend on what several gateways read before, each behind a lock of its
// own.
func racedWrites(resources []loadedResource, chain *admission.Chain) []Finding {
	var found []Finding
	for _, r := range resources {
		message, severity := raced(&r, chain)
		if message == "" {
			continue
		}
		path := r.at.path
		if r.at.from.Kind == "APIResource" {
			path = "spec.backend"
		}
		one := finding.Of(r.at.from, path)
		one.Severity = severity
		one.Message = message + ": have the gateways share locks by `redis` in the configuration, whose `writeLocks` is 'Shared' by default"
		found = append(found, one)
	}
	return found
}

// raced returns what two gateways that lock for themselves alone do to a resource: a patch that the backend
// applies may break a rule over other fields, and a PUT in its place undoes what another one wrote. The latter is
// an error if the file says that the backend compares no versions.
func raced(r *loadedResource, chain *admission.Chain) (string, finding.Severity) {
	info := resource.Info{Verb: resource.VerbPatch, IsResource: true, Group: r.Group, Version: r.Version,
		Resource: r.Names.Plural, Name: "x"}
	b := &r.Backend
	switch {
	case b.Versions == resource.NativeVersions:
	case b.Patch == resource.PatchEmulated &&
		(b.Concurrency == resource.BestEffort || b.Versions == resource.NoVersions):
		return "updates would be lost: two gateways store whole what each of them read and patched, and the backend compares no versions", Error
	case b.Preconditions == resource.GatewayPreconditions:
		return "updates would be lost: two gateways compare If-Match with what each of them read, and the backend does not", Error
	case b.Patch == resource.PatchEmulated && b.Versions == resource.ETagVersions:
		return "updates may be lost if two gateways store whole what each of them read and patched, unless the backend compares If-Match with a strong ETag", Warning
	case b.Patch == resource.PatchValidated && (r.compiled.schema != nil && r.compiled.schema.HasRules() ||
		chain.Concerns(&info, admission.Update)):
		return "rules over several fields may be broken by patches that reach the backend through two gateways at the same time, " +
			"unless it compares If-Match with a strong ETag", Warning
	case b.Preconditions == resource.AutoPreconditions && r.Operation == nil:
		return "If-Match and If-None-Match are left to the backend, which may carry out what they forbid", Warning
	}
	return "", Warning
}

// unpinnable refuses resources whose writes have to be pinned to a version that their backend does
// not report.
func unpinnable(resources []loadedResource, chain *admission.Chain) []Finding {
	var f findings
	for _, r := range resources {
		if r.Backend.Concurrency == resource.BestEffort {
			warnOfBestEffort(&f, &r)
			continue
		}
		path := "spec.backend.versions"
		if r.at.from.Kind != "APIResource" {
			path = "metadata.annotations[" + backendPrefix + "versions]"
		}
		if r.Backend.Versions != resource.ETagVersions && r.Backend.Emulated&resource.ExistingNames != 0 {
			f.At(r.at.from, Error, path, "must be 'ETag', or the concurrency 'BestEffort', where the gateway emulates `existingNames`")
		}
		if r.Backend.Versions != resource.NoVersions {
			continue
		}
		needs := r.Backend.NeedPrecondition()
		if r.compiled.schema != nil && r.compiled.schema.NeedsOld() {
			needs = append(needs, "rules of the schema about the stored object")
		}
		info := resource.Info{Verb: resource.VerbUpdate, IsResource: true, Group: r.Group, Version: r.Version,
			Resource: r.Names.Plural, Name: "x"}
		if chain.NeedsOld(&info, admission.Update) {
			needs = append(needs, "policies about the stored object")
		}
		if len(needs) > 0 {
			f.At(r.at.from, Error, path, "must not be 'None' unless the concurrency is 'BestEffort': these need writes that are pinned to a version: %s",
				strings.Join(needs, ", "))
		}
	}
	return f.Found
}
