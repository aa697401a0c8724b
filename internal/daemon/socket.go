package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The bounds of a connection.
const (
	headerBound  = time.Second
	requestBound = 15 * time.Second
	idleBound    = 2 * time.Minute
	maxConns     = 4096 // in all
	maxPerUser   = 256
)

// Listen opens a socket with the permissions given, in place of one that nobody
// serves any more. It is an error if another daemon does.
func Listen(ctx context.Context, path string, mode os.FileMode) (net.Listener, error) {
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(ctx, headerBound)
	defer cancel()
	if c, err := dialer.DialContext(ctx, "unix", path); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("another epd listens at %s", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is in the way and no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	old := unix.Umask(0o177)
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	unix.Umask(old)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Serve answers requests at a listener until the context ends. Handlers learn
// by [Peer] who asks, where the kernel tells.
func Serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerBound,
		ReadTimeout:       requestBound,
		WriteTimeout:      requestBound,
		IdleTimeout:       idleBound,
		MaxHeaderBytes:    16 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if p, ok := c.(*peerConn); ok {
				return context.WithValue(ctx, peerKey{}, p.uid)
			}
			return ctx
		},
	}
	stopped := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerBound)
		defer cancel()
		if server.Shutdown(closing) != nil {
			_ = server.Close()
		}
	})
	defer stopped()
	if err := server.Serve(&doorkeeper{Listener: l, open: make(map[int64]int)}); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// doorkeeper bounds how many connections are open, and how many of them a user
// may have: further ones are closed at once.
type doorkeeper struct {
	net.Listener
	mu   sync.Mutex
	all  int
	open map[int64]int // by uid
}

// Accept is the next connection that may come in.
func (k *doorkeeper) Accept() (net.Conn, error) {
	for {
		c, err := k.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &peerConn{Conn: c, uid: peerOf(c), keeper: k}
		if k.enter(p.uid) {
			return p, nil
		}
		_ = c.Close()
	}
}

func (k *doorkeeper) enter(uid int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all >= maxConns || uid > 0 && k.open[uid] >= maxPerUser {
		return false
	}
	k.all++
	k.open[uid]++
	return true
}

func (k *doorkeeper) leave(uid int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all--
	if k.open[uid]--; k.open[uid] == 0 {
		delete(k.open, uid)
	}
}

// peerConn is a connection whose other end is known.
type peerConn struct {
	net.Conn
	uid    int64
	keeper *doorkeeper
	once   sync.Once
}

// Close closes it.
func (c *peerConn) Close() error {
	c.once.Do(func() { c.keeper.leave(c.uid) })
	return c.Conn.Close()
}

// peerKey is where a connection's context has its peer.
type peerKey struct{}

// nobody is a peer that isn't known.
const nobody = -1

// Peer is the uid at the other end of a request's Unix socket, as the kernel
// says; negative elsewhere.
func Peer(r *http.Request) int64 {
	if uid, ok := r.Context().Value(peerKey{}).(int64); ok {
		return uid
	}
	return nobody
}

// peerOf is the uid at the other end of a connection.
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
