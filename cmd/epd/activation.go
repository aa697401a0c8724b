package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"

	node "github.com/epplan/epplan/internal/daemon"
)

// socketFlags are the flags in whose place systemd may pass a socket: by its
// FileDescriptorName=, which is the flag's name.
var socketFlags = []string{"socket", "submit-socket", "listen", "metrics", "web"}

// passedSockets are the sockets that systemd opened for this process, by the flag for
// which each stands. Those of a name that is no flag's, or of two sockets for
// one flag, are a mistake in a unit: nobody would ever be answered there.
func passedSockets() (map[string]net.Listener, error) {
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

// isSocketWanted reports whether a socket is asked for: by its flag, or by systemd.
func (p *program) isSocketWanted(flag string) bool {
	return p.String(flag) != "" || p.passed[flag] != nil
}

// listenAt is a Unix socket: the one that systemd passed, or a new one.
func (p *program) listenAt(ctx context.Context, flag, path string, mode os.FileMode) (net.Listener, error) {
	if l := p.passed[flag]; l != nil {
		return l, nil
	}
	return node.Listen(ctx, path, mode)
}
