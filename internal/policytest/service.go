package policytest

import (
	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/policies"
)

// A Service is the gateway whose requests are played. The zero value has no configuration: then every path leads to one
// backend, and who asks is whom the case names.
type Service struct {
	// Config is its configuration; nil if there is none.
	Config *config.Configuration
	// Gateway says what policy files may ask of it. Without a configuration its routes are not known.
	Gateway policies.Gateway
	// shapesRefusals lets refusals have the format that files and configuration ask for.
	shapesRefusals bool
	// isUncounted keeps requests out of the counts of rollouts and exceptions, because the set is in force elsewhere.
	isUncounted bool
}

// KnowsUsers reports whether the gateway can know who asks.
func (s *Service) KnowsUsers() bool { return s.Config == nil || s.Config.Identity.Knows() }
