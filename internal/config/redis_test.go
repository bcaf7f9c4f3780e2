package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/admission-gateway/gateway/internal/testutil"
)

const behindRedis = head + "upstreams: [{name: api, endpoints: [http://127.0.0.1:9000]}]\nredis:\n"

func TestRedis(t *testing.T) {
	for _, test := range []struct {
		setting string
		want    Redis
	}{
		{"addresses: [redis:6379]", Redis{Mode: RedisSingle, Addresses: []string{"redis:6379"},
			KeyPrefix:           "admission-gateway:",
			TimeoutMilliseconds: 10, ConnectTimeoutMilliseconds: 1000, WriteLocks: SharedLocks, Connections: 4}},
		{"{mode: Sentinel, addresses: [a:26379, '[::1]:26379'], masterName: limits, database: 3, usernameFile: /etc/user, " +
			"passwordFile: /etc/password, sentinelUsername: watcher, sentinelPasswordFile: /etc/sentinel, tls: {caFile: /etc/ca.crt}, " +
			"keyPrefix: 'team-a:', timeoutMilliseconds: 5, connectTimeoutMilliseconds: 200, connections: 2}",
			Redis{Mode: RedisSentinel, Addresses: []string{"a:26379", "[::1]:26379"}, MasterName: "limits", Database: 3,
				UsernameFile: "/etc/user", PasswordFile: "/etc/password", SentinelUsername: "watcher",
				SentinelPasswordFile: "/etc/sentinel",
				TLS:                  &UpstreamTLS{CAFile: "/etc/ca.crt"}, KeyPrefix: "team-a:", TimeoutMilliseconds: 5,
				ConnectTimeoutMilliseconds: 200, WriteLocks: SharedLocks, Connections: 2}},
	} {
		c, problem, _ := load(t, behindRedis+"  "+test.setting+"\n", Flags{})
		if problem != "" {
			t.Errorf("%s: %s", test.setting, problem)
		} else if !reflect.DeepEqual(*c.Redis, test.want) {
			t.Errorf("%s: got %+v, want %+v", test.setting, *c.Redis, test.want)
		}
	}
	if Default().Redis != nil {
		t.Error("Redis is asked without being named")
	}
}

func TestRedisProblems(t *testing.T) {
	const at = "gateway.yaml:5: redis."
	for setting, want := range map[string]string{
		"mode: Single":                                                           "addresses: Required value: must have at least one host and port",
		"{mode: Many, addresses: [a:1]}":                                         "mode: must be 'Single', 'Sentinel' or 'Cluster', not 'Many'",
		"addresses: [a:1, b:1]":                                                  "addresses: must have exactly one where `redis.mode` is 'Single'",
		"{mode: Cluster, addresses: [a:1, a:1]}":                                 "addresses[1]: must be unique; 'a:1' is listed twice",
		"addresses: [redis]":                                                     "addresses[0]: must be a host and a port such as 'redis:6379', not 'redis'",
		"addresses: ['redis:0']":                                                 "addresses[0]: must be a host and a port such as 'redis:6379', not 'redis:0'",
		"addresses: [':6379']":                                                   "addresses[0]: must be a host and a port such as 'redis:6379', not ':6379'",
		"{mode: Sentinel, addresses: [a:1]}":                                     "masterName: Required value",
		"{addresses: [a:1], masterName: m}":                                      "masterName: must not be set unless `redis.mode` is 'Sentinel'",
		"{mode: Cluster, addresses: [a:1], database: 1}":                         "database: must be 0 where `redis.mode` is 'Cluster'",
		"{addresses: [a:1], database: -1}":                                       "database: must be between 0 and 1048576, inclusive, not -1",
		"{addresses: [a:1], username: gateway}":                                  "passwordFile: Required value: must name the file with the user's password",
		"{addresses: [a:1], username: a, usernameFile: b, passwordFile: c}":      "usernameFile: must not be set where `redis.username` is",
		"{addresses: [a:1], sentinelPasswordFile: c}":                            "sentinelPasswordFile: must not be set unless `redis.mode` is 'Sentinel'",
		"{mode: Sentinel, addresses: [a:1], masterName: m, sentinelUsername: c}": "sentinelPasswordFile: Required value: must name the file with the password for the sentinels",
		"{addresses: [a:1], tls: {certFile: c}}":                                 "tls.keyFile: Required value: must name the key of `redis.tls.certFile`",
		"{addresses: [a:1], keyPrefix: ''}":                                      "keyPrefix: must be between 1 and 64 letters, digits and '-', '.', '_', '~', ':'",
		"{addresses: [a:1], keyPrefix: '{slot}'}":                                "keyPrefix: must be between 1 and 64 letters, digits and '-', '.', '_', '~', ':'",
		"{addresses: [a:1], timeoutMilliseconds: 0}":                             "timeoutMilliseconds: must be between 1 and 1000, inclusive, not 0",
		"{addresses: [a:1], connectTimeoutMilliseconds: 100000}":                 "connectTimeoutMilliseconds: must be between 1 and 60000, inclusive, not 100000",
		"{addresses: [a:1], connections: 0}":                                     "connections: must be between 1 and 1024, inclusive, not 0",
		"{addresses: [a:1], writeLocks: None}":                                   "writeLocks: must be 'Shared' or 'Local', not 'None'",
	} {
		_, problem, _ := load(t, behindRedis+"  "+setting+"\n", Flags{})
		if problem != at+want && problem != strings.Replace(at, ":5:", ":4:", 1)+want {
			t.Errorf("%s: got\n%s\nwant\n%s", setting, problem, at+want)
		}
	}
	// A secret has no place in the file.
	if _, problem, _ := load(t, behindRedis+"  {addresses: [a:1], password: secret}\n", Flags{}); problem == "" {
		t.Error("a password in the file is taken")
	}
}

// TestLocksLocally: several gateways lock objects together if they have Redis, unless the file says otherwise.
func TestLocksLocally(t *testing.T) {
	for text, want := range map[string][2]bool{
		"":              {false, false},
		"replicas: 2\n": {true, false},
		"replicas: 2\nredis: {addresses: [a:1]}\n":                    {false, false},
		"replicas: 2\nredis: {addresses: [a:1], writeLocks: Local}\n": {true, true},
		"redis: {addresses: [a:1], writeLocks: Local}\n":              {true, true},
	} {
		c, err := Load(testutil.WriteFile(t, filepath.Join(t.TempDir(), "gateway.yaml"), "apiVersion: admission-gateway.io/v1alpha1\nkind: GatewayConfiguration\nupstreams:\n- {name: a, endpoints: ['http://127.0.0.1:9000']}\n"+text), Flags{})
		if err != nil {
			t.Fatal(err)
		}
		if locally, isStated := c.LocksLocally(); locally != want[0] || isStated != want[1] {
			t.Errorf("%q: %v, %v", text, locally, isStated)
		}
	}
}
