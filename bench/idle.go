package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// The goals for connections of clients that have sent a request and are kept for the next one, and for watches that
// nothing happens on: at most so many KB of resident memory each.
const (
	maxIdleKB       = 6
	maxIdleSecureKB = 20
)

// parked is how long it takes until the gateway has parked idle connections and given their memory back, if they were
// opened within a few seconds.
const parked = 12 * time.Second

// idle starts a gateway, and returns the KB of resident memory that each of n idle connections adds.
func (m *Machine) idle(ctx context.Context, n int, isSecure bool) (float64, error) {
	backend, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = backend.Close() }()
	go func() { _ = serveBackend(backend) }() // until it is closed
	listen, err := freeAddress()
	if err != nil {
		return 0, err
	}
	config := map[string]any{
		"upstreams": []any{map[string]any{"name": "backend",
			"endpoints": []string{"http://" + backend.Addr().String()}}}}
	dial := func() (net.Conn, error) { return net.Dial("tcp", listen) }
	t := Target{Secure: isSecure}
	if isSecure {
		config["tls"] = map[string]any{"certFile": m.Certificate + ".crt", "keyFile": m.Certificate + ".key"}
		// No sessions are resumed: each connection makes a whole handshake, as those of many clients do.
		dial = func() (net.Conn, error) {
			//nolint:gosec // the certificate was made a moment ago
			return tls.Dial("tcp", listen, &tls.Config{InsecureSkipVerify: true})
		}
	}
	command, err := m.configured(listen, "idle", config)
	if err != nil {
		return 0, err
	}
	gateway, err := startProcess(m.Dir, "idle", m.serverCPUs, command...)
	if err != nil {
		return 0, err
	}
	defer gateway.stop()
	if _, err := gateway.waitReady(ctx, t.base(listen)+collection+"/"+objectName); err != nil {
		return 0, err
	}
	var all []net.Conn
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	open := func(n int) error {
		for range n {
			c, err := dial()
			if err != nil {
				return err
			}
			all = append(all, c)
			if err := useOnce(c); err != nil {
				return errors.Join(err, errors.New(gateway.output()))
			}
		}
		return nil
	}
	if err := open(20); err != nil { // what is made once
		return 0, err
	}
	before, err := gateway.residentLater()
	if err != nil {
		return 0, err
	}
	if err := open(n); err != nil {
		return 0, err
	}
	time.Sleep(parked)
	after, err := gateway.residentLater()
	return (after - before) * 1024 / float64(n), err
}

// useOnce sends a GET on a connection and reads the answer.
func useOnce(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET %s/%s HTTP/1.1\r\nHost: gateway\r\n\r\n", collection, objectName); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// residentLater returns the resident memory in MiB when what was just done is over.
func (p *Process) residentLater() (float64, error) {
	time.Sleep(3 * time.Second)
	return p.resident()
}
