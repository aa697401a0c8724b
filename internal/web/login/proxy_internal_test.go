package login

import (
	"net/netip"
	"strings"
	"testing"
)

// The tables are those of Linux on a little-endian machine.
func TestAConnectionsOwnerIsTheOneThatHasItOpen(t *testing.T) {
	if hexAddress(netip.MustParseAddrPort("127.0.0.1:80")) != "0100007F:0050" {
		t.Skip("the table is of little-endian machines")
	}
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 0   990        0 11 1 0 100 0 0 10 0
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 0    33        0 12 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 0   990        0 13 1 0 20 4 30 10 -1
   3: 0100007F:C002 0100007F:1F90 01 00000000:00000000 00:00000000 0  1000        0 14 1 0 20 4 30 10 -1
   4: 0100007F:C003 0100007F:1F90 05 00000000:00000000 00:00000000 0     0        0 0 1 0 20 4 30 10 -1
   5: 0100007F:C004 0100007F:1F90 06 00000000:00000000 03:00000000 0     0        0 0 3 0
   6: 0100007F:C005 0100007F:1F90 01 00000000:00000000 03:00000000 0     0        0 0 3 0
   7: 00000000000000000000000001000000:C006 00000000000000000000000001000000:1F90 01 0:0 0:0 0 33 0 15 1
   8: 0000000000000000FFFF00000100007F:C007 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0 1001 0 16 1
short
`
	for client, want := range map[string]int{
		"127.0.0.1:49153": 33, "127.0.0.1:49154": 1000, "[::1]:49158": 33, "127.0.0.1:49159": 1001,
		"127.0.0.1:49155": -1, "127.0.0.1:49156": -1, "127.0.0.1:49157": -1, "127.0.0.1:49160": -1,
	} {
		c := netip.MustParseAddrPort(client)
		uid, found, err := findOwner(strings.NewReader(table), c, netip.AddrPortFrom(c.Addr(), 8080))
		if err != nil || found != (want >= 0) || found && int(uid) != want {
			t.Errorf("%s: uid %d, %v, %v, want %d", client, uid, found, err, want)
		}
	}
}
