package daemon

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// How many connections may be open at a listener.
const (
	maxConns  = 4096             // in all
	maxOthers = maxConns * 3 / 4 // but for administrators, and for those from ports that only root has
	maxOfOne  = 128              // of a user, or of an address of a network
	maxOfMany = maxOthers / 2    // of the users of a range, or of a network of IPv6 from root's ports

	privilegedPorts = 1024
	networkBits6    = 64 // of IPv6: what one machine may have at least
)

// Door is who comes in at a listener.
type Door struct {
	// Full names users who are let in also when others have taken all connections that they may.
	Full func(uid int64) bool
	// Proves tells that who asks is proved by each request, as [CountAsProven] says: until then a connection is
	// anybody's, and makes room for another one where there are too many.
	Proves bool
	// Sessions tells that who asks has a session or a token, as [MarkProven] says: a connection without
	// makes room, too, and isn't kept for long.
	Sessions bool
	// Refused hears of a connection that is closed for there are too many: it wasn't let in, or made room. It
	// must not block, and may be nil.
	Refused func(from string, madeRoom bool)
}

// CountAsProven has a request's connection count as that of somebody who proved who asks, while it is answered.
func CountAsProven(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		MarkProven(r)
		h.ServeHTTP(w, r)
	})
}

// MarkProven has a request's connection count as that of somebody who proved who they are, from now on.
func MarkProven(r *http.Request) {
	if c, ok := r.Context().Value(peerKey{}).(*peerConn); ok {
		c.limiter.prove(c)
	}
}

// connLimiter bounds how many connections are open, and how many of them a user
// or a machine may have: further ones are closed at once, or take the place of one that has proved nothing.
type connLimiter struct {
	net.Listener
	door Door
	uids subordinateUIDs

	mu     sync.Mutex
	all    int
	others int
	groups map[string]*connGroup
}

// connGroup is the connections that are counted together.
type connGroup struct {
	open     int
	unproven list.List // of *peerConn, the oldest first
}

func newConnLimiter(l net.Listener, door Door) *connLimiter {
	if door.Full == nil {
		door.Full = func(int64) bool { return false }
	}
	if door.Refused == nil {
		door.Refused = func(string, bool) {}
	}
	return &connLimiter{Listener: l, door: door, groups: make(map[string]*connGroup)}
}

// Accept returns the next connection that may come in.
func (k *connLimiter) Accept() (net.Conn, error) {
	for {
		c, err := k.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := k.newConn(c, peerOf(c))
		in, out := k.enter(p)
		if out != nil {
			_ = out.Conn.Close()
			k.door.Refused(out.Conn.RemoteAddr().String(), true)
		}
		if in {
			return p, nil
		}
		_ = c.Close()
		k.door.Refused(c.RemoteAddr().String(), false)
	}
}

// newConn returns a connection with what it is counted by.
func (k *connLimiter) newConn(c net.Conn, uid int64) *peerConn {
	p := &peerConn{Conn: c, uid: uid, limiter: k, proven: !k.door.Proves && !k.door.Sessions}
	switch remote := addrPortOf(c.RemoteAddr()); {
	case k.door.Full(uid):
	case uid >= 0:
		p.other, p.proven = true, true
		p.counted = append(p.counted, countedAs{k.uids.owner(uint32(uid)), maxOfOne}) //nolint:gosec // it is one
		if many := uidRange(uint32(uid)); many != "" {                                //nolint:gosec // it is one
			p.counted = append(p.counted, countedAs{many, maxOfMany})
		}
	case !remote.IsValid():
		p.other = true
		p.counted = append(p.counted, countedAs{"nobody", maxOfOne})
	case k.door.Proves && remote.Port() < privilegedPorts:
		a := canonicalAddr(remote.Addr())
		p.counted = append(p.counted, countedAs{a.String() + " root", maxOfOne})
		if network := networkOf(a); network != a.String() {
			p.counted = append(p.counted, countedAs{network + " root", maxOfMany})
		}
	case k.door.Sessions && remote.Addr().Unmap().IsLoopback(): // many come by a proxy, or a tunnel
		p.other = true
		p.counted = append(p.counted, countedAs{"this machine", maxOfMany})
	default:
		p.other = true
		p.counted = append(p.counted, countedAs{networkOf(canonicalAddr(remote.Addr())), maxOfOne})
	}
	return p
}

func addrPortOf(a net.Addr) netip.AddrPort {
	if a == nil {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(a.String())
	return at
}

// networkOf returns what an address is counted by: of IPv6 the network of 64 bits.
func networkOf(a netip.Addr) string {
	if network, err := a.Prefix(networkBits6); a.Is6() && err == nil {
		return network.String()
	}
	return a.String()
}

// SourceOf is by what a caller is counted as one: of an address its network, as [networkOf] has it; this
// machine by any address that leads nowhere else, which any of its users may choose among. Else it is the
// text itself.
func SourceOf(remote string) string {
	switch a := addressOf(remote); {
	case !a.IsValid():
		return remote
	case a.IsLoopback():
		return "this machine"
	default:
		return networkOf(a)
	}
}

// enter lets a connection in if there is room, or if one that proved nothing can make it: that is the
// second one, to be closed.
func (k *connLimiter) enter(c *peerConn) (in bool, out *peerConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, by := range c.counted {
		if g := k.groups[by.name]; g != nil && g.open >= by.most {
			if out != nil {
				continue // one goes anyway
			}
			if out = g.oldestUnproven(); out == nil {
				return false, nil
			}
		}
	}
	if out == nil && (k.all >= maxConns || c.other && k.others >= maxOthers) {
		if out = k.oldestUnproven(c.other); out == nil {
			return false, nil
		}
	}
	if out != nil {
		k.remove(out)
	}
	k.add(c)
	return true, out
}

// oldestUnproven returns the oldest connection of those who have most of those that proved nothing, at ports
// that anybody has first, or no others.
func (k *connLimiter) oldestUnproven(othersAlone bool) *peerConn {
	var from *connGroup
	var best *peerConn
	for _, g := range k.groups {
		oldest := g.oldestUnproven()
		if oldest == nil || othersAlone && !oldest.other {
			continue
		}
		if best == nil || oldest.other && !best.other ||
			oldest.other == best.other && g.unproven.Len() > from.unproven.Len() {
			from, best = g, oldest
		}
	}
	return best
}

func (g *connGroup) oldestUnproven() *peerConn {
	if first := g.unproven.Front(); first != nil {
		c, _ := first.Value.(*peerConn)
		return c
	}
	return nil
}

func (k *connLimiter) add(c *peerConn) {
	c.in = true
	k.all++
	if c.other {
		k.others++
	}
	for _, by := range c.counted {
		g := k.groups[by.name]
		if g == nil {
			g = new(connGroup)
			k.groups[by.name] = g
		}
		g.open++
		if !c.proven {
			c.places = append(c.places, g.unproven.PushBack(c))
		}
	}
}

// remove takes a connection out of the count; once more does nothing.
func (k *connLimiter) remove(c *peerConn) {
	if !c.in {
		return
	}
	c.in = false
	k.all--
	if c.other {
		k.others--
	}
	k.drop(c)
	for _, by := range c.counted {
		if g := k.groups[by.name]; g.open > 1 {
			g.open--
		} else {
			delete(k.groups, by.name)
		}
	}
}

// drop takes a connection out of those that proved nothing.
func (k *connLimiter) drop(c *peerConn) {
	for i, place := range c.places {
		k.groups[c.counted[i].name].unproven.Remove(place)
	}
	c.places = nil
}

func (k *connLimiter) prove(c *peerConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.in && !c.proven {
		c.proven = true
		k.drop(c)
	}
}

func (k *connLimiter) isProven(c *peerConn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.proven
}

func (k *connLimiter) leave(c *peerConn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(c)
}

// peerConn is a connection whose other end is known.
type peerConn struct {
	net.Conn
	uid     int64
	limiter *connLimiter
	other   bool // it isn't an administrator's, nor from a port that only root has
	counted []countedAs

	// By the limiter.
	in     bool
	proven bool
	places []*list.Element // in the groups' unproven
}

// countedAs is whose connections one is counted with, and how many they may have.
type countedAs struct {
	name string
	most int
}

// unprovenBound is how long a connection without a session may be idle, or a request of it come: a page takes
// up to 8 s (web.pageTimeout), and what is read meanwhile must not end it.
const unprovenBound = 10 * time.Second

// SetReadDeadline bounds how long a connection waits for its next request, or the rest of it.
func (c *peerConn) SetReadDeadline(t time.Time) error {
	if c.limiter.door.Sessions && !c.limiter.isProven(c) {
		if soon := time.Now().Add(unprovenBound); t.After(soon) {
			t = soon
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// Close closes it.
func (c *peerConn) Close() error {
	c.limiter.leave(c)
	return c.Conn.Close()
}
