package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what is known of machines.
const (
	addressesFor = 10 * time.Minute // addresses of a name are believed
	failuresFor  = time.Minute      // that it has none
	lookupBound  = 250 * time.Millisecond
	askEvery     = time.Second // Slurm is asked about nodes for one network
	maxAsking    = 4           // such questions at a time
	// heardFor is how long a node that is heard from one address is heard from no other.
	heardFor    = 10 * time.Minute
	maxMachines = 100_000
	maxNodeName = 80 // bytes of it in messages
)

// Machines tells by the address that a request comes from for which nodes root there may speak, and whether
// it may do what administrators do. Munge's key is the same everywhere, so a credential says which user
// asks and proves no machine: what can't be had without the machine is its address. All are options but
// Log.
type Machines struct {
	// Nodes are Slurm's, as it listed them last.
	Nodes func() []slurm.Node
	// Node asks Slurm for one that isn't in the list.
	Node func(ctx context.Context, name string) (slurm.Node, error)
	// AdminHosts and NodeHosts are further machines, by name or address: from where administrators may ask, and
	// from where agents of any node do.
	AdminHosts, NodeHosts func() []string
	Lookup                func(ctx context.Context, name string) ([]netip.Addr, error)
	Own                   func() ([]netip.Addr, error) // this machine's
	Clock                 func() time.Time
	Log                   *slog.Logger

	mu    sync.Mutex
	names map[string]resolvedAddrs
	hosts map[netip.Addr][]string // names by their addresses
	list  nodeList
	heard map[string]heardNode        // by node
	bound map[netip.Addr]addressOwner // addresses that Slurm doesn't know
	own   resolvedAddrs               // under ""
	asked map[string]askedNode        // nodes that weren't in the list
	// askers are networks, as [networkOf] has them, with when Slurm was asked last about a node for them.
	askers map[string]time.Time
	asking int // questions to Slurm, now
}

// resolvedAddrs are addresses of a name.
type resolvedAddrs struct {
	addrs []netip.Addr
	at    time.Time
	known bool // somebody could say
}

// isFresh reports whether addresses are no older than that, or than what is believed if nobody could say.
func (r *resolvedAddrs) isFresh(now time.Time, most time.Duration) bool {
	if !r.known {
		most = failuresFor
	}
	return !r.at.IsZero() && now.Sub(r.at) < most
}

// heardNode is from where a node was heard last.
type heardNode struct {
	from   netip.Addr
	proven bool // it is an address of the node by Slurm
	at     time.Time
}

// askedNode is what Slurm said of one node.
type askedNode struct {
	slurm.Node
	known bool
	until time.Time
}

// addressOwner is the node that speaks from an address.
type addressOwner struct {
	node string
	at   time.Time
}

// NewMachines are machines by this one's interfaces and its resolver.
func NewMachines(log *slog.Logger) *Machines {
	return &Machines{
		Clock: time.Now, Log: log, Own: interfaceAddresses,
		Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		},
	}
}

// interfaceAddresses returns those of this machine.
func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	list := make([]netip.Addr, 0, len(all))
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, canonicalAddr(p.Addr()))
		}
	}
	return list, err
}

// canonicalAddr returns an address in the one form that it is compared in.
func canonicalAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// addressOf returns where a request or a connection comes from; invalid: from no network.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return canonicalAddr(at.Addr())
}

// IsOwn reports whether an address is this machine's.
func (m *Machines) IsOwn(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	now := m.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.own.isFresh(now, failuresFor) {
		if addrs, err := m.Own(); err == nil {
			m.own = resolvedAddrs{addrs, now, true}
		}
	}
	return slices.Contains(m.own.addrs, a)
}

// MayAdminister reports whether administrators at an address may do what they may on this machine.
func (m *Machines) MayAdminister(ctx context.Context, a netip.Addr) bool {
	return m.IsOwn(a) || m.AdminHosts != nil && m.isOneOf(ctx, a, m.AdminHosts())
}

func (m *Machines) isOneOf(ctx context.Context, a netip.Addr, hosts []string) bool {
	return slices.ContainsFunc(hosts, func(host string) bool {
		return slices.Contains(m.addressesOf(ctx, host, addressesFor), a)
	})
}

// addressesOf returns those of a host, by name or address, as of so long ago at most.
func (m *Machines) addressesOf(ctx context.Context, host string, most time.Duration) []netip.Addr {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{canonicalAddr(a)}
	}
	now := m.Clock()
	m.mu.Lock()
	known := m.names[host]
	m.mu.Unlock()
	if known.isFresh(now, most) {
		return known.addrs
	}
	ctx, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	found, err := m.Lookup(ctx, host)
	fresh := resolvedAddrs{known.addrs, now, false} // while nobody can say, what was said
	if err == nil {
		fresh = resolvedAddrs{make([]netip.Addr, len(found)), now, true}
		for i := range found {
			fresh.addrs[i] = canonicalAddr(found[i])
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setName(host, fresh)
	return fresh.addrs
}

// setName keeps the addresses of a name. The caller holds m.mu.
func (m *Machines) setName(host string, now resolvedAddrs) {
	if m.names == nil || len(m.names) >= maxMachines {
		m.names, m.hosts = make(map[string]resolvedAddrs), make(map[netip.Addr][]string)
	}
	for _, a := range m.names[host].addrs {
		m.hosts[a] = slices.DeleteFunc(m.hosts[a], func(other string) bool { return other == host })
		if len(m.hosts[a]) == 0 {
			delete(m.hosts, a)
		}
	}
	m.names[host] = now
	for _, a := range now.addrs {
		m.hosts[a] = append(m.hosts[a], host)
	}
}

// nodeList is a list of Slurm's nodes by what they are looked up by: of several nodes the first.
type nodeList struct {
	nodes  []slurm.Node
	byName map[string]int
	byHost map[string]int // by each of a node's names
	byAddr map[netip.Addr]int
}

// hostsOf returns the names and addresses that a node has in Slurm.
func hostsOf(n *slurm.Node) []string { return []string{n.Address, n.HostName, n.Name} }

func newNodeList(nodes []slurm.Node) nodeList {
	l := nodeList{nodes, make(map[string]int, len(nodes)), make(map[string]int), make(map[netip.Addr]int)}
	for i := range slices.Backward(nodes) {
		n := &nodes[i]
		l.byName[n.Name] = i
		for _, host := range hostsOf(n) {
			if host == "" {
				continue
			}
			l.byHost[host] = i
			if literal, err := netip.ParseAddr(host); err == nil {
				l.byAddr[canonicalAddr(literal)] = i
			}
		}
	}
	return l
}

// current is Slurm's last list. A list is never changed, only replaced. The caller holds m.mu.
func (m *Machines) current(nodes []slurm.Node) *nodeList {
	if len(nodes) != len(m.list.nodes) || len(nodes) > 0 && &nodes[0] != &m.list.nodes[0] {
		m.list = newNodeList(nodes)
	}
	return &m.list
}

// listedNode returns a node of Slurm's last list; false: it isn't there.
func (m *Machines) listedNode(name string) (slurm.Node, bool) {
	if m.Nodes == nil {
		return slurm.Node{}, false
	}
	nodes := m.Nodes()
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := m.current(nodes).byName[name]
	if !known {
		return slurm.Node{}, false
	}
	return nodes[i], true
}

// askSlurm asks Slurm for a node that is said to be at an address, once a minute; false: Slurm has none, or
// doesn't say. Each question is a process: one network has as few asked as a node needs, whatever names it
// says, and all together few at a time.
func (m *Machines) askSlurm(ctx context.Context, from netip.Addr, name string) (slurm.Node, bool) {
	now, source := m.Clock(), networkOf(from)
	m.mu.Lock()
	before := m.asked[name]
	isAsked := m.Node != nil && !now.Before(before.until) && now.Sub(m.askers[source]) >= askEvery &&
		m.asking < maxAsking
	if isAsked {
		if m.askers == nil || len(m.askers) >= maxMachines {
			m.askers = make(map[string]time.Time)
		}
		m.askers[source] = now
		m.asking++
	}
	m.mu.Unlock()
	if !isAsked {
		return before.Node, before.known
	}
	ctx, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	n, err := m.Node(ctx, name)
	fresh := askedNode{n, err == nil, now.Add(failuresFor)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking--
	if m.asked == nil || len(m.asked) >= maxMachines {
		m.asked = make(map[string]askedNode)
	}
	m.asked[name] = fresh
	return n, fresh.known
}

// hasOthers reports whether Slurm's nodes are known, and that it can be asked for one that isn't among them.
func (m *Machines) hasOthers() bool { return m.Node != nil && m.Nodes != nil && len(m.Nodes()) > 0 }

// isThisMachine reports whether this machine has one of a node's addresses, as far as they are known.
func (m *Machines) isThisMachine(ctx context.Context, n *slurm.Node) bool {
	return slices.ContainsFunc(hostsOf(n), func(host string) bool {
		return host != "" && slices.ContainsFunc(m.addressesOf(ctx, host, addressesFor), m.IsOwn)
	})
}

// isAddressOf reports whether an address is one of a node's, as Slurm has it, by names as of so long ago at most.
func (m *Machines) isAddressOf(ctx context.Context, a netip.Addr, n *slurm.Node, most time.Duration) bool {
	return slices.ContainsFunc(hostsOf(n), func(host string) bool {
		return host != "" && slices.Contains(m.addressesOf(ctx, host, most), a)
	})
}

// find returns a node of Slurm's, and whether an address is one of its. What is known may be of before the
// node got that address: then Slurm and the names are asked anew.
func (m *Machines) find(ctx context.Context, a netip.Addr, name string) (n slurm.Node, known, its bool) {
	if n, known = m.listedNode(name); known && m.isAddressOf(ctx, a, &n, addressesFor) {
		return n, true, true
	}
	if now, ok := m.askSlurm(ctx, a, name); ok {
		n, known = now, true
	}
	return n, known, known && m.isAddressOf(ctx, a, &n, failuresFor)
}

// ownerOf returns a node that has an address, by what is known of nodes' addresses without asking; of several
// the first in Slurm's list.
func (m *Machines) ownerOf(a netip.Addr) string {
	if m.Nodes == nil {
		return ""
	}
	nodes := m.Nodes()
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.current(nodes)
	first, found := list.byAddr[a]
	for _, host := range m.hosts[a] {
		if i, known := list.byHost[host]; known && (!found || i < first) {
			first, found = i, true
		}
	}
	if !found {
		return ""
	}
	return nodes[first].Name
}

// SpeaksFor tells by its error, [query.ErrForbidden], that root at an address may not speak for a node;
// origin is where munge says that its credential was made. This machine and those of NodeHosts speak for
// any. A node that comes from an address that Slurm doesn't know, as one with several networks, speaks for
// itself alone from there, and only while it isn't heard from elsewhere. One that Slurm has on this machine
// comes from no other, and one that Slurm doesn't have from none.
func (m *Machines) SpeaksFor(ctx context.Context, from, origin netip.Addr, node string) error {
	if slurm.ValidNode(node) != nil {
		return fmt.Errorf("%w: Slurm has no node %s", query.ErrForbidden, slurm.Printable(node, maxNodeName))
	}
	if m.IsOwn(from) || m.NodeHosts != nil && m.isOneOf(ctx, from, m.NodeHosts()) {
		m.noteHeardTrusted(node, from)
		return nil
	}
	n, known, proven := m.find(ctx, from, node)
	if !proven {
		if owner := m.ownerOf(from); owner != "" {
			return fmt.Errorf("%w: %s is the address of node %s, which speaks for itself alone", query.ErrForbidden,
				from, owner)
		}
		if !known && m.hasOthers() {
			return fmt.Errorf("%w: Slurm has no node %s", query.ErrForbidden, node)
		}
		if known && m.isThisMachine(ctx, &n) {
			return fmt.Errorf("%w: Slurm has node %s on the controller's machine, and %s isn't that",
				query.ErrForbidden, node, from)
		}
	}
	owner := m.ownerOf(origin)
	if known && owner != "" && owner != node && !m.isAddressOf(ctx, origin, &n, addressesFor) {
		return fmt.Errorf("%w: the credential was made on node %s, which speaks for itself alone",
			query.ErrForbidden, owner)
	}
	return m.noteHeard(node, from, proven)
}

// machineAsking is where a request comes from.
type machineAsking struct {
	machines     *Machines
	request      *http.Request
	from, origin netip.Addr
}

// SpeaksFor is [Machines.SpeaksFor].
func (m *machineAsking) SpeaksFor(node string) error {
	return m.machines.SpeaksFor(m.request.Context(), m.from, m.origin, node)
}

// noteHeardTrusted notes that a node speaks from an address from where any node may: it isn't elsewhere then.
func (m *Machines) noteHeardTrusted(node string, from netip.Addr) {
	now := m.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setHeard(node, heardNode{from, true, now})
}

// setHeard keeps from where a node was heard. The caller holds m.mu.
func (m *Machines) setHeard(node string, now heardNode) {
	if m.heard == nil || len(m.heard) >= maxMachines {
		m.heard = make(map[string]heardNode)
	}
	m.heard[node] = now
}

// noteHeard notes that a node speaks from an address, unless it is another one's or the node is elsewhere.
func (m *Machines) noteHeard(node string, from netip.Addr, proven bool) error {
	now := m.Clock()
	m.mu.Lock()
	defer m.mu.Unlock()
	last, heard := m.heard[node]
	lately := heard && now.Sub(last.at) < heardFor
	by, taken := m.bound[from]
	switch {
	case proven:
	case lately && last.from != from:
		return fmt.Errorf("%w: node %s speaks from %s, and %s isn't its address in Slurm; if it is, name it in "+
			"node_hosts of [live]", query.ErrForbidden, node, last.from, from)
	case taken && by.node != node && now.Sub(by.at) < heardFor:
		return fmt.Errorf("%w: node %s speaks from %s, which Slurm doesn't know as an address of %s; if several "+
			"nodes come from there, name it in node_hosts of [live]", query.ErrForbidden, by.node, from, node)
	default:
		if !taken || by.node != node {
			m.Log.Info("a node comes from an address that isn't its own in Slurm", "node", node, "from", from)
		}
		if m.bound == nil || len(m.bound) >= maxMachines {
			m.bound = make(map[netip.Addr]addressOwner)
		}
		m.bound[from] = addressOwner{node, now}
	}
	m.setHeard(node, heardNode{from, proven, now})
	return nil
}

// Run keeps up with the addresses of Slurm's nodes until the context ends, so that it is known whose an
// address is before its node speaks.
func (m *Machines) Run(ctx context.Context) {
	const every = 20 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		nodes := m.Nodes()
		for i := range nodes {
			for _, host := range hostsOf(&nodes[i]) {
				if host != "" && ctx.Err() == nil {
					m.addressesOf(ctx, host, addressesFor)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
