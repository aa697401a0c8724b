package main

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
)

// socketFlags are the flags in whose place systemd may pass a socket: by its
// FileDescriptorName=, which is the flag's name.
var socketFlags = []string{"socket", "submit-socket", "listen", "metrics", "web"}

// systemdSockets returns the sockets that systemd opened for this process, by the flag for
// which each stands. Those of a name that is no flag's, or of two sockets for
// one flag, are a mistake in a unit: nobody would ever be answered there.
func systemdSockets() (map[string]net.Listener, error) {
	sockets := make(map[string]net.Listener)
	for _, f := range activation.Files(true) {
		l, err := net.FileListener(f)
		_ = f.Close() // the listener has a copy
		name := f.Name()
		switch {
		case err != nil:
			return nil, fmt.Errorf("the socket %s that systemd passed: %w", name, err)
		case !slices.Contains(socketFlags, name):
			return nil, fmt.Errorf("systemd passed a socket named %q, want FileDescriptorName= one of %s",
				name, strings.Join(socketFlags, ", "))
		case sockets[name] != nil:
			return nil, fmt.Errorf("systemd passed two sockets named %s, want one", name)
		}
		sockets[name] = l
	}
	return sockets, nil
}
