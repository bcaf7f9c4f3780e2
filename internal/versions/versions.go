// Package versions converts objects of Kubernetes' own kinds between the versions in which API
// servers serve them, as policies with `matchPolicy: Equivalent` see them. What it knows is a
// table, which a test makes from k8s.io/api, and a row for each pair of versions whose fields
// differ; e2e/deploy compares both with a kube-apiserver.
package versions

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/document"
)

// A kind is one of Kubernetes' own kinds that have several versions. Versions with the same number have the same
// fields.
type kind struct {
	name   string
	fields map[string]int
}

// Convert returns a copy of an object of one version of a resource as another version has it, and its kind. It reports
// false if the table does not have both.
func Convert(d *document.Document, from,
	to schema.GroupVersionResource) (converted *document.Document, kind string, isKnown bool, err error) {
	kind, convert, isKnown := converterOf(from, to)
	if !isKnown {
		return nil, "", false, nil
	}
	converted = d.Clone()
	if converted.Root().Kind() == document.Object {
		converted.SetString(converted.Root(), "apiVersion", to.GroupVersion().String())
		if convert != nil {
			err = convert(converted, to.Version)
		}
	}
	if err != nil {
		converted.Release()
		return nil, "", true, fmt.Errorf("the object cannot be converted from version '%s' to '%s': %w", from.Version,
			to.Version, err)
	}
	return converted, kind, true, nil
}

// A converter converts an object in place to a version that has other fields.
type converter func(d *document.Document, to string) error

// converterOf returns what converts objects of a resource to another version; nil if only the apiVersion differs.
func converterOf(from, to schema.GroupVersionResource) (kind string, convert converter, isKnown bool) {
	if from == coreEvents && to == modernEvents || from == modernEvents && to == coreEvents {
		return "Event", func(d *document.Document, _ string) error {
			convertEvent(d, to == modernEvents)
			return nil
		}, true
	}
	k := kinds[from.GroupResource()]
	is, hasFrom := k.fields[from.Version]
	wants, hasTo := k.fields[to.Version]
	switch {
	case !hasFrom || !hasTo || from.GroupResource() != to.GroupResource():
		return "", nil, false
	case is == wants:
		return k.name, nil, true
	}
	convert = converters[from.GroupResource()]
	return k.name, convert, convert != nil
}

// converters are of the resources whose versions have different fields.
var converters = map[schema.GroupResource]converter{
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: convertAutoscaler,
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: dropper("v1", "pkixPublicKey",
		"proofOfPossession"),
	{Group: "resource.k8s.io", Resource: "resourceclaims"}: func(d *document.Document, to string) error {
		convertRequests(d, to, "spec")
		return nil
	},
	{Group: "resource.k8s.io", Resource: "resourceclaimtemplates"}: func(d *document.Document, to string) error {
		convertRequests(d, to, "spec", "spec")
		return nil
	},
	{Group: "resource.k8s.io", Resource: "resourceslices"}: convertSlice,
}

// dropper returns a converter that takes members of the spec out that a version does not have.
func dropper(of string, names ...string) converter {
	return func(d *document.Document, to string) error {
		spec, _ := d.Root().Get("spec")
		for _, name := range names {
			if n, found := spec.Get(name); found && to == of {
				d.Remove(n)
			}
		}
		return nil
	}
}

// convertRequests moves what a request for devices asks for: resource.k8s.io/v1beta1 has it in the request, later
// versions in its member `exactly`.
func convertRequests(d *document.Document, to string, path ...string) {
	requests := find(d.Root(), append(path, "devices", "requests")...)
	for r := requests.First(); r.Valid() && requests.Kind() == document.Array; r = r.Next() {
		if to == "v1beta1" {
			r = unfold(d, r, "exactly")
		} else {
			r = fold(d, r, "exactly", false, "name", "firstAvailable")
		}
	}
}

// convertSlice moves the description of a device: resource.k8s.io/v1beta1 has it in the member
// `basic` of the device, later versions in the device.
func convertSlice(d *document.Document, to string) error {
	devices := find(d.Root(), "spec", "devices")
	for r := devices.First(); r.Valid() && devices.Kind() == document.Array; r = r.Next() {
		if to == "v1beta1" {
			r = fold(d, r, "basic", true, "name")
		} else {
			r = unfold(d, r, "basic")
		}
	}
	spec := find(d.Root(), "spec")
	for _, name := range []string{"nodeName", "allNodes"} { // which are unset in later versions
		if n, found := spec.Get(name); found && to != "v1beta1" && (isZero(n) || string(n.AppendRaw(nil)) == "false") {
			d.Remove(n)
		}
	}
	return nil
}

func find(n document.Node, path ...string) document.Node {
	for _, name := range path {
		n, _ = n.Get(name)
	}
	return n
}

// fold moves the members of an object, but for some, into an object in it. There is none if all of them are zero,
// unless it always is.
func fold(d *document.Document, n document.Node, into string, always bool, but ...string) document.Node {
	if n.Kind() != document.Object {
		return n
	}
	var beside, inside []byte
	for m := n.First(); m.Valid(); m = m.Next() {
		if slices.Contains(but, m.Key()) {
			beside = appendMember(beside, m)
		} else if inside = appendMember(inside, m); !isZero(m) {
			always = true
		}
	}
	if always {
		if len(beside) > 0 {
			beside = append(beside, ',')
		}
		beside = append(append(append(document.AppendString(beside, into), ":{"...), inside...), '}')
	}
	return d.Replace(n, append(append([]byte{'{'}, beside...), '}'))
}

// unfold moves the members of an object in an object into that itself.
func unfold(d *document.Document, n document.Node, from string) document.Node {
	in, found := n.Get(from)
	if !found {
		return n
	}
	var all []byte
	for m := n.First(); m.Valid(); m = m.Next() {
		if m.Key() != from {
			all = appendMember(all, m)
		}
	}
	for m := in.First(); m.Valid() && in.Kind() == document.Object; m = m.Next() {
		if _, isThere := n.Get(m.Key()); !isThere {
			all = appendMember(all, m)
		}
	}
	return d.Replace(n, append(append([]byte{'{'}, all...), '}'))
}

func appendMember(to []byte, m document.Node) []byte {
	if len(to) > 0 {
		to = append(to, ',')
	}
	return m.AppendRaw(append(document.AppendString(to, m.Key()), ':'))
}

// isZero reports whether a member is as if it were not there, to a server that reads it as one of its own kinds.
func isZero(n document.Node) bool {
	switch n.Kind() {
	case document.Null:
		return true
	case document.String:
		return n.Str() == ""
	case document.Number:
		i, ok := n.Int64()
		return ok && i == 0
	}
	return false
}
