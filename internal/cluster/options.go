package cluster

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/admission-gateway/gateway/internal/routing"
)

// Options of a Watcher.
type Options struct {
	// Config is the API server, and the gateway's account there.
	Config *rest.Config
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
	// Apply brings a table into force. It is called by one goroutine, and not with two tables that are equal one after the
	// other. An error leaves the table before in force.
	Apply func(*routing.Table) error
	Log   *slog.Logger
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
