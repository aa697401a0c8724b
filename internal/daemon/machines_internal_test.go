package daemon

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/query"
	"github.com/epplan/epplan/slurm"
)

// network is a cluster of n1, which has a name that resolves, n2, which Slurm knows by its address, and n3,
// which comes from an address that Slurm doesn't know.
type network struct {
	*Machines
	now time.Time
}

func newNetwork() *network {
	n := &network{now: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)}
	n.Machines = &Machines{
		Nodes: func() []slurm.Node {
			return []slurm.Node{
				{Name: "n1", Address: "n1", HostName: "n1"},
				{Name: "n2", Address: "10.0.0.2", HostName: "n2"},
				{Name: "n3", Address: "n3", HostName: "n3"},
				{Name: "n4", Address: "n4", HostName: "n4"},
			}
		},
		AdminHosts: func() []string { return []string{"login"} },
		NodeHosts:  func() []string { return []string{"10.9.9.9"} },
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			known := map[string]string{
				"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3", "n4": "10.0.0.4", "login": "10.0.9.1",
			}
			if a, ok := known[name]; ok {
				return []netip.Addr{netip.MustParseAddr("::ffff:" + a)}, nil
			}
			return nil, errors.New("no such host")
		},
		Own:   func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("10.0.0.100")}, nil },
		Clock: func() time.Time { return n.now },
		Log:   slog.New(slog.DiscardHandler),
	}
	return n
}

// says reports whether root at an address may speak for a node.
func (n *network) says(from, node string) error {
	return n.SpeaksFor(context.Background(), netip.MustParseAddr(from), netip.Addr{}, node)
}

func TestANodeSpeaksForItselfAlone(t *testing.T) {
	n := newNetwork()
	for _, c := range []struct {
		from, node string
		ok         bool
	}{
		{"10.0.0.1", "n1", true},
		{"10.0.0.2", "n2", true},
		{"10.0.0.1", "n2", false},
		{"10.0.0.2", "n1", false},
		{"10.0.0.2", "n3", false}, // that was never heard
		{"127.0.0.1", "n1", true},
		{"10.0.0.100", "n2", true}, // the controller's machine
		{"10.9.9.9", "n1", true},
		{"10.9.9.9", "n2", true},  // a gateway that is named
		{"10.7.0.3", "n1", false}, // an address that nobody knows, of a node that is heard from its own
		{"10.7.0.3", "n3", true},  // a second network of n3
		{"10.7.0.3", "n4", false},
		{"10.7.0.4", "n3", false},
		{"10.0.0.3", "n3", true},
		{"10.7.0.3", "n3", false}, // its own address counts more
		{"10.7.0.5", "none", true},
		{"10.0.0.1", "none", false},
	} {
		err := n.says(c.from, c.node)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, query.ErrForbidden) {
			t.Errorf("%s for %s: %v, want that it may: %v", c.from, c.node, err, c.ok)
		}
	}
	n.now = n.now.Add(2 * heardFor)
	if err := n.says("10.7.0.4", "n3"); err != nil {
		t.Errorf("a node that got another address: %v", err)
	}
}

func TestACredentialOfAnotherNodesMungeProvesThatNode(t *testing.T) {
	n := newNetwork()
	_ = n.says("10.0.0.1", "n1") // its name is known by now
	ask := func(origin, node string) error {
		return n.SpeaksFor(t.Context(), netip.MustParseAddr("10.7.0.3"), netip.MustParseAddr(origin), node)
	}
	if err := ask("10.0.0.1", "n3"); !errors.Is(err, query.ErrForbidden) {
		t.Errorf("a credential of n1 for n3: %v", err)
	}
	for _, origin := range []string{"10.0.0.3", "127.0.1.1", "0.0.0.0"} {
		if err := ask(origin, "n3"); err != nil {
			t.Errorf("a credential of %s for n3: %v", origin, err)
		}
	}
}

// A machine whose name can't be resolved is no reason to leave its node's jobs alone.
func TestWhileNoNameResolvesANodeIsHeardFromOneAddress(t *testing.T) {
	n := newNetwork()
	n.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no server") }
	if err := n.says("10.0.0.1", "n1"); err != nil {
		t.Error(err)
	}
	if n.says("10.0.0.3", "n1") == nil || n.says("10.0.0.1", "n3") == nil {
		t.Error("an address speaks for two nodes, or a node from two addresses")
	}
}

// A node of a cloud comes back under another address, which Slurm learns when it registers.
func TestANodeWithANewAddressIsHeardAtOnce(t *testing.T) {
	n := newNetwork()
	if err := n.says("10.0.0.2", "n2"); err != nil {
		t.Fatal(err)
	}
	_ = n.says("10.0.0.1", "n1")
	asked := 0
	n.Node = func(_ context.Context, name string) (slurm.Node, error) {
		asked++
		return slurm.Node{Name: name, Address: "10.0.5.2", HostName: name}, nil
	}
	if err := n.says("10.0.5.2", "n2"); err != nil {
		t.Error(err)
	}
	for range 100 {
		if n.says("10.0.5.3", "n2") == nil {
			t.Fatal("any address will do")
		}
	}
	if asked != 1 {
		t.Errorf("Slurm was asked %d times", asked)
	}
	n.now = n.now.Add(2 * failuresFor)
	lookup := n.Lookup
	n.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		if name == "n1" {
			return []netip.Addr{netip.MustParseAddr("10.0.5.1")}, nil
		}
		return lookup(ctx, name)
	}
	n.Node = nil
	if err := n.says("10.0.5.1", "n1"); err != nil {
		t.Errorf("a name that resolves to another address: %v", err)
	}
}

// paper is a voucher whose credentials are readable, and all of root's.
type paper struct {
	mu   sync.Mutex
	node string
}

func (p *paper) Encode(_ context.Context, payload []byte, _ munge.CredentialTerms) (string, error) {
	return base64.StdEncoding.EncodeToString(payload), nil
}

func (p *paper) Decode(_ context.Context, text string) (munge.Credential, error) {
	payload, err := base64.StdEncoding.DecodeString(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	return munge.Credential{Payload: payload, Node: p.node, Encoded: time.Now(), Decoded: time.Now()}, err
}

func TestAdministratorsElsewhereSeeAndDontChange(t *testing.T) {
	var refused []string
	access := &Access{
		Machines: newNetwork().Machines,
		Refused: func(from string, status int, err error) {
			refused = append(refused, fmt.Sprintf("%s %d %v", from, status, err))
		},
	}
	mux := http.NewServeMux()
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /undo", access.RequireAdmin(mungeUser, nothing))
	mux.Handle("/", access.serveUsers(mungeUser, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := query.CallerOf(r.Context())
		node := strings.TrimPrefix(r.URL.Path, "/for/")
		err := who.SpeaksFor(node)
		if node == r.URL.Path { // for no node
			err = map[string]query.Tier{
				"/see": query.Operators, "/change": query.Administrators, "/agents": query.Agents,
			}[r.URL.Path].Admits(who)
		}
		if err != nil {
			reply(w, http.StatusForbidden, epdapi.ErrorAnswer{Error: err.Error()})
		}
	})))
	authenticated := munge.Authenticate(mux, &paper{}, munge.Options{})
	from := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = from
		authenticated.ServeHTTP(w, r)
	}))
	defer server.Close()
	client := http.Client{Transport: munge.NewTransport(&paper{})}
	for _, c := range []struct {
		from, path string
		ok         bool
	}{
		{"10.0.0.1", "/see", true},
		{"10.0.0.1", "/agents", true},
		{"10.0.0.1", "/change", false},
		{"10.0.0.1", "/undo", false},
		{"10.0.0.1", "/for/n1", true},
		{"10.0.0.1", "/for/n2", false},
		{"127.0.0.1", "/change", true},
		{"127.0.0.1", "/undo", true},
		{"127.0.0.1", "/for/n2", true},
		{"10.0.9.1", "/change", true},
		{"10.0.9.1", "/undo", true}, // admin_hosts names it
		{"10.9.9.9", "/change", false},
		{"10.9.9.9", "/for/n2", true}, // node_hosts does
	} {
		from = c.from + ":4711"
		before := len(refused)
		response, err := post(t, &client, server.URL+c.path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		want := http.StatusOK
		if !c.ok {
			want = http.StatusForbidden
		}
		if response.StatusCode != want || len(refused)-before != map[bool]int{true: 0, false: 1}[c.ok] {
			t.Errorf("%s %s: %d %s, want %d; told of %q", c.from, c.path, response.StatusCode, text, want, refused)
		}
		if fault := (epdapi.ErrorAnswer{}); !c.ok && (json.Unmarshal(text, &fault) != nil || fault.Error == "") {
			t.Errorf("%s %s: %q says nothing", c.from, c.path, text)
		}
	}
}

// mungeUser is whom a credential vouches for.
func mungeUser(r *http.Request) int64 {
	peer, ok := munge.PeerOf(r.Context())
	if !ok {
		panic(fmt.Sprintf("%s without a credential", r.URL))
	}
	return int64(peer.UID)
}

// post asks nothing in particular.
func post(t *testing.T, client *http.Client, url string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(r)
}

// A node that is heard on the controller's machine, or by a gateway, is nobody elsewhere; one that Slurm
// has on the controller's machine isn't before it is heard either, and a name that Slurm doesn't have is
// nobody's.
func TestNobodySpeaksForANodeOfTheControllersMachineNorForNone(t *testing.T) {
	n := newNetwork()
	list := append(n.Nodes(), slurm.Node{Name: "head", Address: "10.0.0.100", HostName: "head"})
	n.Nodes = func() []slurm.Node { return list }
	asked := 0
	n.Node = func(_ context.Context, name string) (slurm.Node, error) {
		asked++
		for _, known := range list {
			if known.Name == name {
				return known, nil
			}
		}
		return slurm.Node{}, fmt.Errorf("node %s: %w", name, slurm.ErrNotFound)
	}
	for _, c := range []struct {
		from, node string
		ok         bool
	}{
		{"10.7.0.3", "head", false}, // that wasn't heard yet
		{"127.0.0.1", "head", true},
		{"10.7.0.3", "head", false},
		{"10.0.0.100", "n3", true},
		{"10.7.0.3", "n3", false}, // it is heard on the controller's machine
		{"10.9.9.9", "n4", true},
		{"10.7.0.4", "n4", false}, // and by a gateway
		{"10.7.0.5", "n99", false},
		{"10.7.0.6", "../n1", false},
	} {
		n.now = n.now.Add(2 * askEvery)
		err := n.says(c.from, c.node)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, query.ErrForbidden) {
			t.Errorf("%s for %s: %v, want that it may: %v", c.from, c.node, err, c.ok)
		}
	}
	asked = 0
	for i := range 1000 {
		_ = n.says("10.7.0.8", fmt.Sprintf("n%d", 1000+i))
	}
	if asked != 1 {
		t.Errorf("Slurm was asked %d times for what one address said at once", asked)
	}
	asked = 0
	for i := range 1000 { // one machine may have a whole network
		_ = n.says(fmt.Sprintf("2001:db8::%x", 1+i), fmt.Sprintf("n%d", 2000+i))
	}
	if asked != 1 {
		t.Errorf("Slurm was asked %d times for what one network said at once", asked)
	}
}

// However many machines ask about nodes that Slurm didn't list, few questions are open at a time.
func TestFewQuestionsAboutUnknownNodesAreOpenAtATime(t *testing.T) {
	n := newNetwork()
	begun, end := make(chan struct{}, 100), make(chan struct{})
	n.Node = func(context.Context, string) (slurm.Node, error) {
		begun <- struct{}{}
		<-end
		return slurm.Node{}, slurm.ErrNotFound
	}
	var all sync.WaitGroup
	for i := range maxAsking {
		all.Go(func() { _ = n.says(fmt.Sprintf("10.7.1.%d", i), fmt.Sprintf("n%d", 100+i)) })
	}
	for range maxAsking {
		<-begun
	}
	for i := range 50 {
		_ = n.says(fmt.Sprintf("10.7.2.%d", i), fmt.Sprintf("n%d", 200+i))
	}
	close(end)
	all.Wait()
	if len(begun) > 0 {
		t.Errorf("%d questions more than %d", len(begun), maxAsking)
	}
	if err := n.says("10.7.3.1", "n300"); err == nil || len(begun) != 1 {
		t.Errorf("when they have their answers, %d are asked: %v", len(begun), err)
	}
}

// A name that no node can have is kept nowhere, whoever says it.
func TestImpossibleNamesOfNodesAreNotKept(t *testing.T) {
	n := newNetwork()
	n.Node = func(context.Context, string) (slurm.Node, error) { return slurm.Node{}, slurm.ErrNotFound }
	for _, from := range []string{"10.7.0.8", "10.9.9.9", "127.0.0.1", "10.0.0.1"} {
		n.now = n.now.Add(2 * askEvery)
		err := n.says(from, strings.Repeat("x", 1<<20))
		if !errors.Is(err, query.ErrForbidden) || len(err.Error()) > 500 {
			t.Errorf("from %s: an error of %d bytes", from, len(err.Error()))
		}
	}
	if len(n.asked)+len(n.heard)+len(n.bound) > 0 {
		t.Errorf("kept: %d that Slurm was asked for, %d heard, %d by address", len(n.asked), len(n.heard),
			len(n.bound))
	}
}
