package shared

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// poolSize is the size of go-redis' pools. Connections are bounded by the workers that use them; a pool of that size
// would take as many failures to connect as a reason to try only once a second.
const poolSize = 1024

// stall is how long a connection may be without an answer before it is given up, if the options do not say. Requests
// leave much earlier, by their own deadline; a server that only paused finds its connections as they were.
const stall = 500 * time.Millisecond

// dial makes a connection. It is go-redis' Dialer in all modes, to sentinels too.
func (o *Options) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
	defer cancel()
	plain := &net.Dialer{KeepAlive: 30 * time.Second}
	var c net.Conn
	var err error
	if o.TLS == nil {
		c, err = plain.DialContext(ctx, network, address)
	} else {
		// If the configuration has no name, tls.Dialer takes the name in the address.
		c, err = (&tls.Dialer{NetDialer: plain, Config: o.TLS()}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return o.bound(c), nil
}

// client is the client of one server, or of the one that the sentinels name.
func (o *Options) client() *redis.Client {
	if o.Mode == Sentinel {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: o.MasterName, SentinelAddrs: o.Addresses,
			SentinelUsername: o.SentinelUser, SentinelPassword: o.SentinelPassword,
			Dialer: o.dial, CredentialsProvider: o.Credentials, DB: o.Database, DisableIdentity: true,
			MaxRetries: -1, DialTimeout: o.ConnectTimeout, DialerRetries: 1, ReadTimeout: o.stall,
			WriteTimeout: o.stall,
			PoolSize:     poolSize, PoolTimeout: o.stall, PipelinePoolSize: -1,
		})
	}
	return redis.NewClient(&redis.Options{
		Addr:   o.Addresses[0],
		Dialer: o.dial, CredentialsProvider: o.Credentials, DB: o.Database, DisableIdentity: true,
		MaxRetries: -1, DialTimeout: o.ConnectTimeout, DialerRetries: 1, ReadTimeout: o.stall, WriteTimeout: o.stall,
		PoolSize: poolSize, PoolTimeout: o.stall, PipelinePoolSize: -1,
		MaintNotificationsConfig: noNotifications(),
	})
}

// cluster is the client of a Redis Cluster. Each of its servers gets a client with these options.
func (o *Options) cluster() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:  o.Addresses,
		Dialer: o.dial, CredentialsProvider: o.Credentials, DisableIdentity: true, DisableRoutingPolicies: true,
		MaxRedirects: 3, MinRetryBackoff: -1, DialTimeout: o.ConnectTimeout, DialerRetries: 1,
		ReadTimeout: o.stall, WriteTimeout: o.stall, PoolSize: poolSize, PoolTimeout: o.stall, PipelinePoolSize: -1,
		MaintNotificationsConfig: noNotifications(),
	})
}

// noNotifications keeps connections from subscribing to what only managed services announce.
func noNotifications() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
