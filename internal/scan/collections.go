package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/admission"
	"github.com/admission-gateway/gateway/internal/discovery"
	"github.com/admission-gateway/gateway/internal/document"
	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/state"
)

// collections returns the collections of the backend that are read: of the resources that are named, or of all that
// policies match or schemas describe.
func (s *scan) collections(ctx context.Context) (all []source, err error) {
	if s.options.Backend == nil {
		return nil, usage("name what is judged: --files, --backend, --kubeconfig, --config, --audit-log or --har")
	}
	pace := newPace(s.options.Rate)
	var subjects []*subject
	if s.options.Backend.Discovery() != nil {
		if subjects, err = s.discover(ctx); err != nil {
			return nil, err
		}
	} else {
		subjects = s.described()
	}
	for _, one := range subjects {
		c := &collection{backend: s.options.Backend, subject: one, pace: pace, index: len(all), of: &all}
		if one.isListed = true; one.namespaced {
			one.namespace = s.options.Namespace
		}
		path, err := c.path(s.options.Namespace)
		if err != nil {
			s.notes.add(err.Error())
			continue
		}
		if c.target = path; one.resource != nil {
			var isBelow bool
			if c.target, isBelow = strings.CutPrefix(path, s.options.BasePath); !isBelow {
				s.notes.add(fmt.Sprintf("%s is not read: its path %s is not below the path '%s' of the upstream",
					one.gvr.GroupResource(), path, s.options.BasePath))
				continue
			}
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, usage("there is no resource to read: the policies are about none that the backend lists, or --resource names none")
	}
	return all, nil
}

// isWanted reports whether objects of a resource are to be judged.
func (s *scan) isWanted(gvr schema.GroupVersionResource) bool {
	if len(s.options.Resources) > 0 {
		return slices.ContainsFunc(s.options.Resources,
			func(name string) bool { return isNamed(name, gvr.Group, gvr.Resource) })
	}
	operation := admission.Create
	if s.options.As == Update {
		operation = admission.Update
	}
	i := &resource.Info{Verb: resource.VerbCreate, IsResource: true, Group: gvr.Group, Version: gvr.Version,
		Resource: gvr.Resource}
	for _, side := range []*Side{s.options.New, s.options.Old} {
		if side == nil {
			continue
		}
		if side.Set.Admission().Concerns(i, operation) || side.Set.Conventions().Concern(i, operation) {
			return true
		}
		for _, r := range side.Set.Registry().Resources() {
			if r.Operation == nil && r.GroupResource() == gvr.GroupResource() && side.Set.Schema(r) != nil {
				return true
			}
		}
	}
	return false
}

// described returns the resources of the policy files that an ordinary API lists.
func (s *scan) described() (all []*subject) {
	for _, r := range s.options.New.Set.Registry().Resources() {
		if r.Operation != nil || r.Singleton || !s.isWanted(r.GroupVersionResource()) {
			continue
		}
		all = append(all, &subject{resource: r, gvr: r.GroupVersionResource(), kind: r.Names.Kind,
			namespaced: r.Namespaced})
	}
	return all
}

// discover asks an API server for the resources that it lists.
func (s *scan) discover(ctx context.Context) (all []*subject, err error) {
	served, err := s.options.Backend.Discovery().All(ctx)
	if err != nil {
		return nil, err
	}
	for gv, why := range served.Failed() {
		s.notes.add(fmt.Sprintf("the resources of %s are not all known: %s", gv, why)) // an aggregated API that is down
	}
	taken := map[schema.GroupResource]bool{}
	for _, gvr := range served.All() {
		r := served.Find(discovery.Path{GroupVersionResource: gvr})
		if taken[gvr.GroupResource()] || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "create") ||
			!s.isWanted(gvr) {
			continue
		}
		taken[gvr.GroupResource()] = true
		all = append(all, &subject{gvr: gvr, kind: r.Kind.Kind, namespaced: r.Namespaced})
	}
	return all, nil
}

// A collection is the objects of one resource at the backend. It implements source.
type collection struct {
	backend state.Backend
	subject *subject
	target  string
	pace    *pace
	index   int
	of      *[]source
}

// name implements source.
func (c *collection) name() string { return c.target }

// path returns the target of the list.
func (c *collection) path(namespace string) (string, error) {
	r, gvr := c.subject.resource, c.subject.gvr
	if r == nil || len(r.Paths) == 0 {
		path := discovery.GroupVersionPath(gvr.GroupVersion())
		if namespace != "" && c.subject.namespaced {
			path += "/namespaces/" + url.PathEscape(namespace)
		}
		return path + "/" + gvr.Resource, nil
	}
	why := "it has no collection"
	for _, template := range r.Paths {
		if strings.Contains(template, "{name}") {
			continue
		}
		hasNamespace := strings.Contains(template, "{namespace}")
		if namespace != "" && r.Namespaced && !hasNamespace {
			continue
		}
		if hasNamespace && namespace == "" {
			why = "its path " + template + " has a namespace: say which with --namespace"
			continue
		}
		path := strings.ReplaceAll(template, "{namespace}", url.PathEscape(namespace))
		if strings.Contains(path, "{") {
			why = "its path " + template + " has further variables"
			continue
		}
		return path, nil
	}
	return "", fmt.Errorf("%s is not read: %s", gvr.GroupResource(), why)
}

// read implements source.
func (c *collection) read(ctx context.Context, from position, to *emitter) error {
	to.part = float64(c.index) / float64(len(*c.of))
	if c.backend.Discovery() != nil {
		return c.readPages(ctx, from, to)
	}
	return c.readWhole(ctx, to)
}

// readWhole reads the collection of an ordinary API, which is one answer.
func (c *collection) readWhole(ctx context.Context, to *emitter) error {
	if err := c.pace.wait(ctx); err != nil {
		return err
	}
	code, body, err := c.backend.Open(ctx, c.target, 0)
	if err != nil {
		return fmt.Errorf("GET %s: %w", c.target, err)
	}
	defer func() { _ = body.Close() }() // it was read, or is of no use
	if code == http.StatusNotFound {
		return nil // an ordinary API may not know a collection without objects
	}
	if code != http.StatusOK {
		return fmt.Errorf("the backend answers %d to GET %s", code, c.target)
	}
	path := []string{"items"}
	if r := c.subject.resource; r.Envelope == resource.Bare {
		path = r.Fields.Items
	}
	o := document.StreamOptions{Place: document.List, Path: path, ItemsOnly: true, Limits: to.limits}
	if err := stream(body, o, func(d *document.Document) error { return c.emit(to, d.Root()) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the answer to GET %s cannot be read: %w", c.target, err)
	}
	return nil
}

// emit hands on an object, with the kind and version that lists leave out.
func (c *collection) emit(to *emitter, n document.Node) error {
	raw := n.Raw()
	i := item{shape: objectShape{}, about: c.subject, place: c.target}
	if r := c.subject.resource; r != nil && r.Envelope == resource.Bare || len(raw) < 2 {
		return to.item(i, raw)
	}
	var missing []byte
	for _, m := range [...][2]string{{"kind", c.subject.kind}, {"apiVersion", c.subject.apiVersion()}} {
		if _, found := n.Get(m[0]); !found {
			missing = append(document.AppendString(append(document.AppendString(missing, m[0]), ':'), m[1]), ',')
		}
	}
	if len(missing) == 0 {
		return to.item(i, raw)
	}
	rest := bytes.TrimLeft(raw[1:], " \t\r\n")
	if rest[0] == '}' {
		missing = missing[:len(missing)-1]
	}
	return to.item(i, []byte("{"), missing, rest)
}

const (
	// pageItems is how many objects an API server is asked for at once, and pageBytes how large the answer may be; a
	// larger one is asked for in smaller pages.
	pageItems = 500
	pageBytes = 64 << 20
)

// readPages reads the collection of an API server, page by page.
func (c *collection) readPages(ctx context.Context, from position, to *emitter) error {
	token, last, limit := from.Continue, from.Last, pageItems
	after := "" // the object behind which a list that was begun again goes on
	if token == "" {
		after = last
	}
	for {
		if err := to.page(token, last); err != nil {
			return err
		}
		page, err := c.page(ctx, token, limit)
		switch {
		case errors.Is(err, errLargePage) && limit > 1:
			limit = max(limit/8, 1)
			continue
		case err != nil:
			return err
		case page.isExpired:
			// The server no longer has the list as it was when the scan began. It may give a token by which the list
			// goes on as it is now; otherwise it is read again, and what comes before the last object is passed over.
			to.notes.add(fmt.Sprintf("the list of %s expired while it was read: it is of more than one moment",
				c.subject.gvr.GroupResource()))
			if token = page.token; token == "" {
				after = last
			}
			to.expired(token, last)
			continue
		}
		err = page.each(func(n document.Node) error {
			key := keyOf(n)
			if after != "" && key <= after {
				return nil
			}
			last = key
			return c.emit(to, n)
		})
		token = page.token
		page.release()
		if err != nil || token == "" {
			return err
		}
	}
}

// keyOf returns what an API server sorts a list by.
func keyOf(n document.Node) string {
	metadata, _ := n.Get("metadata")
	key := textIn(metadata, "name")
	if namespace := textIn(metadata, "namespace"); namespace != "" {
		key = namespace + "/" + key
	}
	return strings.Clone(key)
}

// A page is a part of a list.
type page struct {
	document  *document.Document
	items     document.Node
	token     string
	isExpired bool
}

func (p *page) release() {
	if p.document != nil {
		p.document.Release()
	}
}

// each calls a function with each object.
func (p *page) each(do func(document.Node) error) error {
	if p.items.Kind() != document.Array {
		return nil
	}
	for n := p.items.First(); n.Valid(); n = n.Next() {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

var errLargePage = errors.New("the page is too large")

// page reads a page.
func (c *collection) page(ctx context.Context, token string, limit int) (*page, error) {
	if err := c.pace.wait(ctx); err != nil {
		return nil, err
	}
	target := c.target + "?limit=" + strconv.Itoa(limit)
	if token != "" {
		target += "&continue=" + url.QueryEscape(token)
	}
	code, stream, err := c.backend.Open(ctx, target, 0)
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", c.target, err)
	}
	defer func() { _ = stream.Close() }() // it was read, or is of no use
	body, err := io.ReadAll(io.LimitReader(stream, pageBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer to GET %s cannot be read: %w", c.target, err)
	case len(body) > pageBytes:
		return nil, fmt.Errorf("GET %s: %w", c.target, errLargePage)
	}
	d, err := document.Parse(body, document.Limits{Bytes: pageBytes, Depth: 1000, Nodes: pageBytes})
	if err != nil {
		return nil, fmt.Errorf("the answer %d to GET %s cannot be read: %w", code, c.target, err)
	}
	p := &page{document: d, isExpired: code == http.StatusGone && token != ""}
	metadata, _ := d.Root().Get("metadata")
	p.token = strings.Clone(textIn(metadata, "continue"))
	switch p.items, _ = d.Root().Get("items"); {
	case p.isExpired:
		p.release()
	case code != http.StatusOK:
		message := clip(textIn(d.Root(), "message"))
		p.release()
		return nil, fmt.Errorf("the backend answers %d to GET %s: %s", code, c.target, message)
	}
	return p, nil
}
