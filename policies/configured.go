package policies

import (
	"fmt"
	"maps"
	"slices"

	"github.com/admission-gateway/gateway/policies/finding"
)

// Configuration is the file of findings about the configuration. Their fields are paths in it.
const Configuration = "the configuration"

// configured returns a finding about the configuration.
func configured(path string, severity Severity, message string) Finding {
	return Finding{File: Configuration, Field: path, Severity: severity, Message: message}
}

// Offers are the parts of a configuration that have an effect only if policy files name them.
type Offers struct {
	// Upstreams have the paths in the configuration, by the names, of upstreams that no route leads to and the gateway
	// itself asks nothing. Bundles have those of the bundles that nothing in the configuration reads.
	Upstreams, Bundles map[string]string
	// DecisionLogs reports whether decisions are to be logged.
	DecisionLogs bool
}

// unnamed finds what of it no policy file names.
func (s *Set) unnamed(o *Offers) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(o.Upstreams)) {
		if !slices.ContainsFunc(s.upstreams, func(u upstreamUse) bool { return u.name == name }) {
			found = append(found, configured(o.Upstreams[name], Warning,
				fmt.Sprintf("no route leads to the upstream '%s', and no StateSource reads from it, so that it gets no request", name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Bundles)) {
		if !slices.Contains(s.bundles, name) {
			found = append(found, configured(o.Bundles[name], Warning,
				fmt.Sprintf("no RegoPolicy names the bundle '%s', so that it is loaded for nothing", name)))
		}
	}
	if o.DecisionLogs && !s.logsDecisions {
		found = append(found, configured("telemetry.decisionLogs", Warning,
			"no decision is logged: there is no RegoPolicy and no constraint of Gatekeeper's among the policy files"))
	}
	return found
}

// Place gives the findings about the configuration their places in its file.
func Place(found []Finding, where func(path string) (file string, line, column int)) []Finding {
	for i := range found {
		if f := &found[i]; f.File == Configuration {
			f.File, f.Line, f.Column = where(f.Field)
		}
	}
	return finding.Sort(found)
}
