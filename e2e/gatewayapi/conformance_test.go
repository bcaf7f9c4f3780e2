package gatewayapi

import (
	"cmp"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/admission-gateway/gateway/e2e/gatewayapi/cluster"
)

// The profiles that the gateway has.
var profiles = []suite.ConformanceProfile{suite.GatewayHTTPConformanceProfile, suite.GatewayGRPCConformanceProfile}

// unsupported are the extended features of the profiles that the gateway does not have.
var unsupported = sets.New[features.FeatureName](
	// All Gateways share the gateway's Pods and its Service: it makes none that could have labels of a Gateway.
	features.SupportGatewayInfrastructurePropagation,
)

// The gateway passes Gateway API's own suite: each test of the profiles GATEWAY-HTTP and GATEWAY-GRPC, with extended
// features and experimental fields. A report is written if the flag -report-output names a file.
func TestConformance(t *testing.T) {
	apply(t, class("conformance"))
	g := startGateway(t, gatewayOptions{controller: "conformance", pool: []string{"10.100.0.0/24", "10.100.1.1/32"}})
	kubeconfig, err := shared.Kubeconfig(cluster.Administrator)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	options := conformance.DefaultOptions(t)
	options.GatewayClassName = "conformance"
	options.UsableNetworkAddresses = []gatewayv1.GatewaySpecAddress{{Value: "10.100.1.1"}}
	options.UnusableNetworkAddresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
	options.Implementation = confv1.Implementation{
		Organization: "admission-gateway", Project: "gateway", URL: "https://github.com/admission-gateway/gateway",
		Version: cmp.Or(options.Implementation.Version, g.version(t)), // the flag -version
		Contact: []string{"https://github.com/admission-gateway/gateway/issues"},
	}
	for _, p := range profiles {
		options.ConformanceProfiles = append(options.ConformanceProfiles, p.Name)
	}
	options.SupportedFeatures = sets.List(extended())
	options.Hook = func(t *testing.T, test suite.ConformanceTest, s *suite.ConformanceTestSuite) {
		if t.Skipped() && isOfProfiles(test) && s.RunTest == "" {
			t.Errorf("%s is skipped", test.ShortName)
		}
	}
	conformance.RunConformanceWithOptions(t, options)
}

// extended are the features that the gateway has beside the core of the profiles.
func extended() sets.Set[features.FeatureName] {
	all := sets.New[features.FeatureName]()
	for _, p := range profiles {
		all = all.Union(p.ExtendedFeatures)
	}
	return all.Union(features.SetsToNamesSet(features.GRPCRouteExtendedFeatures)).Difference(unsupported)
}

// isOfProfiles reports whether a test is one of the profiles.
func isOfProfiles(test suite.ConformanceTest) bool {
	if unsupported.HasAny(test.Features...) {
		return false
	}
	return slices.ContainsFunc(profiles, func(p suite.ConformanceProfile) bool {
		return p.CoreFeatures.Union(p.ExtendedFeatures).HasAll(test.Features...)
	})
}
