package livetest_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/epplan/epplan/internal/doctor"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm"
)

// keyFlags returns the flags by which an epd proves who it is by a key of its own.
func (l *lab) keyFlags(node string) []string {
	return []string{
		"--auth", "keys", "--key", filepath.Join(l.dir, "keys", node, "key"),
		"--trusted-keys", filepath.Join(l.dir, "keys", node, "trusted-keys"),
	}
}

// epdKeys runs epd keys about the files of a node.
func (l *lab) epdKeys(node, command string, words ...string) string {
	l.Helper()
	flags := l.keyFlags(node)
	if command != "make" && command != "show" {
		flags = flags[2:]
	}
	all := append([]string{"keys", command}, append(flags[2:4:4], words...)...)
	out, err := exec.CommandContext(l.Context(), filepath.Join(l.bin, "epd"), all...).CombinedOutput()
	if err != nil {
		l.Fatalf("epd %q: %v\n%s", all, err, out)
	}
	return strings.TrimSpace(string(out))
}

// makeKeys gives the controller and each node a key, and has them know each other.
func (l *lab) makeKeys() {
	l.Helper()
	line := make(map[string]string)
	for _, node := range append([]string{controller}, l.names...) {
		l.write("keys/"+node+"/README", "", 0o644)
		role := "node"
		if node == controller {
			role = controller
		}
		line[node] = l.epdKeys(node, "make", "--role", role, "--name", node)
	}
	for _, node := range l.names {
		l.epdKeys(controller, "add", line[node])
		l.epdKeys(node, "add", line[controller])
	}
}

// ownAuth has Slurm do without munge, where its release can.
func (l *lab) ownAuth() {
	l.Helper()
	out, err := exec.CommandContext(l.Context(), "slurmctld", "-V").Output()
	if err != nil {
		l.Fatal(err)
	}
	version, err := slurm.ParseVersion(strings.TrimSpace(string(out)))
	if err != nil {
		l.Fatal(err)
	}
	if !version.AtLeast(23, 11) {
		l.setup.conf = append(l.setup.conf, "AuthInfo=socket="+l.dir+"/slurm/munge/socket")
		return
	}
	l.munged = false
	l.write("slurm/etc/slurm.key", strings.Repeat("a key of tests ", 70), 0o600)
	key := filepath.Join(l.dir, "slurm/etc/slurm.key")
	if out, err := exec.CommandContext(l.Context(), "chown", "slurm:", key).CombinedOutput(); err != nil {
		l.Fatalf("%v: %s", err, out)
	}
	l.setup.conf = append(l.setup.conf, "AuthType=auth/slurm", "CredType=cred/slurm", "AuthInfo=ttl=60")
}

// Slurm has a key of its own where it can, and epd has keys in any case: nobody asks munge.
func TestWithoutMungeAgentsObeyTheirControllerByKeys(t *testing.T) {
	l := newLab(t, setup{config: enforce, roles: true, keys: true})
	l.eventually("the controller hears of both nodes", func() bool {
		nodes, err := epdapi.New(l.socket(controller)).Nodes(t.Context())
		return err == nil && len(nodes.Nodes) == 2 && nodes.Nodes[0].Report != nil && nodes.Nodes[1].Report != nil
	})
	first := l.locks(map[string]int{"n1": 2, "n2": 2}, 2,
		func() int64 { return l.submit("sleep 2", "-N", "2", "--gres=gpu:2", fixed) })
	l.ends(first, "COMPLETED")
	l.recordedBy("n1", 2)
	l.recordedBy("n2", 2)
	l.free("n1", "n2")
	l.once("n1", first, "COMPLETED")
	l.once("n2", first, "COMPLETED")

	// n2 is believed no more: its jobs run at default clocks, and what they came to waits.
	l.epdKeys(controller, "remove", "node", "n2")
	revoked := l.submit("sleep 1", "--gres=gpu:1", "-w", "n2", fixed)
	l.ends(revoked, "COMPLETED")
	if got := l.says("n2"); got.Unrecorded != 1 || len(got.Troubles) == 0 {
		t.Errorf("status %+v", got)
	}
	still := l.lock("n1", 1)
	l.completes(still)
	p := &patient{lab: l, bin: t.TempDir()}
	said, _ := p.doctor([]string{ // it ends with 1: something is wrong
		"--json", "--role", "node", "--only", "munge,controller-link", "--agent-socket", l.socket("n2"),
	}).Output()
	var report doctor.Report
	if err := json.Unmarshal(said, &report); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if got := ids(report.Findings, doctor.Bad); len(got) != 1 || got[0] != "controller-refuses-key" {
		t.Errorf("the doctor finds %q: %s", got, said)
	}
	l.epdKeys(controller, "add", l.epdKeys("n2", "show"))
	l.within(patience, "what waited is recorded", func() bool { return l.says("n2").Unrecorded == 0 })
	back := l.lock("n2", 1)
	l.completes(back)
	l.undrained()
}

// stopMunged ends the munged that a lab begins with.
func (l *lab) stopMunged() {
	l.Helper()
	(&patient{lab: l}).signalPID("munged", syscall.SIGKILL)
	socket := filepath.Join(l.dir, "slurm/munge/socket")
	if made, err := exec.CommandContext(l.Context(), "munge", "-n", "-S", socket).Output(); err == nil {
		l.Fatalf("munge is there still: %s", made)
	}
}
