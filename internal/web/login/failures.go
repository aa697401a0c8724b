package login

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Failed logins that are answered at once. Each is forgotten after a time.
const (
	maxNetworkFails = 5
	maxSharedFails  = 50 // of an address that many share: this machine's own, with a tunnel or a proxy
	maxTotalFails   = 200
	failWindow      = time.Minute
	maxFailOrigins  = 10_000 // origins that are remembered
	networkBits6    = 64     // of IPv6: what one customer has at least
)

// Origin is where a login comes from, and how many may fail from there.
type Origin struct {
	Name     string // the address, or network, by which it is counted
	maxFails int
}

// OriginsOf returns the origins that a login counts for. Over a network that is its
// address. From this machine itself it is the client that a proxy names, and the
// proxy: whoever reaches a loopback address may name any client.
func OriginsOf(r *http.Request) []Origin {
	peer, ok := addressOf(r.RemoteAddr)
	if ok && !peer.IsLoopback() {
		return []Origin{{networkOf(peer), maxNetworkFails}}
	}
	many := Origin{"this machine", maxSharedFails}
	if client, ok := forwardedFor(r.Header); ok {
		return []Origin{{networkOf(client) + " by a proxy", maxNetworkFails}, many}
	}
	return []Origin{many}
}

// forwardedFor returns the client that the nearest proxy names. What stands before it in
// the header is what its own client said.
func forwardedFor(h http.Header) (netip.Addr, bool) {
	lines := h.Values("X-Forwarded-For")
	if len(lines) == 0 {
		return netip.Addr{}, false
	}
	last := lines[len(lines)-1]
	return addressOf(strings.TrimSpace(last[strings.LastIndex(last, ",")+1:]))
}

// addressOf reads an address, with a port or without one.
func addressOf(text string) (netip.Addr, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}

// networkOf returns what logins are counted by: somebody with one address of IPv6 has
// all of its network.
func networkOf(a netip.Addr) string {
	if network, err := a.Prefix(networkBits6); a.Is6() && err == nil {
		return network.String()
	}
	return a.String()
}

// Failures are the logins that failed lately. The zero value is ready.
type Failures struct {
	mu   sync.Mutex
	from map[string][]time.Time // by origin
	all  []time.Time            // of all origins
}

// Wait returns how long somebody has to wait before they may try to log in; 0: not at
// all.
func (f *Failures) Wait(origins []Origin, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = withoutExpired(f.all, now)
	wait := untilFewer(f.all, maxTotalFails, now)
	for _, o := range origins {
		wait = max(wait, untilFewer(withoutExpired(f.from[o.Name], now), o.maxFails, now))
	}
	return wait
}

// untilFewer returns when fewer than so many times will be left, from now on.
func untilFewer(times []time.Time, most int, now time.Time) time.Duration {
	if len(times) < most {
		return 0
	}
	return times[len(times)-most].Add(failWindow).Sub(now)
}

// Record notes a login that failed.
func (f *Failures) Record(origins []Origin, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.from == nil || len(f.from) >= maxFailOrigins { // those of all still count
		f.from = make(map[string][]time.Time)
	}
	for _, o := range origins {
		f.from[o.Name] = append(withoutExpired(f.from[o.Name], now), now)
	}
	f.all = append(withoutExpired(f.all, now), now)
}

// withoutExpired returns the times that aren't forgotten yet.
func withoutExpired(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) >= failWindow {
		times = times[1:]
	}
	return times
}
