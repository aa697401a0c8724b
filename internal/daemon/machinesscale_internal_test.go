package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

// ownerOneByOne is ownerOf by a look at each node in turn.
func (m *Machines) ownerOneByOne(a netip.Addr) string {
	for _, n := range m.Nodes() {
		for _, host := range hostsOf(&n) {
			if literal, err := netip.ParseAddr(host); err == nil && canonicalAddr(literal) == a ||
				slices.Contains(m.names[host].addrs, a) {
				return n.Name
			}
		}
	}
	return ""
}

// TestOwnersAreThoseThatALookAtEachNodeFinds: names move between addresses and nodes, share them, and are
// forgotten; lists are replaced.
func TestOwnersAreThoseThatALookAtEachNodeFinds(t *testing.T) {
	lot := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(lot.IntN(12))}) }
	name := func() string {
		if lot.IntN(3) == 0 {
			return address().String()
		}
		return fmt.Sprintf("n%d", lot.IntN(12))
	}
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	var list []slurm.Node
	m := &Machines{
		Nodes: func() []slurm.Node { return list }, Clock: func() time.Time { return now },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			if lot.IntN(5) == 0 {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{address(), address()}, nil
		},
	}
	found := 0
	for range 3000 {
		switch lot.IntN(6) {
		case 0:
			list = make([]slurm.Node, 0, 10)
			for range lot.IntN(10) {
				list = append(list, slurm.Node{Name: name(), HostName: name(), Address: name()})
			}
		case 1:
			m.addressesOf(t.Context(), name(), 0)
		case 2:
			if lot.IntN(50) == 0 {
				m.names, m.hosts = nil, nil
			}
		}
		a := address()
		got, want := m.ownerOf(a), m.ownerOneByOne(a)
		if got != want {
			t.Fatalf("%s is %q's, want %q's, of %+v with %v", a, got, want, list, m.names)
		}
		if got != "" {
			found++
		}
		wanted := name()
		n, known := m.listedNode(wanted)
		i := slices.IndexFunc(list, func(n slurm.Node) bool { return n.Name == wanted })
		if known != (i >= 0) || known && n.Address != list[i].Address {
			t.Fatalf("node %s: %+v, %v", wanted, n, known)
		}
	}
	if found < 500 {
		t.Errorf("only %d addresses were anybody's", found)
	}
}

// BenchmarkSpeaksFor says what it takes to find out that a node may speak for itself. Its credential is of
// a machine that is no node.
func BenchmarkSpeaksFor(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000, 10_000} {
		list := make([]slurm.Node, nodes)
		for i := range list {
			name := fmt.Sprintf("node%04d", i)
			list[i] = slurm.Node{Name: name, HostName: name, Address: fmt.Sprintf("10.%d.%d.1", i/200, i%200)}
		}
		m := NewMachines(slog.New(slog.DiscardHandler))
		m.Nodes = func() []slurm.Node { return list }
		m.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
		origin := netip.MustParseAddr("127.0.0.1")
		b.Run(fmt.Sprintf("%d nodes", nodes), func(b *testing.B) {
			i := 0
			for b.Loop() {
				n := &list[i%nodes]
				i++
				if err := m.SpeaksFor(b.Context(), netip.MustParseAddr(n.Address), origin, n.Name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
