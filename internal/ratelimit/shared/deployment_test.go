package shared

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/admission-gateway/gateway/internal/credentials/credentialstest"
	"github.com/admission-gateway/gateway/internal/ratelimit/redistest"
	"github.com/admission-gateway/gateway/internal/testutil"
)

// TestACL: a user with no more rights than docs/rate-limits.md names is enough, with a password that may change.
func TestACL(t *testing.T) {
	server := redistest.Start(t, "--user", "default", "off", "--user", "admin", "on", ">root", "~*", "&*", "+@all",
		"--user", "limits", "on", ">first", "~gateway:*", "+evalsha", "+eval", "+time", "+mget", "+set")
	admin := redis.NewClient(&redis.Options{Addr: server.Address, Username: "admin", Password: "root"})
	defer func() { _ = admin.Close() }()
	var password atomic.Value
	password.Store("first")
	s, _ := open(t, server.Address, func(o *Options) {
		o.Credentials = func() (string, string) { return "limits", password.Load().(string) }
	})
	leased := perHour(6)
	leased.Lease = 3
	mustTake(t, s, true, demand("alice", leased), demand("bob", perHour(2)))
	other, _ := open(t, server.Address, func(o *Options) {
		o.Credentials = func() (string, string) { return "limits", "first" }
		o.Prefix = "other:"
	})
	if _, err := other.Take([]Demand{demand("alice", perHour(1))}); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("keys of others: %v", err)
	}
	if err := admin.ACLSetUser(context.Background(), "limits", "resetpass", ">second").Err(); err != nil {
		t.Fatal(err)
	}
	if err := admin.ClientKillByFilter(context.Background(), "user", "limits").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, s, false)
	password.Store("second")
	until(t, s, true)
}

// TestTLS: both sides show certificates, and a server that is not known is not asked.
func TestTLS(t *testing.T) {
	dir, port := t.TempDir(), testutil.FreePort(t)
	authority := credentialstest.NewAuthority(t, "redis")
	pair := authority.Client(t, "gateway", nil).TLS(t)
	cert, key := authority.Server(t, []string{"127.0.0.1"}).Write(t, dir, "server")
	server := redistest.StartAt(t, port, "--tls-port", strconv.Itoa(port), "--port", "0", "--tls-auth-clients", "yes",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file",
		credentialstest.WriteFile(t, dir, "ca.crt", authority.PEM))
	for name, test := range map[string]struct {
		config *tls.Config
		works  bool
	}{
		"both are known": {&tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{pair}}, true},
		"the server is not known": {&tls.Config{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}},
			false},
		"the server is another": {&tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{pair},
			ServerName: "redis"}, false},
		"the gateway is not known": {&tls.Config{RootCAs: authority.Pool()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t, server.Address, func(o *Options) { o.TLS = func() *tls.Config { return test.config } })
			if passes, err := s.Take([]Demand{demand(name, perHour(1))}); passes != test.works ||
				(err == nil) != test.works {
				t.Errorf("passes: %v, %v", passes, err)
			}
		})
	}
}

// TestFailover: the server that the sentinels name is killed under load; its replica takes its
// place, with what was replicated to it.
func TestFailover(t *testing.T) {
	first := redistest.Start(t)
	second := redistest.Start(t, "--replicaof", "127.0.0.1", strconv.Itoa(first.Port()))
	sentinel := redistest.StartSentinel(t,
		fmt.Sprintf("sentinel monitor limits 127.0.0.1 %d 1", first.Port()),
		"sentinel down-after-milliseconds limits 300", "sentinel failover-timeout limits 2000")
	s, _ := open(t, sentinel.Address, func(o *Options) {
		o.Mode, o.MasterName, o.Timeout = Sentinel, "limits", 200*time.Millisecond
	})
	ctx := context.Background()
	watch, replica := client(t, sentinel), client(t, second)
	testutil.Eventually(t, "the sentinel knows the replica, and the replica is linked", func() bool {
		return strings.Contains(watch.Do(ctx, "sentinel", "replicas", "limits").String(),
			strconv.Itoa(second.Port())) &&
			strings.Contains(replica.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	until(t, s, true)
	mustTake(t, s, true, Demand{Key: KeyOf(1, []byte("alice")), Limit: perHour(10), Cost: 10})
	if err := client(t, first).Wait(ctx, 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	during(s, func() {
		first.Kill()
		until(t, s, false)
		until(t, s, true)
	})
	if role := replica.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
		t.Errorf("the replica has not taken over: %s", role)
	}
	for {
		passes, err := s.Take([]Demand{demand("alice", perHour(10))})
		if err == nil {
			if passes {
				t.Error("what the replica had been told is forgotten")
			}
			return
		}
	}
}

// TestDemoted: a server that has become a replica decides nothing, and is asked again when it no
// longer is one.
func TestDemoted(t *testing.T) {
	ctx := context.Background()
	other, server := redistest.Start(t), redistest.Start(t)
	s, _ := open(t, server.Address, nil)
	until(t, s, true)
	if err := client(t, server).ReplicaOf(ctx, "127.0.0.1", strconv.Itoa(other.Port())).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, s, false)
	if err := client(t, server).ReplicaOf(ctx, "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, s, true)
}

// TestFull: a server without memory left decides nothing, and lets no request through unnoticed.
func TestFull(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	s, _ := open(t, server.Address, nil)
	until(t, s, true)
	if err := client(t, server).ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, s, false)
	if err := client(t, server).ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, s, true)
}

// startCluster runs a cluster of servers that share the slots evenly.
func startCluster(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	ctx := context.Background()
	servers := make([]*redistest.Server, n)
	for i := range servers {
		servers[i] = redistest.Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		c := client(t, servers[i])
		if err := c.ClusterAddSlotsRange(ctx, 16384*i/n, 16384*(i+1)/n-1).Err(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := c.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(servers[0].Port())).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers {
		c := client(t, s)
		testutil.Eventually(t, "all nodes of the cluster are connected", func() bool {
			return strings.Contains(c.ClusterInfo(ctx).Val(), "cluster_state:ok") &&
				strings.Count(c.ClusterNodes(ctx).Val(), " connected ") == n
		})
	}
	return servers
}

func openCluster(t *testing.T, servers []*redistest.Server, change func(*Options)) (*Store, *recorder) {
	t.Helper()
	s, r := open(t, servers[0].Address, func(o *Options) {
		o.Mode = Cluster
		if change != nil {
			change(o)
		}
	})
	testutil.Eventually(t, "the nodes of the cluster are known", s.many.ready.Load)
	return s, r
}

// TestCluster: the limits of a request, on different servers, let it pass or take nothing; what some of them took is
// given back.
func TestCluster(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			servers := startCluster(t, n)
			s, r := openCluster(t, servers, nil)
			var demands []Demand
			for i := range 8 {
				demands = append(demands, demand(fmt.Sprint("wide", i), perHour(5)))
			}
			demands = append(demands, demand("narrow", perHour(2)))
			ask := func() []Demand { return append([]Demand(nil), demands...) }
			mustTake(t, s, true, ask()...)
			mustTake(t, s, true, ask()...)
			for range 20 {
				mustTake(t, s, false, ask()...)
			}
			if got := r.drain(); got[0] != OutcomeAdmitted || got[2] != OutcomeRefused || got[3] != OutcomeKnown {
				t.Errorf("outcomes are %v", got)
			}
			for i := range 8 {
				// It is given back with what passed in between left out, so the last of five may take that long.
				d := Demand{Key: demands[i].Key, Limit: perHour(5), Cost: 2}
				for passes := false; !passes; {
					var err error
					one := []Demand{d}
					if passes, err = s.Take(one); err != nil {
						t.Fatal(err)
					}
				}
			}
			busy := 0
			for _, server := range servers {
				if client(t, server).DBSize(context.Background()).Val() > 0 {
					busy++
				}
			}
			if busy != n {
				t.Errorf("%d of %d servers have buckets", busy, n)
			}
		})
	}
}

// TestClusterACL: in a cluster the user needs to ask for the map of slots, too.
func TestClusterACL(t *testing.T) {
	servers := startCluster(t, 2)
	for _, server := range servers {
		if err := client(t, server).ACLSetUser(context.Background(), "limits", "on", ">secret", "~gateway:*",
			"+evalsha", "+eval", "+time", "+mget", "+set", "+cluster|slots", "+asking").Err(); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := openCluster(t, servers,
		func(o *Options) { o.Credentials = func() (string, string) { return "limits", "secret" } })
	for i := range 20 {
		mustTake(t, s, true, demand(fmt.Sprint(i), perHour(1)))
	}
}

// TestClusterBound: requests that several limits on different servers decide on are never more than each of them
// allows.
func TestClusterBound(t *testing.T) {
	servers := startCluster(t, 3)
	a, _ := openCluster(t, servers, nil)
	b, _ := openCluster(t, servers, nil)
	l := Limit{Interval: 2 * time.Millisecond, Depth: 40 * time.Millisecond}
	all := loadWith(t, []*Store{a, b}, 4, 500, func() []Demand {
		return []Demand{demand("first", l),
			demand("second", Limit{Interval: 3 * time.Millisecond, Depth: 30 * time.Millisecond}), demand("third", l)}
	}, func(d []Demand, _, _ int64) admitted {
		at := d[1].taken.seconds*1e9 + d[1].taken.nanos
		return admitted{at, at}
	})
	if over, span := most(all, Limit{Interval: 3 * time.Millisecond, Depth: 30 * time.Millisecond}); over > 0 {
		t.Errorf("%d more passed than may: %s", over, span)
	}
}

// TestClusterMoves: a slot that has moved is found where it is now, within the same decision.
func TestClusterMoves(t *testing.T) {
	ctx := context.Background()
	servers := startCluster(t, 2)
	s, r := openCluster(t, servers, nil)
	d := demand("alice", perHour(3))
	mustTake(t, s, true, d)
	from, to := client(t, servers[0]), client(t, servers[1])
	slot := int(from.ClusterKeySlot(ctx, d.Key.name("gateway:")).Val())
	if slot >= 8192 {
		from, to = to, from
	}
	ids := map[*redis.Client]string{from: from.ClusterMyID(ctx).Val(), to: to.ClusterMyID(ctx).Val()}
	host, port, _ := net.SplitHostPort(to.Options().Addr)
	steps := []error{
		to.Do(ctx, "cluster", "setslot", slot, "importing", ids[from]).Err(),
		from.Do(ctx, "cluster", "setslot", slot, "migrating", ids[to]).Err(),
		from.Do(ctx, "migrate", host, port, d.Key.name("gateway:"), 0, 5000).Err(),
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	mustTake(t, s, true, d) // ASK
	for _, c := range []*redis.Client{to, from} {
		if err := c.Do(ctx, "cluster", "setslot", slot, "node", ids[to]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	mustTake(t, s, true, d) // MOVED
	mustTake(t, s, false, d)
	if got, want := fmt.Sprint(r.drain()), "[Admitted Admitted Admitted Refused]"; got != want {
		t.Errorf("outcomes are %s, want %s", got, want)
	}
}

// TestClusterServerFails: a server that fails does so alone; the buckets of the others are decided on.
func TestClusterServerFails(t *testing.T) {
	servers := startCluster(t, 3)
	for _, server := range servers {
		if err := client(t, server).ConfigSet(context.Background(), "cluster-require-full-coverage",
			"no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	s, r := openCluster(t, servers, func(o *Options) { o.Timeout = 200 * time.Millisecond })
	servers[2].Pause()
	works, fails := 0, 0
	for i := range 200 {
		if _, err := s.Take([]Demand{demand(fmt.Sprint(i), perHour(1))}); err == nil {
			works++
		} else {
			fails++
		}
	}
	if works < 50 || fails < 20 {
		t.Errorf("%d decisions, %d failures", works, fails)
	}
	r.mu.Lock()
	if fmt.Sprint(r.unavailable) != "[1]" {
		t.Errorf("unavailable servers: %v", r.unavailable)
	}
	r.mu.Unlock()
	servers[2].Resume()
}
