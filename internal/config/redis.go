package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RedisMode is how Redis is deployed.
type RedisMode string

// The modes.
const (
	RedisSingle   RedisMode = "Single"
	RedisSentinel RedisMode = "Sentinel"
	RedisCluster  RedisMode = "Cluster"
)

var redisModes = []RedisMode{RedisSingle, RedisSentinel, RedisCluster}

// WriteLocks says which writes to an object of an ordinary API come one after the other.
type WriteLocks string

const (
	// SharedLocks are kept in Redis, for all gateways. Without Redis nothing is written.
	SharedLocks WriteLocks = "Shared"
	// LocalLocks are kept by each gateway for its own writes.
	LocalLocks WriteLocks = "Local"
)

var writeLocks = []WriteLocks{SharedLocks, LocalLocks}

// Redis keeps the limits that gateways share. Its files are read again when they change. In a
// configuration file, a path is relative to its directory. There is no place for a password in the
// file itself.
type Redis struct {
	// Mode is how Redis is deployed.
	Mode RedisMode `json:"mode"`
	// Addresses are, as host and port, the address of the server, of the sentinels, or of some
	// servers of the cluster.
	Addresses []string `json:"addresses"`
	// MasterName is the name that the sentinels have for the server.
	MasterName string `json:"masterName"`
	// Database is the number of the database.
	Database int32 `json:"database"`
	// Username is the user of Redis' ACL, or UsernameFile the file that holds it; neither is the default user.
	Username     string `json:"username"`
	UsernameFile string `json:"usernameFile"`
	// PasswordFile holds the user's password; empty if there is none.
	PasswordFile string `json:"passwordFile"`
	// SentinelUsername and SentinelPasswordFile are for the sentinels. They are read once.
	SentinelUsername     string `json:"sentinelUsername"`
	SentinelPasswordFile string `json:"sentinelPasswordFile"`
	// TLS is how connections are made by TLS, also to sentinels; nil is without.
	TLS *UpstreamTLS `json:"tls"`
	// KeyPrefix begins the names of all keys. Gateways with the same one count together.
	KeyPrefix string `json:"keyPrefix"`
	// TimeoutMilliseconds is the longest time that a decision takes, ConnectTimeoutMilliseconds the longest to connect.
	TimeoutMilliseconds        int32 `json:"timeoutMilliseconds"`
	ConnectTimeoutMilliseconds int32 `json:"connectTimeoutMilliseconds"`
	// WriteLocks says whether the gateways that share Redis write an object one after the other.
	WriteLocks WriteLocks `json:"writeLocks"`
	// Connections is the largest number of connections to each server; each carries many decisions at once.
	Connections int32 `json:"connections"`
}

func defaultRedis() Redis {
	return Redis{
		Mode: RedisSingle, WriteLocks: SharedLocks, KeyPrefix: "admission-gateway:",
		TimeoutMilliseconds: 10, ConnectTimeoutMilliseconds: 1000, Connections: 4,
	}
}

// Timeout and ConnectTimeout are TimeoutMilliseconds and ConnectTimeoutMilliseconds.
func (r *Redis) Timeout() time.Duration {
	return time.Duration(r.TimeoutMilliseconds) * time.Millisecond
}

// ConnectTimeout is described with Timeout.
func (r *Redis) ConnectTimeout() time.Duration {
	return time.Duration(r.ConnectTimeoutMilliseconds) * time.Millisecond
}

// files are the names of files in r.
func (r *Redis) files() []*string {
	if r == nil {
		return nil
	}
	return append(r.TLS.files(), &r.UsernameFile, &r.PasswordFile, &r.SentinelPasswordFile)
}

// maxPrefix is the length of the longest prefix of keys.
const maxPrefix = 64

// redis checks where shared limits are kept; nil if they are not.
func (v *validator) redis(path string, r *Redis) {
	if r == nil {
		return
	}
	if !slices.Contains(redisModes, r.Mode) {
		v.check(path+".mode", notOneOf(string(r.Mode), redisModes))
	}
	v.redisAddresses(path, r)
	v.redisUsers(path, r)
	switch {
	case r.Mode == RedisSentinel:
		v.required(path+".masterName", r.MasterName)
	case r.MasterName != "":
		v.check(path+".masterName", fmt.Sprintf("must not be set unless `%s.mode` is 'Sentinel'", path))
	}
	if r.Mode == RedisCluster && r.Database != 0 {
		v.check(path+".database", fmt.Sprintf("must be 0 where `%s.mode` is 'Cluster'", path))
	}
	between(v, path+".database", r.Database, 0, 1<<20)
	if r.TLS != nil {
		v.clientTLS(path+".tls", r.TLS)
	}
	if r.KeyPrefix == "" || len(r.KeyPrefix) > maxPrefix ||
		strings.ContainsFunc(r.KeyPrefix, func(c rune) bool { return notPlain(c) && c != ':' }) {
		v.check(path+".keyPrefix", fmt.Sprintf("must be between 1 and %d letters, digits and '-', '.', '_', '~', ':'",
			maxPrefix))
	}
	between(v, path+".timeoutMilliseconds", r.TimeoutMilliseconds, 1, 1000)
	between(v, path+".connectTimeoutMilliseconds", r.ConnectTimeoutMilliseconds, 1, 60_000)
	if !slices.Contains(writeLocks, r.WriteLocks) {
		v.check(path+".writeLocks", notOneOf(string(r.WriteLocks), writeLocks))
	}
	between(v, path+".connections", r.Connections, 1, 1024)
}

func (v *validator) redisAddresses(path string, r *Redis) {
	switch {
	case len(r.Addresses) == 0:
		v.check(path+".addresses", "Required value: must have at least one host and port")
	case r.Mode == RedisSingle && len(r.Addresses) > 1:
		v.check(path+".addresses", fmt.Sprintf("must have exactly one where `%s.mode` is 'Single'", path))
	}
	for i, a := range r.Addresses {
		at := fmt.Sprintf("%s.addresses[%d]", path, i)
		v.check(at, remoteProblem(a))
		if slices.Contains(r.Addresses[:i], a) {
			v.check(at, fmt.Sprintf("must be unique; '%s' is listed twice", a))
		}
	}
}

func (v *validator) redisUsers(path string, r *Redis) {
	if r.Username != "" && r.UsernameFile != "" {
		v.check(path+".usernameFile", fmt.Sprintf("must not be set where `%s.username` is", path))
	}
	if (r.Username != "" || r.UsernameFile != "") && r.PasswordFile == "" {
		v.check(path+".passwordFile", "Required value: must name the file with the user's password")
	}
	if r.SentinelUsername != "" && r.SentinelPasswordFile == "" {
		v.check(path+".sentinelPasswordFile", "Required value: must name the file with the password for the sentinels")
	}
	if r.Mode != RedisSentinel && r.SentinelPasswordFile != "" {
		v.check(path+".sentinelPasswordFile", fmt.Sprintf("must not be set unless `%s.mode` is 'Sentinel'", path))
	}
}

// remoteProblem says what is wrong with an address to connect to.
func remoteProblem(address string) string {
	host, port, err := net.SplitHostPort(address)
	n, wrong := strconv.ParseUint(port, 10, 16)
	if err != nil || wrong != nil || n == 0 || host == "" || hostProblem(strings.ToLower(host)) != "" {
		return fmt.Sprintf("must be a host and a port such as 'redis:6379', not '%s'", address)
	}
	return ""
}

// LocksLocally reports whether there are several gateways, and each keeps writers of an object apart for itself
// alone. isStated says that the configuration asks for that.
func (c *Configuration) LocksLocally() (locally, isStated bool) {
	if c.Redis == nil {
		return c.Replicas > 1, false
	}
	isStated = c.Redis.WriteLocks == LocalLocks
	return isStated, isStated
}
