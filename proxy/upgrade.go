package proxy

import (
	"bytes"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admission-gateway/gateway/internal/resource"
	"github.com/admission-gateway/gateway/internal/status"
	"github.com/admission-gateway/gateway/internal/upstream"
)

// upgrades are where the clients of a backend may go on in another protocol.
type upgrades struct {
	subresources []subresource
	prefixes     []string // of paths that are no resources
}

type subresource struct {
	of   schema.GroupResource
	name string
}

// newUpgrades reads entries that the configuration has checked: 'pods/exec', 'machines.example.com/console', '/live'.
func newUpgrades(entries []string) *upgrades {
	u := &upgrades{}
	for _, e := range entries {
		if strings.HasPrefix(e, "/") {
			u.prefixes = append(u.prefixes, strings.TrimSuffix(e, "/"))
			continue
		}
		name, sub, _ := strings.Cut(e, "/")
		u.subresources = append(u.subresources, subresource{schema.ParseGroupResource(name), sub})
	}
	return u
}

// allows tells whether the place is among them. What is part of an object never is.
func (u *upgrades) allows(i *resource.Info) bool {
	if i.IsResource {
		if i.Subresource == "" {
			return false
		}
		for _, s := range u.subresources {
			if s.name == i.Subresource && s.of.Resource == i.Resource && s.of.Group == i.Group {
				return true
			}
		}
		return false
	}
	if i.Verb != resource.VerbGet {
		return false
	}
	for _, p := range u.prefixes {
		if under(i.Path, p) {
			return true
		}
	}
	return false
}

// isTunnelled tells whether the gateway carries a protocol: those that Kubernetes streams in. HTTP/2 is not among them, for
// requests in it would pass unread.
func isTunnelled(protocol []byte) bool {
	return bytes.EqualFold(protocol, []byte("websocket")) || bytes.EqualFold(protocol, []byte("SPDY/3.1"))
}

// sendTunnel tells the client that its connection goes on in another protocol, and carries bytes both ways until it ends.
// What the client sent before it was told comes first.
func (c *conn) sendTunnel(t *upstream.Tunnel, protocol []byte, warnings []string) {
	defer t.Close()
	c.settle()
	c.answered, c.ending, c.linger = true, true, false
	head := append(append(append(t.Head, "Connection: Upgrade\r\nUpgrade: "...), protocol...), "\r\n"...)
	for _, w := range status.WarningHeaders(warnings) {
		head = append(append(append(head, "Warning: "...), w...), "\r\n"...)
	}
	head = append(append(head, "\r\n"...), t.Early...)
	t.Head, t.Early = nil, nil
	if _, err := c.send(head); err != nil {
		return
	}
	c.setReadDeadline(time.Time{})
	c.setWriteDeadline(time.Time{})
	early := bytes.Clone(c.buf[c.r:c.w])
	c.r = c.w
	c.lend()
	newPassage(c.Conn, t.Conn, t.Close, c.server).run(early)
}
