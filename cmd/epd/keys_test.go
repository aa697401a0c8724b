package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// keyFiles are the flags that name a machine's files of keys.
type keyFiles []string

// keys runs epd keys, and says what it prints.
func keys(t *testing.T, words ...string) (said string, code int) {
	t.Helper()
	out, complaint := &text{}, &text{}
	code = run(context.Background(), append([]string{"epd", "keys"}, words...), out, complaint)
	return out.String() + complaint.String(), code
}

// mustKeys is keys that succeed.
func mustKeys(t *testing.T, words ...string) string {
	t.Helper()
	said, code := keys(t, words...)
	if code != exitDone {
		t.Fatalf("epd keys %q: %d: %s", words, code, said)
	}
	return strings.TrimSpace(said)
}

// makeKeys makes a machine's key, and returns what others are to know of it.
func makeKeys(t *testing.T, role, name string) (files keyFiles, line string) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	line = mustKeys(t, "make", "--key", key, "--role", role, "--name", name)
	return keyFiles{"--auth", "keys", "--key", key, "--trusted-keys", filepath.Join(dir, "trusted-keys")}, line
}

func (f keyFiles) key() string     { return f[3] }
func (f keyFiles) trusted() string { return f[5] }

// believe enrols a line.
func (f keyFiles) believe(t *testing.T, line string, more ...string) {
	t.Helper()
	words := append(append([]string{"add", "--trusted-keys", f.trusted()}, more...), line)
	mustKeys(t, words...)
}

func TestAgentsAndControllerProveByKeysOfTheirOwnWhoTheyAre(t *testing.T) {
	head, headLine := makeKeys(t, "controller", "head")
	n1, line := makeKeys(t, "node", "n1")
	n2, otherLine := makeKeys(t, "node", "n2")
	head.believe(t, line)
	head.believe(t, otherLine)
	n1.believe(t, headLine)
	n2.believe(t, headLine)
	config := filepath.Join(t.TempDir(), "epd.toml")
	writeFile(t, config, "[live]\nmode = \"enforce\"\nhold_out = 0\n")
	at := freePort(t)
	controller := launch(t, t.TempDir(),
		append(head, "--role", "controller", "--listen", at, "--config", config)...)
	agent := launch(t, t.TempDir(), append(n1, "--role", "agent", "--controller", at, "--node", "n1")...)
	job := slurm.JobID(7)
	applies := func() bool {
		job++
		a := agent.hook(hooks.Prolog, job)
		agent.hook(hooks.Epilog, job)
		return a.Applied
	}
	// For some seconds after its start it can't know what it accepted before.
	agent.eventually("a job's clocks are chosen", func() bool {
		<-time.After(200 * time.Millisecond)
		return applies()
	})
	controller.eventually("the outcome is recorded", func() bool {
		return controller.status().Totals.Outcomes >= 1
	})
	if h := agent.status().Health; h == nil || h.Key != n1.key() || h.TrustedKeys != n1.trusted() {
		t.Errorf("its status says %+v", h)
	}

	// A node speaks for itself, and for nobody else.
	other, err := nodekey.Open(n2.key(), n2.trusted(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	client := epdapi.NewRemote(at, munge.NewTransport(other))
	for name, ask := range map[string]func(context.Context) error{
		"a decision for another node": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathDecide, &epdapi.DecideRequest{
				Job: 9, Node: "n1", RunID: "x", GPUModel: "V100", GPUs: 1,
			}, new(live.Decision))
		},
		"another node's report": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathReport, &epdapi.NodeReport{Node: "n1"}, new(epdapi.ReportAnswer))
		},
		"an outlook for another node": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathOutlook, &epdapi.OutlookRequest{Job: 9, Node: "n1", RunID: "x"},
				new(live.Outlook))
		},
		"another node's outcome": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathOutcome, map[string]string{"node": "n1"}, new(struct{}))
		},
		"a reload": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathReload, struct{}{}, new(struct{}))
		},
		"forgetting runs": func(ctx context.Context) error {
			return client.Post(ctx, epdapi.PathForget, &epdapi.RunIDs{}, new(struct{}))
		},
	} {
		refused := (*epdapi.RefusedError)(nil)
		if err := ask(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Status(t.Context()); err != nil {
		t.Errorf("what everybody may ask: %v", err)
	}

	// A key that is revoked counts no more, without a restart, and a new one does at once.
	mustKeys(t, "remove", "--trusted-keys", head.trusted(), "node", "n1")
	if applies() {
		t.Error("a node whose key is revoked gets clocks")
	}
	head.believe(t, line)
	agent.eventually("a node whose key is back gets clocks", applies)
}

func TestAnEPDWithTheKeyOfAnotherDoesntStart(t *testing.T) {
	storetest.NeedSQLite(t)
	head, headLine := makeKeys(t, "controller", "head")
	n1, line := makeKeys(t, "node", "n1")
	head.believe(t, line)
	n1.believe(t, headLine)
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"another node's": {
			append(n1, "--role", "agent", "--controller", "head:1", "--node", "n2"),
			"is the key of node n1, and this is n2",
		},
		"a node's": {
			append(n1, "--role", "controller", "--listen", "127.0.0.1:0"),
			"is the key of a node, want a controller's",
		},
		"none": {
			[]string{"--auth", "keys", "--key", "/nowhere/key", "--role", "agent", "--controller", "head:1"},
			"/nowhere",
		},
		"neither of the two": {[]string{"--auth", "trust"}, `--auth "trust", want munge or keys`},
	} {
		complaint := &text{}
		dir := t.TempDir()
		args := append([]string{
			"epd", "--slurm", "off", "--gpu", "sim:1", "--state", filepath.Join(dir, "s"),
			"--socket", filepath.Join(dir, "x"),
		}, c.flags...)
		code := run(t.Context(), args, &text{}, complaint)
		if code == exitDone || !strings.Contains(complaint.String(), c.want) {
			t.Errorf("%s: %d: %s", name, code, complaint)
		}
	}
}

func TestKeysAreMadeOnceAndEnrolledWholly(t *testing.T) {
	n1, line := makeKeys(t, "node", "n1")
	said, code := keys(t, "make", "--key", n1.key())
	if code != exitFailed || !strings.Contains(said, "is there") {
		t.Errorf("a second one: %d %s", code, said)
	}
	if said := mustKeys(t, "show", "--key", n1.key()); said != line {
		t.Errorf("show: %s, want %s", said, line)
	}
	n1.believe(t, line)
	_, another := makeKeys(t, "node", "n1")
	said, code = keys(t, "add", "--trusted-keys", n1.trusted(), another)
	if code != exitFailed || !strings.Contains(said, "--replace revokes") {
		t.Errorf("another key of that name: %d %s", code, said)
	}
	if said := mustKeys(t, "list", "--trusted-keys", n1.trusted()); said != line {
		t.Errorf("list: %s", said)
	}
	n1.believe(t, another, "--replace")
	if said := mustKeys(t, "list", "--trusted-keys", n1.trusted()); said != another {
		t.Errorf("list: %s", said)
	}
	info, err := os.Stat(n1.trusted())
	if err != nil || info.Mode().Perm() != fs.FileMode(0o644) {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, words := range [][]string{
		{"add"},
		{"add", "node", "n1"},
		{"remove", "node"},
		{"list", "x"},
		{"show", "x"},
		{"make", "x"},
		{"remove", "--trusted-keys", n1.trusted(), "node", "n7"},
		{"make", "--role", "king", "--key", n1.key() + "2"},
	} {
		if said, code := keys(t, words...); code == exitDone || said == "" {
			t.Errorf("%q: %d %s", words, code, said)
		}
	}
}
