package openapi

import (
	"github.com/admission-gateway/gateway/internal/document"
)

// depthOf is how many references deep a schema can be enforced without becoming too large.
func (d *Document) depthOf(n document.Node) int {
	depth := maxDepth - 1
	for depth > 1 && d.size(n, depth) > maxNodes {
		depth--
	}
	return depth
}

// size is about how many schemas one becomes whose references are replaced so deep, and hardly ever less.
func (d *Document) size(n document.Node, depth int) int {
	key := sizeKey{n.Index(), depth}
	if size, known := d.sizes[key]; known {
		return size
	}
	if d.sizes == nil {
		d.sizes = map[sizeKey]int{}
	}
	size := 1
	add := func(sub document.Node) {
		if size <= maxNodes {
			size += d.size(sub, depth)
		}
	}
	members(n, func(m document.Node) {
		switch m.Key() {
		case "$ref":
			if to, err := d.resolve(m.Str()); err == nil && depth > 0 {
				size += d.size(to, depth-1)
			}
		case "properties", "allOf", "anyOf", "oneOf":
			members(m, add)
		case "items", "additionalProperties", "not":
			add(m)
		}
	})
	d.sizes[key] = size
	return size
}
