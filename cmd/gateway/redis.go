package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admission-gateway/gateway/internal/config"
	"github.com/admission-gateway/gateway/internal/credentials"
	"github.com/admission-gateway/gateway/internal/file"
	"github.com/admission-gateway/gateway/internal/presence"
	"github.com/admission-gateway/gateway/internal/ratelimit"
	"github.com/admission-gateway/gateway/internal/ratelimit/shared"
	"github.com/admission-gateway/gateway/internal/storage"
)

// share makes the limiter count shared limits in Redis, if the configuration names one. It does not
// wait for Redis: the gateway is ready without it.
func (n *node) share(limiter *ratelimit.Limiter) (io.Closer, error) {
	c := n.config.Load().Redis
	if c == nil {
		return io.NopCloser(nil), nil
	}
	o := shared.Options{
		Mode: shared.Mode(c.Mode), Addresses: c.Addresses, MasterName: c.MasterName, Database: int(c.Database),
		Prefix: c.KeyPrefix, Timeout: c.Timeout(), ConnectTimeout: c.ConnectTimeout(), Connections: int(c.Connections),
		Memory: n.memory, Metrics: n.metrics, Log: n.log,
	}
	if err := n.identifyToRedis(c, &o); err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	s, err := shared.Open(o)
	if err != nil {
		return nil, err
	}
	limiter.Share(s)
	if c.WriteLocks == config.SharedLocks {
		n.locker = redisLocks{s}
	}
	return s, nil
}

// redisLocks are the locks that gateways share in Redis.
type redisLocks struct{ store *shared.Store }

// Lock implements storage.Locker.
func (r redisLocks) Lock(object string, wait storage.Wait) (storage.SharedLock, error) {
	l, err := r.store.Lock(object, time.Until(wait.By), wait.Client)
	switch {
	case errors.Is(err, shared.ErrLocked), errors.Is(err, presence.ErrLeft):
		return nil, err
	case err != nil:
		return nil, &storage.LocksAwayError{Err: err}
	}
	return l, nil
}

// identifyToRedis sets who the gateway is to Redis, from files that may change.
func (n *node) identifyToRedis(c *config.Redis, o *shared.Options) error {
	type user struct{ name, password string }
	if c.PasswordFile != "" {
		files := []string{c.UsernameFile, c.PasswordFile}
		v, err := credentials.Watch(n.files, "redis", files, func(contents [][]byte) (user, error) {
			u := user{c.Username, secretIn(contents[1])}
			if c.UsernameFile != "" {
				u.name = secretIn(contents[0])
			}
			if u.password == "" {
				return u, fmt.Errorf("the password in '%s' must not be empty", c.PasswordFile)
			}
			return u, nil
		})
		if err != nil {
			return err
		}
		o.Credentials = func() (string, string) {
			u := v.Get()
			return u.name, u.password
		}
	}
	if c.SentinelPasswordFile != "" {
		text, _, err := file.Read(c.SentinelPasswordFile, maxSecret)
		if err != nil {
			return fmt.Errorf("the file '%s' %w", c.SentinelPasswordFile, err)
		}
		o.SentinelUser, o.SentinelPassword = c.SentinelUsername, secretIn(text)
	}
	if t := c.TLS; t != nil {
		own, err := credentials.WatchServiceAccount(n.files, "redis",
			&rest.Config{TLSClientConfig: rest.TLSClientConfig{
				CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName,
				Insecure: t.InsecureSkipTLSVerify,
			}})
		if err != nil {
			return err
		}
		o.TLS = func() *tls.Config {
			made := own.OwnTLS()
			if made == nil {
				return &tls.Config{MinVersion: tls.VersionTLS12}
			}
			made = made.Clone()
			made.NextProtos = nil // Redis is no HTTP
			return made
		}
	}
	return nil
}

// maxSecret is how large a file with a secret may be, in bytes.
const maxSecret = 64 << 10

// secretIn returns the secret in a file, without the end of its line.
func secretIn(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}
