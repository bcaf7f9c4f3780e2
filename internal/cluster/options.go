package cluster

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/admission-gateway/gateway/internal/outbound"
	"github.com/admission-gateway/gateway/internal/routing"
	"github.com/admission-gateway/gateway/internal/state"
)

// Options of a Watcher.
type Options struct {
	// Server is the URL of the API server. Network says what is particular to connections to it, and Account who the
	// gateway is there.
	Server  string
	Network outbound.Options
	Account Account
	// Liveness says how dead watches are noticed; its zero value has the defaults.
	Liveness state.Liveness
	// Namespaces are those whose objects count; none are all.
	Namespaces []string
	// Controller, GatewayClass, Pool, Published and Service are as in ingress.Options.
	Controller, GatewayClass string
	Pool                     []netip.Prefix
	Published                []string
	Service                  types.NamespacedName
	// Lease is the Lease of the gateway that writes statuses, and Identity the name of this one in it.
	Lease    types.NamespacedName
	Identity string
	// Apply brings a table into force. It is called by one goroutine, and not with two tables that are equal one after
	// the other. An error leaves the table before in force.
	Apply func(*routing.Table) error
	// Unserved returns the listeners of the table in force that take no requests, by their names, and why. The map must
	// not be changed. Recheck says that it may be another one.
	Unserved func() map[string]string
	Log      *slog.Logger
}

// pause waits, and reports whether ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
