package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
)

// The network of the Pods: a bridge, to which the namespace of each Pod is connected.
const (
	bridge      = "pods"
	nodeAddress = "10.244.0.1"
	podMask     = 16
)

// A network gives addresses to Pods.
type network struct {
	link netlink.Link
	mu   sync.Mutex
	last int
}

// openNetwork makes the bridge.
func openNetwork() (*network, error) {
	if err := raise("lo"); err != nil {
		return nil, err
	}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}); err != nil {
		return nil, fmt.Errorf("there is no bridge: %w", err)
	}
	link, err := netlink.LinkByName(bridge)
	if err != nil {
		return nil, err
	}
	if err := assign(link, nodeAddress, podMask); err != nil {
		return nil, err
	}
	return &network{link: link, last: 1}, raise(bridge)
}

// next returns an address for a Pod. No other has had it.
func (n *network) next() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	return fmt.Sprintf("10.244.%d.%d", n.last/250, n.last%250+1)
}

// connect gives the namespace of a process the link eth0 to the bridge. It ends with the namespace.
func (n *network) connect(pid int) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = fmt.Sprint("pod", pid)
	attributes.MasterIndex = n.link.Attrs().Index
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: podLink,
		PeerNamespace: netlink.NsPid(pid)}); err != nil {
		return fmt.Errorf("the Pod is not connected: %w", err)
	}
	return raise(attributes.Name)
}

// podLink is the link of a Pod's own namespace.
const podLink = "eth0"

// configure gives the link of this namespace its address, and a way to all others.
func configure(address string) error {
	if err := raise("lo"); err != nil {
		return err
	}
	link, err := netlink.LinkByName(podLink)
	if err != nil {
		return err
	}
	if err := assign(link, address, podMask); err != nil {
		return err
	}
	if err := raise(podLink); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(nodeAddress)})
}

// AddBlock gives the network all addresses of a block, for example for Gateways.
func AddBlock(block string) error {
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return assign(link, prefix.Addr().String(), prefix.Bits())
}

func assign(link netlink.Link, address string, mask int) error {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address).To4(), Mask: net.CIDRMask(mask, 32)}}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("%s has not the address %s: %w", link.Attrs().Name, address, err)
	}
	return nil
}

func raise(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s is not up: %w", name, err)
	}
	return nil
}
