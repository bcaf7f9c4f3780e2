package shared

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxNodes is how many servers are known before those are forgotten that may be gone: a cluster has at most 1000.
const maxNodes = 2048

var errNoCluster = errors.New("the servers of the cluster are not known yet")

// cluster knows which server has which bucket. go-redis keeps the map of slots; each server has a node of its own, so
// that one that fails fails alone.
type cluster struct {
	store  *Store
	client *redis.ClusterClient
	ready  atomic.Bool

	mu    sync.Mutex
	count int
	nodes sync.Map // *redis.Client → *node
}

func (s *Store) newCluster() *cluster {
	c := &cluster{store: s, client: s.options.cluster()}
	s.swept.Go(c.discover)
	return c
}

// discover asks for the map of slots until there is one. From then on go-redis keeps it up to date,
// and no request waits for that.
func (c *cluster) discover() {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*c.store.options.ConnectTimeout)
		_, err := c.client.MasterForKey(ctx, "")
		cancel()
		if err == nil {
			c.ready.Store(true)
			return
		}
		select {
		case <-time.After(openFor):
		case <-c.store.ended:
			return
		}
	}
}

// node is the server that has a key.
func (c *cluster) node(key string) (*node, error) {
	if !c.ready.Load() {
		return nil, errNoCluster
	}
	client, err := c.client.MasterForKey(context.Background(), key)
	if err != nil {
		return nil, err
	}
	if n, found := c.nodes.Load(client); found {
		return n.(*node), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, found := c.nodes.Load(client); found {
		return n.(*node), nil
	}
	if c.count++; c.count > maxNodes {
		c.nodes.Clear()
		c.count = 1
	}
	n := c.store.newNode(client)
	n.redirect = c.redirect
	c.nodes.Store(client, n)
	return n, nil
}

// redirect runs a call whose bucket has moved to another server, and has the map of slots read again.
func (c *cluster) redirect(l *call) ([]int64, error) {
	c.client.ReloadState(context.Background())
	command := redis.NewIntSliceCmd(context.Background(), l.args(true)...)
	if err := c.client.Process(context.Background(), command); err != nil {
		return nil, err
	}
	return command.Result()
}
