//go:build !unmeasured

package telemetry

// isMeasured is false in a build with the tag unmeasured, which counts no request. The benchmark has such a build
// beside the gateway, to see what counting costs.
const isMeasured = true
