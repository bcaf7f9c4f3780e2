package scan

import (
	"context"
	"os"
	"strings"
)

// sources returns what is read, in order.
func (s *scan) sources(ctx context.Context) ([]source, error) {
	var all []source
	var total int64
	add := func(paths []string, shape shape, list []string) error {
		files, err := expand(paths)
		if err != nil {
			return err
		}
		for _, path := range files {
			f := &fileSource{path: path, input: s.options.Input, shape: shape, list: list, done: total,
				limits: s.options.New.Gateway.ObjectLimits()}
			if info, err := os.Stat(path); err == nil && path != "-" {
				total += info.Size()
			}
			all = append(all, f)
		}
		return nil
	}
	if err := add(s.options.Files, objectShape{}, nil); err != nil {
		return nil, err
	}
	if err := add(s.options.AuditLogs, auditShape{}, nil); err != nil {
		return nil, err
	}
	if err := add(s.options.HARs, harShape{}, []string{"log", "entries"}); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return s.collections(ctx)
	}
	about, err := s.namedResource()
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		f := one.(*fileSource)
		f.size = total
		switch f.shape.(type) {
		case objectShape:
			f.about = about
		default:
			f.limits = recordLimits(f.limits)
		}
	}
	return all, nil
}

// namedResource returns the one resource that objects in files are of; nil if they say it themselves.
func (s *scan) namedResource() (*subject, error) {
	if len(s.options.Resources) == 0 || len(s.options.Files) == 0 {
		return nil, nil
	}
	if len(s.options.Resources) > 1 {
		return nil, usage("--resource: must be given once with --files: all objects without a kind are of that resource")
	}
	for _, r := range s.options.New.Set.Registry().Resources() {
		if r.Operation == nil && isNamed(s.options.Resources[0], r.Group, r.Names.Plural) {
			return &subject{resource: r, gvr: r.GroupVersionResource(), kind: r.Names.Kind, namespaced: r.Namespaced,
				namespace: s.options.Namespace}, nil
		}
	}
	return nil, usage("--resource: no policy file describes '%s'", s.options.Resources[0])
}

// isNamed reports whether a name, PLURAL or PLURAL.GROUP, is a resource's.
func isNamed(name, group, plural string) bool {
	named, of, hasGroup := strings.Cut(name, ".")
	return named == plural && (!hasGroup || of == group)
}
