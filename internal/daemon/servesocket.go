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
		go func() {
			defer stop()
			waitUntilMoved(serving, l, path)
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

// waitUntilMoved returns when a listener's socket isn't at its path any more, or with the
// context.
func waitUntilMoved(ctx context.Context, l net.Listener, path string) {
	ours, err := os.Lstat(path)
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		var now os.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(ours, now) {
			break
		}
	}
	if socket, ok := l.(*net.UnixListener); ok {
		socket.SetUnlinkOnClose(false) // what is there now is somebody else's
	}
}
