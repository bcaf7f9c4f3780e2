// Package etcd runs the store of an API server inside the process.
package etcd

import (
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/admission-gateway/gateway/e2e/testutil"
)

// A Store is what API servers share.
type Store struct {
	*embed.Etcd
	// URL is where clients ask it.
	URL string
}

// Start starts a store of one member. What it holds need not survive the machine, so it does not wait for the disk.
func Start(dir string) (*Store, error) {
	clients, err := freeURL()
	if err != nil {
		return nil, err
	}
	peers, err := freeURL()
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peers}, []url.URL{peers}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	started, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-started.Server.ReadyNotify():
		return &Store{started, clients.String()}, nil
	case <-time.After(time.Minute):
		started.Close()
		return nil, fmt.Errorf("etcd was not ready within a minute")
	}
}

// freeURL is a loopback address on which no process listens, and which the system gives to no other.
func freeURL() (url.URL, error) {
	port, err := testutil.ReservePort()
	return url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", port)}, err
}
