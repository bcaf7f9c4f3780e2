package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Expansion returns how many values the documents of YAML mean, and about how many bytes of JSON,
// with all that aliases repeat. The error says that it is not YAML, or means too much.
func Expansion(data []byte) (values, size int, err error) {
	if items(data) > MaxValues {
		return 0, 0, errors.New(tooMany)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		document, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return values, size, nil
		}
		if err != nil {
			return 0, 0, err
		}
		e := expander{known: map[*yaml.Node]expansion{}}
		all := e.of(document)
		values, size = values+all.values, size+all.bytes
		switch {
		case e.isEndless:
			return 0, 0, errors.New("must not use an alias inside the value it stands for")
		case size > maxExpandedBytes:
			return 0, 0, fmt.Errorf("must mean at most %d bytes of JSON, its aliases replaced", maxExpandedBytes)
		case values > MaxValues:
			return 0, 0, errors.New(tooMany)
		}
	}
}

// An expansion is how much a node means.
type expansion struct{ values, bytes int }

type expander struct {
	known     map[*yaml.Node]expansion // of anchored nodes; -1 while it is found out
	isEndless bool
}

// of returns how much a node means. It does not grow beyond what is too much.
func (e *expander) of(n *yaml.Node) expansion {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor != "" {
		if known, ok := e.known[n]; ok {
			e.isEndless = e.isEndless || known.values < 0
			return known
		}
		e.known[n] = expansion{values: -1}
	}
	// A control character is six bytes of JSON.
	all := expansion{1, 6*len(n.Value) + 3}
	for _, one := range n.Content {
		if more := e.of(one); !e.isEndless {
			all.values, all.bytes = min(all.values+more.values, 2*MaxValues),
				min(all.bytes+more.bytes, 2*maxExpandedBytes)
		}
	}
	if n.Anchor != "" {
		e.known[n] = all
	}
	return all
}
