package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The bounds of a connection.
const (
	headerBound  = time.Second
	requestBound = 15 * time.Second
	idleBound    = 2 * time.Minute
)

// maxSocketPath is how many bytes the path of a socket may have, see unix(7).
const maxSocketPath = 107

// Listen opens a socket with the permissions given, in place of one that nobody
// serves any more. It is [ErrTaken] if another daemon does. The socket's folder
// is made where there is none.
func Listen(ctx context.Context, path string, mode os.FileMode) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: its path has %d bytes, want at most %d", path, len(path),
			maxSocketPath)
	}
	ctx, cancel := context.WithTimeout(ctx, headerBound)
	defer cancel()
	if err := removeStaleSocket(ctx, path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // everybody may pass, the socket has its own permissions
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: restrictToOwner}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := chmodSocket(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// chmodSocket gives a socket its permissions, and nothing that somebody put in its place: the folder may be
// another user's.
func chmodSocket(path string, mode os.FileMode) error {
	f, err := os.OpenFile(filepath.Clean(path), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	switch info, err := f.Stat(); {
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s is no socket any more", path)
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mode)
}

// restrictToOwner has a socket's file be closed to others from its beginning: on Linux
// it gets the permissions that the socket has when it is bound. A umask would do as
// much to all files that the process makes meanwhile.
func restrictToOwner(_, _ string, socket syscall.RawConn) error {
	var failed error
	err := socket.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
	return errors.Join(err, failed)
}

// removeStaleSocket removes a socket that nobody serves any more. One whose queue of
// callers is full is served.
func removeStaleSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s is in the way and no socket", path)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return fmt.Errorf("%w listens at %s", ErrTaken, path)
	case errors.Is(err, unix.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("%w seems to listen at %s: %w", ErrTaken, path, err)
}

// Serve answers requests at a listener until the context ends. Handlers learn
// by [Peer] who asks, where the kernel tells.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, door Door) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerBound,
		ReadTimeout:       requestBound,
		WriteTimeout:      requestBound,
		IdleTimeout:       idleBound,
		MaxHeaderBytes:    16 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, c)
		},
	}
	if door.Proves {
		server.SetKeepAlivesEnabled(false) // one that has proved who asks is one of nobody afterwards
	}
	stopped := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerBound)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close()
		}
	})
	defer stopped()
	if err := server.Serve(newConnLimiter(l, door)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// peerKey is where a request's context has its connection.
type peerKey struct{}

// nobody is a peer that isn't known.
const nobody = -1

// Peer returns the uid at the other end of a request's Unix socket, as the kernel
// says; negative elsewhere.
func Peer(r *http.Request) int64 {
	if c, ok := r.Context().Value(peerKey{}).(*peerConn); ok {
		return c.uid
	}
	return nobody
}

// peerOf returns the uid at the other end of a connection.
func peerOf(c net.Conn) int64 {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return nobody
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nobody
	}
	uid := int64(nobody)
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int64(cred.Uid)
		}
	})
	if err != nil {
		return nobody
	}
	return uid
}

// reply writes an answer. The caller may have gone: nobody is told then.
func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
