package bundle

import (
	"fmt"
	"path"
	"strings"

	opa "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/admission-gateway/gateway/admission/rego"
	"github.com/admission-gateway/gateway/internal/manifest"
)

// weigh returns how much memory OPA's reader takes for the files that it decodes itself, at most:
// the modules, what describes the bundle, and, if signatures are verified, also the data, whose
// digests are computed from their values.
func (o *Options) weigh(all []entry, isVerified bool) (bytes int, err error) {
	for _, e := range all {
		base := path.Base(e.path)
		switch {
		case strings.HasSuffix(e.path, opa.RegoExt):
			bytes += rego.ParseWeight(e.text)
		case isData(base) && !isVerified:
		case isYAML(base):
			weight, err := o.weighYAML(e.text)
			if err != nil {
				return 0, fmt.Errorf("bundle load failed on /%s: %w", e.path, err)
			}
			bytes += weight
		default:
			bytes += jsonWeight(e.text)
		}
	}
	return bytes, nil
}

// weighYAML returns how much memory it takes to make values of YAML: its nodes, and the texts and
// values that OPA makes of them, with all that aliases repeat.
func (o *Options) weighYAML(text []byte) (bytes int, err error) {
	nodes := manifest.Weight(text)
	if !o.take(nodes) {
		return 0, errNoMemory
	}
	defer o.giveBack(nodes)
	values, size, err := manifest.Expansion(text)
	return nodes + 2*values*jsonMemberBytes + 4*size, err
}

// isData reports whether a file has data, by its name.
func isData(base string) bool { return base == "data.json" || isYAML(base) }

func isYAML(base string) bool { return base == "data.yaml" || base == "data.yml" }

// What encoding/json makes takes so much by measurement, at most: a list and an object with its first values, what
// follows a comma, and what follows a colon.
const (
	jsonListBytes   = 128
	jsonObjectBytes = 448
	jsonItemBytes   = 96
	jsonMemberBytes = 160
	jsonByteBytes   = 3 // the text is buffered while it is decoded
)

// jsonWeight returns how much memory encoding/json takes for a text, at most. What is no JSON weighs too.
func jsonWeight(text []byte) (bytes int) {
	bytes = jsonByteBytes*len(text) + jsonItemBytes
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			bytes += jsonObjectBytes
		case c == '[':
			bytes += jsonListBytes
		case c == ',':
			bytes += jsonItemBytes
		case c == ':':
			bytes += jsonMemberBytes
		}
	}
	return bytes
}
