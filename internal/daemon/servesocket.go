package daemon

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"
)

// lookEvery is how often it is looked whether a socket's file is there still.
const lookEvery = 5 * time.Second

// ServeSocket is [Serve] at a Unix socket that [Listen] opened. When the
// socket's file was removed, as by somebody who cleans /run, another one is
// opened: nobody could connect any more.
func ServeSocket(
	ctx context.Context, l net.Listener, mode os.FileMode, handler http.Handler, door Door,
) error {
	path := l.Addr().String()
	for {
		serving, stop := context.WithCancel(ctx)
		ours, _ := os.Lstat(path) // nil: it was removed already
		go func() {
			defer stop()
			waitUntilMoved(serving, l, ours)
		}()
		err := Serve(serving, l, handler, door)
		stop()
		if err != nil || ctx.Err() != nil {
			return err
		}
		if l, err = Listen(ctx, path, mode); err != nil {
			return err
		}
	}
}

// waitUntilMoved returns when the file of a listener's socket, ours, isn't at its path any more, or with the
// context.
func waitUntilMoved(ctx context.Context, l net.Listener, ours os.FileInfo) {
	for here := true; here; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		now, err := os.Lstat(l.Addr().String())
		here = err == nil && ours != nil && os.SameFile(ours, now)
	}
	if socket, ok := l.(*net.UnixListener); ok {
		socket.SetUnlinkOnClose(false) // what is there now is somebody else's
	}
}
