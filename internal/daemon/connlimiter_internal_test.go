package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/munge"
)

// wire is a connection from somewhere.
type wire struct {
	net.Conn
	from   net.Addr
	closed bool
	until  time.Time
}

func (w *wire) SetReadDeadline(t time.Time) error { w.until = t; return nil }

func (w *wire) RemoteAddr() net.Addr { return w.from }
func (w *wire) Close() error         { w.closed = true; return nil }

// crowd counts connections at a door.
type crowd struct {
	*connLimiter
	t *testing.T
}

func newCrowd(t *testing.T, proves bool) *crowd {
	t.Helper()
	k := newConnLimiter(nil, Door{Full: func(uid int64) bool { return uid == 0 }, Proves: proves})
	k.uids.path = filepath.Join(t.TempDir(), "subuid")
	return &crowd{k, t}
}

// user lets in a connection of a user.
func (c *crowd) user(uid int64) (*peerConn, bool) {
	p := c.newConn(&wire{from: &net.UnixAddr{}}, uid)
	in, out := c.enter(p)
	if out != nil {
		c.t.Error("a user's connection was closed for another one")
	}
	return p, in
}

// at lets in a connection from an address.
func (c *crowd) at(address string) (p *peerConn, in bool, out *peerConn) {
	p = c.newConn(&wire{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))}, nobody)
	in, out = c.enter(p)
	return p, in, out
}

func TestUsersHaveOnlySoManyConnectionsOpen(t *testing.T) {
	c := newCrowd(t, false)
	var last *peerConn
	for range maxOfOne {
		p, in := c.user(4711)
		if last = p; !in {
			t.Fatal("not let in")
		}
	}
	if _, in := c.user(4711); in {
		t.Error("one more is let in")
	}
	if _, in := c.user(0); !in {
		t.Error("Slurm isn't let in")
	}
	c.leave(last)
	c.leave(last)
	if _, in := c.user(4711); !in {
		t.Error("not let in again")
	}
	for i := range int64(maxConns) { // others, as many as there can be
		c.user(5000 + i)
	}
	if _, in := c.user(0); c.others != maxOthers || !in {
		t.Errorf("%d others have left no room for Slurm", c.others)
	}
	for c.all < maxConns {
		c.user(0)
	}
	_, root := c.user(0)
	if _, in := c.user(4711); in || root {
		t.Error("more than all are let in")
	}
}

// A user has as many uids as /etc/subuid says, or as is usual.
func TestAUsersOtherUIDsLeaveRoomForOtherUsers(t *testing.T) {
	c := newCrowd(t, false)
	for uid := range int64(rangeOfUIDs) {
		c.user(firstSubordinate + uid)
	}
	if _, in := c.user(1000); !in || c.others > maxOfMany+1 {
		t.Errorf("%d connections of the uids of one range leave no room: %v", c.others, in)
	}
	c = newCrowd(t, false)
	file := []byte("ada:100000:65536\nbad\n:::\nbob:300000:x\n")
	if err := os.WriteFile(c.uids.path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for uid := range int64(rangeOfUIDs) {
		c.user(firstSubordinate + uid)
	}
	if c.others != maxOfOne {
		t.Errorf("ada has %d connections by other uids, want %d", c.others, maxOfOne)
	}
}

func TestAConnectionThatProvesNothingMakesRoom(t *testing.T) {
	c := newCrowd(t, true)
	first, _, _ := c.at("10.0.0.1:40000")
	proven, _, _ := c.at("10.0.0.1:40001")
	c.prove(proven)
	for i := range maxOfOne - 2 {
		c.at(fmt.Sprintf("10.0.0.1:%d", 41000+i))
	}
	if _, in, out := c.at("10.0.0.1:50000"); !in || out != first {
		t.Errorf("one more is let in: %v, in place of the oldest: %v", in, out == first)
	}
	for i := range 3 * maxOfOne {
		if _, in, out := c.at(fmt.Sprintf("10.0.0.1:%d", 51000+i)); !in || out == proven {
			t.Fatalf("one more is let in: %v, in place of one that was proved: %v", in, out == proven)
		}
	}
	if c.others != maxOfOne {
		t.Errorf("%d are open, want %d", c.others, maxOfOne)
	}
}

// 128 idle connections of any local user shut the pages for all who came by a tunnel or a proxy.
func TestAConnectionWithoutASessionMakesRoomAtThePages(t *testing.T) {
	k := newConnLimiter(nil, Door{Sessions: true})
	c := &crowd{k, t}
	admin, _, _ := c.at("127.0.0.1:40000")
	c.prove(admin)
	for i := range 2 * maxConns {
		if _, in, out := c.at(fmt.Sprintf("127.0.0.1:%d", 1024+i)); !in || out == admin {
			t.Fatalf("connection %d: let in %v, in place of one with a session: %v", i, in, out == admin)
		}
	}
	for i := range 60_000 { // and from as many addresses as there are
		if _, in, out := c.at(fmt.Sprintf("127.%d.%d.7:40000", i/250, i%250)); !in || out == admin {
			t.Fatalf("address %d: let in %v, in place of one with a session: %v", i, in, out == admin)
		}
	}
	if c.groups["this machine"].open > maxOfMany {
		t.Errorf("%d connections of this machine, want at most %d", c.groups["this machine"].open, maxOfMany)
	}
	if _, in, out := c.at("192.0.2.1:40000"); !in || out != nil {
		t.Error("another machine finds no place")
	}
}

// A browser that waits for its next request keeps its connection; one who never logged in doesn't.
func TestAnIdleConnectionWithoutASessionIsClosedSoon(t *testing.T) {
	bound := func(sessions, proven bool) time.Duration {
		k := newConnLimiter(nil, Door{Sessions: sessions})
		w := &wire{from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:40000"))}
		p := k.newConn(w, nobody)
		k.enter(p)
		if proven {
			k.prove(p)
		}
		now := time.Now()
		if err := p.SetReadDeadline(now.Add(idleBound)); err != nil {
			t.Fatal(err)
		}
		return w.until.Sub(now)
	}
	for _, c := range []struct {
		sessions, proven, soon bool
	}{{true, false, true}, {true, true, false}, {false, false, false}} {
		if got := bound(c.sessions, c.proven); (got < idleBound) != c.soon {
			t.Errorf("%+v: idle for %s", c, got)
		}
	}
}

// Those of a node's users don't count for its root, who has the ports below 1024.
func TestPortsOfRootHavePlacesOfTheirOwn(t *testing.T) {
	c := newCrowd(t, true)
	for i := range maxConns + 100 {
		c.at(fmt.Sprintf("10.0.%d.%d:40000", i/250, i%250))
	}
	if c.others != maxOthers {
		t.Fatalf("%d others", c.others)
	}
	for i := range maxOfOne {
		if _, in, out := c.at(fmt.Sprintf("10.0.0.1:%d", 600+i)); !in || out != nil {
			t.Fatalf("the agent's %d.: %v, in place of %v", i, in, out)
		}
	}
	if _, in, out := c.at("10.9.9.9:40000"); !in || out == nil || !out.other {
		t.Errorf("a newcomer: %v, in place of %v", in, out)
	}
}

func TestANetworkOfIPv6IsOneMachine(t *testing.T) {
	c := newCrowd(t, true)
	for i := range 10 * maxOfOne {
		c.at(fmt.Sprintf("[2001:db8::%x]:40000", i+1))
	}
	if c.others != maxOfOne {
		t.Errorf("%d connections of one network, want %d", c.others, maxOfOne)
	}
	if _, in, out := c.at("[2001:db8:0:1::1]:40000"); !in || out != nil {
		t.Error("another network isn't let in")
	}
	for i := range 10 * maxOfMany {
		c.at(fmt.Sprintf("[2001:db8::%x]:700", i+1))
	}
	if most := c.groups["2001:db8::/64 root"].open; most != maxOfMany || c.all >= maxConns {
		t.Errorf("%d connections of root of one network, want %d, of %d", most, maxOfMany, c.all)
	}
}

// Half requests of 26 addresses had all agents' Prologs go without a decision.
func TestAFloodOfHalfRequestsKeepsNoAgentOut(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var evicted atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		handler := munge.Authenticate(CountAsProven(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, "decided")
		})), &paper{}, munge.Options{})
		if err := Serve(ctx, l, handler, Door{Proves: true, Refused: func(_ string, madeRoom bool) {
			if madeRoom {
				evicted.Add(1)
			}
		}}); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer stop()
	var flood sync.WaitGroup
	for i := range 4 {
		flood.Go(func() {
			from := &net.TCPAddr{IP: net.ParseIP("127.0.0." + strconv.Itoa(1+i%2))}
			var open []net.Conn
			for ctx.Err() == nil {
				c, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", l.Addr().String())
				if err != nil {
					continue
				}
				_, _ = io.WriteString(c, "POST /v1/decide HTTP/1.1\r\nHost: x\r\n")
				if open = append(open, c); len(open) > 160 {
					_ = open[0].Close()
					open = open[1:]
				}
				<-time.After(time.Millisecond)
			}
			for _, c := range open {
				_ = c.Close()
			}
		})
	}
	defer flood.Wait()
	defer stop()
	for evicted.Load() < 200 {
		<-time.After(10 * time.Millisecond)
	}
	client := http.Client{Transport: munge.NewTransport(&paper{}), Timeout: 5 * time.Second}
	for range 20 {
		response, err := post(t, &client, "http://"+l.Addr().String()+"/v1/decide")
		if err != nil {
			t.Errorf("an agent isn't answered: %v", err)
			continue
		}
		_ = response.Body.Close()
	}
}
