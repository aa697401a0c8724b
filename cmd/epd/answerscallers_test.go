package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"

	"github.com/epplan/epplan/internal/munge"
)

// as does something under another uid: the kernel shows it as that user to whom it
// connects. Only this thread changes.
func as(uid uint32, do func() error) error {
	if uid == 0 {
		return do()
	}
	runtime.LockOSThread()
	set := func(uid uint32) syscall.Errno {
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		return errno
	}
	if errno := set(uid); errno != 0 {
		runtime.UnlockOSThread()
		return errno
	}
	err := do()
	if errno := set(0); errno != 0 {
		return errno // the thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// caller is somebody who asks, and how.
type caller struct {
	door  string
	uid   uint32 // at sockets and by munge
	token string // at the port; empty: not logged in
	tier  tier
	self  *person        // who of those with jobs it is; nil: neither
	proof bool           // by munge: with a credential
	told  map[string]got // by operation

	client *http.Client
}

// tier is which column of the tables is a caller's.
type tier int

const (
	controls tier = iota
	reads
	owns
	another
	nobody
)

func (c *caller) String() string {
	tiers := [...]string{"control", "operator", "the owner", "another user", "nobody"}
	return fmt.Sprintf("%s (uid %d) by the %s door", tiers[c.tier], c.uid, c.door)
}

// callers are everybody at every door.
func (h *house) callers() []*caller {
	all := []*caller{ //nolint:prealloc // a few
		{door: "munge", tier: nobody},
		{door: "port", tier: nobody},
		{door: "port", tier: controls, token: portAdmin},
		{door: "port", tier: reads, token: portReader},
	}
	for _, door := range []string{"private", "public", "munge"} {
		for _, c := range []caller{
			{tier: controls},
			{tier: controls, uid: slurmUID},
			{tier: reads, uid: operatorUID},
			{tier: owns, uid: hers.uid, self: &hers},
			{tier: another, uid: his.uid, self: &his},
			{tier: another, uid: strangerUID},
		} {
			c.door, c.proof = door, true
			all = append(all, &c)
		}
	}
	for _, c := range all {
		h.connect(c)
		c.told = map[string]got{}
	}
	return all
}

// connect gives a caller a way to ask.
func (h *house) connect(c *caller) {
	switch {
	case c.door == "munge" && c.proof:
		c.client = &http.Client{Transport: &signing{munge.NewTransport(munge.New(h.munged.Socket)), c.uid}}
	case c.door == "munge":
		c.client = &http.Client{}
	case c.door == "port":
		c.client = &http.Client{}
		if c.token != "" {
			loggedIn(h.t, c.client, "http://"+h.doors["port"], c.token)
		}
	default:
		path := h.doors[c.door]
		c.client = &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
				err = as(c.uid, func() error {
					conn, err = new(net.Dialer).DialContext(ctx, "unix", path)
					return err
				})
				return conn, err
			},
		}}
	}
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// signing asks munge as a user.
type signing struct {
	transport *munge.Transport
	uid       uint32
}

// RoundTrip implements http.RoundTripper.
func (s *signing) RoundTrip(r *http.Request) (response *http.Response, err error) {
	err = as(s.uid, func() error {
		response, err = s.transport.RoundTrip(r) //nolint:bodyclose // whoever asked does
		return err
	})
	return response, err
}

// ask returns what a caller gets.
func (h *house) ask(c *caller, method, path, body string, form url.Values) (status int, text string) {
	h.t.Helper()
	address := "http://localhost" + path
	if c.door == "port" || c.door == "munge" {
		address = "http://" + h.doors[c.door] + path
	}
	if form != nil {
		body = form.Encode()
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := c.client.Do(r)
	if err != nil {
		h.t.Fatalf("%s %s as %s: %v", method, path, c, err)
	}
	defer response.Body.Close() //nolint:errcheck // read only
	all, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return response.StatusCode, string(all)
}
