package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/testkit/storetest"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// energies are what the export of an outcome says of them.
type energies struct {
	GPU    live.Number   `json:"gpu_energy_j"`
	Node   live.Number   `json:"node_energy_j"`
	Source record.Source `json:"node_energy_source"`
}

// measured runs jobs from Prolog to Epilog until the energy of one is from a
// source, for at most so many, and returns what its outcome says.
func measured(t *testing.T, want record.Source, flags ...string) (e energies, log string) {
	t.Helper()
	dir := t.TempDir()
	client, stop := start(t, dir, flags...)
	hook := func(kind hooks.Hook, job slurm.JobID) {
		event := hooks.Event{
			Version: hooks.ProtocolVersion, Kind: kind, Job: job, Node: "n1", GPUs: []int{0}, GPUsKnown: true,
		}
		if _, err := client.Hook(t.Context(), &event); err != nil {
			t.Fatal(err)
		}
	}
	lasts := 500 * time.Millisecond
	for job := slurm.JobID(1); job <= 3; job++ {
		hook(hooks.Prolog, job)
		<-time.After(lasts)
		hook(hooks.Epilog, job)
		if e = exported(t, filepath.Join(dir, "state"), int(job)); e.Source == want {
			break
		}
		lasts *= 2
	}
	_, log = stop()
	return e, log
}

// exported waits for the last of a number of outcomes.
func exported(t *testing.T, state string, number int) (e energies) {
	t.Helper()
	for {
		var out, failed text
		if code := run(t.Context(), []string{"epd", "db", "export", "--state", state, "outcomes"}, &out,
			&failed); code != exitDone {
			t.Fatal(failed.String())
		}
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) == number &&
			lines[0] != "" {
			if err := json.Unmarshal([]byte(lines[number-1]), &e); err != nil {
				t.Fatalf("%s: %v", lines[number-1], err)
			}
			return e
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestTheNodesEnergyIsMeasuredWhereItsCountersCanBeReadAndModelledOtherwise(t *testing.T) {
	powercap := t.TempDir()
	folder := filepath.Join(powercap, "intel-rapl:0")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		"name": "package-0", "energy_uj": "123456",
		"max_energy_range_uj": "262143328850",
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		flags  []string
		source record.Source
		log    string
	}{
		"counters":       {[]string{"--powercap", powercap}, record.RAPL, "counters=package-0"},
		"no counters":    {[]string{"--powercap", t.TempDir()}, record.Modelled, "no energy counters"},
		"simulated GPUs": {nil, record.Modelled, ""},
	} {
		t.Run(name, func(t *testing.T) { // not in parallel: command lines share a flag of package cli
			e, log := measured(t, c.source, c.flags...)
			gpus, node := e.GPU.Or(-1), e.Node.Or(-1)
			// The counters stand still.
			if e.Source != c.source || gpus < 0 || node < gpus ||
				(c.source == record.RAPL) != (node == gpus) {
				t.Errorf("GPUs %g J, node %g J from %q", gpus, node, e.Source)
			}
			if !strings.Contains(log, c.log) {
				t.Errorf("no %q in the log:\n%s", c.log, log)
			}
		})
	}
}

func TestGPUsByASitesCommandsAreRefusedWithAWayToDoWithout(t *testing.T) {
	was := commandsFile
	t.Cleanup(func() { commandsFile = was })
	commandsFile = filepath.Join(t.TempDir(), "gpu-commands.toml")
	for _, which := range []string{"exec", "exec:/etc/commands.toml", "auto"} {
		if which == "auto" {
			writeFile(t, commandsFile, "")
		}
		var out, failed text
		code := run(t.Context(), []string{
			"epd", "--dry-run", "--gpu", which, "--role", "agent", "--controller", "localhost:1", "--state",
			t.TempDir(),
		}, &out, &failed)
		if code != exitFailed || !strings.Contains(failed.String(), "hint: lock clocks in your own Prolog") ||
			!strings.Contains(failed.String(), commandsFile) {
			t.Errorf("--gpu %s: %d\n%s%s", which, code, &out, &failed)
		}
	}
}

// Limits are shorter by the speed of simulated GPUs, also for a controller, which
// has none; a wrong one is refused by every role.
func TestAWrongSpeedOfSimulatedGPUsIsRefused(t *testing.T) {
	storetest.NeedSQLite(t)
	for _, role := range []string{roleBoth, roleController} {
		dir := t.TempDir()
		args := []string{
			"epd", "--role", role, "--gpu", "sim,speed=-1", "--slurm", "off", "--state",
			filepath.Join(dir, "state"),
			"--socket", filepath.Join(dir, "epd.sock"),
		}
		if role == roleController {
			args = append(args, "--listen", "127.0.0.1:0")
		}
		var out, failed text
		if code := run(t.Context(), args, &out, &failed); code != exitUsage ||
			!strings.Contains(failed.String(), `"speed=-1", want a number above 0`) {
			t.Errorf("%s: status %d: %s", role, code, failed.String())
		}
	}
}
