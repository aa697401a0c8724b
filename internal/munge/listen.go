package munge

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of a connection: strangers can open them.
const (
	headerTime = time.Second
	serveTime  = 15 * time.Second
	mostConns  = 1024
)

// NewServer is a server with bounds for what strangers may send: size and time
// of headers, time of a request and of its answer. One request comes with each
// connection.
func NewServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       serveTime,
		WriteTimeout:      serveTime,
		MaxHeaderBytes:    maxHeaders,
	}
	s.SetKeepAlivesEnabled(false)
	return s
}

// Limit bounds how many connections a listener has open.
func Limit(l net.Listener) net.Listener { return limit(l, mostConns) }

func limit(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a connection, and before for room.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: func() { <-l.slots }}, nil
}

// Close ends waiting for room too.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotConn struct {
	net.Conn
	free func()
	once sync.Once
}

// Close makes room.
func (c *slotConn) Close() error {
	defer c.once.Do(c.free)
	return c.Conn.Close()
}
