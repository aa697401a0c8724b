package login

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/config"
)

// ErrNotProxy is returned for a name that somebody else than the site's proxy sent. It counts
// as if it weren't there.
var ErrNotProxy = errors.New("not the site's proxy")

// ProxyName returns the name that the site's proxy passes on in a request, which it proved; ""
// if there is none. An error other than [ErrNotProxy] means that the request must be refused.
func ProxyName(w *config.Web, r *http.Request) (string, error) {
	if w.ProxyHeader == "" {
		return "", nil
	}
	lines := r.Header.Values(w.ProxyHeader)
	if len(lines) == 0 {
		return "", nil
	}
	if err := checkProxy(w, r); err != nil {
		return "", err
	}
	switch {
	case len(lines) > 1:
		return "", fmt.Errorf("%d headers %s, want one", len(lines), w.ProxyHeader)
	case lines[0] == "":
		return "", fmt.Errorf("the header %s is empty", w.ProxyHeader)
	case !config.IsLoginName(lines[0]):
		return "", fmt.Errorf("the name in %s has characters other than letters, digits and . _ - + @, or too "+
			"many", w.ProxyHeader)
	}
	return lines[0], nil
}

// checkProxy returns [ErrNotProxy] for requests from elsewhere than the proxy's addresses,
// and for those that an ordinary user's program sent on this machine.
func checkProxy(w *config.Web, r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return fmt.Errorf("%w: %s has no address", ErrNotProxy, r.RemoteAddr)
	}
	peer = unmapped(peer)
	if !w.IsProxy(peer.Addr()) {
		return fmt.Errorf("%w: %s isn't in proxies", ErrNotProxy, peer.Addr())
	}
	if !isOwnAddress(peer.Addr()) {
		return nil
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return fmt.Errorf("%w: nobody knows whose connection it is", ErrNotProxy)
	}
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotProxy, err)
	}
	uid, err := connectionOwner(peer, unmapped(here))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotProxy, err)
	case uid > maxSystemUID && int64(uid) != int64(os.Geteuid()):
		return fmt.Errorf("%w: uid %d sent it from this machine, want a system account", ErrNotProxy, uid)
	}
	return nil
}

// maxSystemUID is the highest uid of accounts that belong to services (SYS_UID_MAX of
// login.defs). People with a shell on this machine reach the proxy's address, too.
const maxSystemUID = 999

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// isOwnAddress reports whether an address is this machine's.
func isOwnAddress(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(one net.Addr) bool {
		network, err := netip.ParsePrefix(one.String())
		return err == nil && network.Addr().WithZone("") == a
	})
}

// connectionOwner returns the uid of the program on this machine that opened a connection.
func connectionOwner(client, server netip.AddrPort) (uid uint32, err error) {
	tables := []string{"/proc/net/tcp6"}
	if client.Addr().Is4() {
		tables = []string{"/proc/net/tcp", "/proc/net/tcp6"}
	}
	for _, path := range tables {
		f, err := os.Open(path) //nolint:gosec // one of two
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue // a kernel without IPv6
			}
			return 0, err
		}
		uid, found, err := findOwner(f, client, server)
		if err = errors.Join(err, f.Close()); found || err != nil {
			return uid, err
		}
	}
	return 0, fmt.Errorf("the kernel has no open connection from %s", client)
}

// findOwner looks for an open connection in a table in the form of /proc/net/tcp or tcp6. A
// connection whose program closed it is left out: the kernel doesn't say whose it was.
func findOwner(table io.Reader, client, server netip.AddrPort) (uid uint32, found bool, err error) {
	const ends, state, owner, inode, columns, established = 1, 3, 7, 9, 10, "01"
	wanted := []string{
		hexAddress(client) + " " + hexAddress(server),
		hexAddress(mapped(client)) + " " + hexAddress(mapped(server)),
	}
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < columns || !slices.Contains(wanted, words[ends]+" "+words[ends+1]) ||
			words[state] != established || words[inode] == "0" {
			continue
		}
		n, err := strconv.ParseUint(words[owner], 10, 32)
		return uint32(n), err == nil, err //nolint:wrapcheck // says all
	}
	return 0, false, lines.Err() //nolint:wrapcheck // says all
}

func mapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// hexAddress returns an address as the kernel's tables have it: words of 32 bits in the
// machine's order of bytes, and the port.
func hexAddress(a netip.AddrPort) string {
	var out strings.Builder
	for word := a.Addr().AsSlice(); len(word) > 0; word = word[4:] {
		fmt.Fprintf(&out, "%08X", binary.NativeEndian.Uint32(word))
	}
	fmt.Fprintf(&out, ":%04X", a.Port())
	return out.String()
}
