package admin

import (
	"fmt"
	"strings"
	"time"
)

// RateLimit is a limit of a RateLimitPolicy, in the words of its fields. A number of 0 is no bound.
type RateLimit struct {
	Name string `json:"name"`
	// Mode is Enforce or Warn.
	Mode string `json:"mode"`
	// Key is the key by which requests are counted; HeaderName names the header of the key Header.
	Key        string `json:"key"`
	HeaderName string `json:"headerName,omitempty"`
	// Verbs, APIGroups, Resources and Namespaces choose requests; an empty list chooses all.
	Verbs      []string `json:"verbs,omitempty"`
	APIGroups  []string `json:"apiGroups,omitempty"`
	Resources  []string `json:"resources,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`

	Requests      int64 `json:"requests"`
	PeriodSeconds int64 `json:"periodSeconds"`
	Burst         int64 `json:"burst"`

	MaxInFlight      int64 `json:"maxInFlight"`
	MaxInFlightTotal int64 `json:"maxInFlightTotal"`
	QueueLength      int64 `json:"queueLength"`

	// Sharing says how the requests of all gateways are counted together; nil counts the ones of each gateway alone.
	Sharing *LimitSharing `json:"sharing,omitempty"`
}

// LimitSharing says how gateways keep a limit together.
type LimitSharing struct {
	WhenStoreUnavailable string `json:"whenStoreUnavailable"`
	LeaseSize            int64  `json:"leaseSize"`
}

// RequestLimits are the bounds of each request, of the configuration.
type RequestLimits struct {
	BodyBytes     int64 `json:"bodyBytes"`
	HeaderBytes   int64 `json:"headerBytes"`
	URIBytes      int64 `json:"uriBytes"`
	Headers       int64 `json:"headers"`
	JSONDepth     int64 `json:"jsonDepth"`
	JSONNodes     int64 `json:"jsonNodes"`
	Connections   int64 `json:"connections"`
	HeavyRequests int64 `json:"heavyRequests"`
}

// KeyText is the key for people.
func (l *RateLimit) KeyText() string { return strings.TrimSpace(l.Key + " " + l.HeaderName) }

// Rate is the limit over time for people; "" if there is none.
func (l *RateLimit) Rate() string {
	if l.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d in %s, %d at once", l.Requests, time.Duration(l.PeriodSeconds)*time.Second, l.Burst)
}

// InFlight is the limit on requests that are served at the same time, for people; "" if there is none.
func (l *RateLimit) InFlight() string {
	var parts []string
	if l.MaxInFlight > 0 {
		parts = append(parts, fmt.Sprintf("%d of each key", l.MaxInFlight))
	}
	if l.MaxInFlightTotal > 0 {
		parts = append(parts, fmt.Sprintf("%d in all", l.MaxInFlightTotal))
	}
	if l.QueueLength > 0 {
		parts = append(parts, fmt.Sprintf("%d wait", l.QueueLength))
	}
	return strings.Join(parts, ", ")
}

// Scope says for people who counts.
func (l *RateLimit) Scope() string {
	switch s := l.Sharing; {
	case s == nil:
		return "Local"
	case s.LeaseSize > 0:
		return fmt.Sprintf("Shared, %d at a time; else %s", s.LeaseSize, s.WhenStoreUnavailable)
	default:
		return "Shared; else " + s.WhenStoreUnavailable
	}
}

// Matches says for people which requests are counted.
func (l *RateLimit) Matches() string {
	var parts []string
	for _, one := range []struct {
		what string
		of   []string
	}{{"", l.Verbs}, {"groups ", l.APIGroups}, {"", l.Resources}, {"in ", l.Namespaces}} {
		if len(one.of) > 0 {
			parts = append(parts, one.what+strings.Join(one.of, ","))
		}
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, " ")
}
