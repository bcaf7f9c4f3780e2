package gatewayapi

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

// The gateway passes each test of the profiles GATEWAY-HTTP and GATEWAY-GRPC with all extended features.
func TestConformance(t *testing.T) {
	features := sets.New(suite.GatewayHTTPConformanceProfile.ExtendedFeatures.UnsortedList()...).Union(suite.GatewayGRPCConformanceProfile.ExtendedFeatures)
	options := conformance.DefaultOptions(t)
	options.ConformanceProfiles = []suite.ConformanceProfileName{suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName}
	options.SupportedFeatures = sets.List(features)
	conformance.RunConformanceWithOptions(t, options)
}
