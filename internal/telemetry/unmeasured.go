//go:build unmeasured

package telemetry

const isMeasured = false
