package main

import (
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/shareddata"
)

const unitFolder = "../../packaging/systemd"

// unit is a systemd unit: its settings by section and key, in order.
type unit map[string][]string

// readUnit reads a unit as systemd does, and fails at lines that are no settings.
func readUnit(t *testing.T, path string) unit {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	u, section := unit{}, ""
	for number, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		key, value, setting := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		case setting && section != "":
			u[section+"."+key] = append(u[section+"."+key], value)
		default:
			t.Errorf("%s:%d: %q is no setting", filepath.Base(path), number+1, line)
		}
	}
	return u
}

func units(t *testing.T) map[string]unit {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(unitFolder, "*.service"))
	if err != nil || len(paths) != 3 {
		t.Fatalf("%q, %v: want three units", paths, err)
	}
	found := make(map[string]unit)
	for _, path := range paths {
		found[strings.TrimSuffix(filepath.Base(path), ".service")] = readUnit(t, path)
	}
	return found
}

// flagNames returns the flags of a command.
func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}

// checkCommand reports whether epd takes a command line.
func checkCommand(t *testing.T, name, line string) {
	t.Helper()
	words := strings.Fields(line)
	if words[0] != "/usr/bin/epd" {
		t.Errorf("%s runs %s", name, words[0])
	}
	app := application(io.Discard, io.Discard)
	flags := flagNames(app.Flags)
	for _, c := range app.Commands {
		if at := slices.Index(words, c.Name); at > 0 && !strings.HasPrefix(words[at-1], "--") {
			flags = append(flagNames(c.Flags), flags...)
		}
	}
	for _, w := range words[1:] {
		if flag, ok := strings.CutPrefix(w, "--"); ok && !slices.Contains(flags, flag) {
			t.Errorf("%s: epd has no flag %s: %s", name, w, line)
		}
	}
}

func TestTheUnitsRunCommandsThatEPDTakes(t *testing.T) {
	for name, u := range units(t) {
		for _, key := range []string{"Service.ExecStart", "Service.ExecStopPost"} {
			for _, line := range u[key] {
				checkCommand(t, name, line)
			}
		}
	}
}

// afterStop lists the commands of each unit once epd has ended, however it did. Slurm's queue needs the
// options of the epd that ended: the state folder that they name, and whether another machine takes over. It
// comes after the clocks, and is done within what systemd gives a command at a stop.
var afterStop = map[string][]string{
	"epd-agent": {"/usr/bin/epd restore --journal /var/lib/epplan/journal"},
	"epd-controller": {
		"/usr/bin/epd --role controller --state /var/lib/epplan-controller $EPD_OPTIONS restore --within 20s",
	},
	"epd": {
		"/usr/bin/epd restore --journal /var/lib/epplan/journal",
		"/usr/bin/epd --role controller --state /var/lib/epplan $EPD_OPTIONS restore --within 20s",
	},
}

//nolint:gocognit // one key of a unit after the other
func TestTheUnitsGiveBackClocksAndQueueAndKeepEPDRunning(t *testing.T) {
	for name, u := range units(t) {
		want := map[string]string{
			"Service.Restart": "always", "Service.Type": "notify", "Unit.StartLimitIntervalSec": "0",
			"Service.RuntimeDirectory": "epplan",
			"Service.NoNewPrivileges":  "yes", "Service.ProtectSystem": "strict",
			"Service.RuntimeDirectoryPreserve": "yes",
		}
		if name == "epd-controller" {
			want["Service.PrivateDevices"] = "yes"
			for _, key := range []string{"PrivateUsers", "RemoveIPC", "ProcSubset", "DynamicUser"} {
				if got := u["Service."+key]; got != nil {
					t.Errorf("%s: %s=%q: the unit says why not", name, key, got)
				}
			}
		} else {
			// The controller's user mustn't own the folder of the agent's socket.
			agents := strings.TrimPrefix(path.Dir(epdapi.AgentSocket), "/run/") + " " +
				strings.TrimPrefix(gpuClaims, "/run/")
			want["Service.RuntimeDirectory"] = map[string]string{"epd-agent": agents, "epd": "epplan " + agents}[name]
			want["Service.StateDirectory"] = "epplan"
			for _, key := range []string{
				"PrivateDevices", "ProtectClock", "DevicePolicy", "DeviceAllow",
				"ProtectKernelModules",
			} {
				if got := u["Service."+key]; got != nil {
					t.Errorf("%s: %s=%q keeps NVML from the GPUs", name, key, got)
				}
			}
		}
		for key, value := range want {
			if got := u[key]; !slices.Equal(got, []string{value}) {
				t.Errorf("%s: %s=%q, want %q", name, key, got, value)
			}
		}
		if got, want := u["Service.ExecStopPost"], afterStop[name]; !slices.Equal(got, want) {
			t.Errorf("%s: after a stop %q, want %q", name, got, want)
		}
		// What epd writes to is given to it.
		state := "/var/lib/" + strings.Join(u["Service.StateDirectory"], "")
		if line := u["Service.ExecStart"][0]; !strings.Contains(line, "--state "+state+" ") {
			t.Errorf("%s: %s, want the state in %s", name, line, state)
		}
	}
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	shareddata.Need(t, err == nil, "systemd-analyze isn't installed: run scripts/test-packages.sh")
	dir := t.TempDir()
	names, err := filepath.Glob(filepath.Join(unitFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	copies := make([]string, 0, len(names))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "/usr/bin/epd", "/bin/true")),
			0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, path)
	}
	out, err := exec.CommandContext(t.Context(), analyze,
		append([]string{"verify", "--man=no"}, copies...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) || strings.Contains(line, "epd") {
			t.Errorf("%s", line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}

// exposures are how exposed systemd-analyze finds each unit, from 0 to 10, and
// what docs/packages.md says.
var exposures = map[string]string{"epd-controller": "1.4", "epd-agent": "3.9", "epd": "3.8"}

func TestTheUnitsAreNoMoreExposedThanTheDocumentationSays(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	shareddata.Need(t, err == nil, "systemd-analyze isn't installed: run scripts/test-packages.sh")
	page, err := os.ReadFile("../../docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range units(t) {
		limit := exposures[name]
		path, err := filepath.Abs(filepath.Join(unitFolder, name+".service"))
		if err != nil {
			t.Fatal(err)
		}
		threshold := "--threshold=" + strings.ReplaceAll(limit, ".", "") // in tenths
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=yes", "--no-pager",
			threshold, path).CombinedOutput()
		if err != nil {
			t.Errorf("%s is more exposed than %s: %v\n%s", name, limit, err, out)
		}
		if want := "`" + name + ".service` | " + limit; !strings.Contains(string(page), want) {
			t.Errorf("docs/packages.md doesn't say %q", want)
		}
	}
}

func TestTheSocketsStandForFlagsThatTheirServicesHave(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(unitFolder, "*.socket"))
	if err != nil || len(paths) < len(socketFlags) {
		t.Fatalf("%q, %v: want a socket for each of %q", paths, err, socketFlags)
	}
	for _, path := range paths {
		u := readUnit(t, path)
		name, service := strings.Join(u["Socket.FileDescriptorName"], ""),
			strings.Join(u["Socket.Service"], "")
		if !slices.Contains(socketFlags, name) || !slices.Contains(flagNames(serveFlags()), name) {
			t.Errorf("%s: epd takes no socket %q", path, name)
		}
		if _, err := os.Stat(filepath.Join(unitFolder, service)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		private := name == "socket"
		if mode := strings.Join(u["Socket.SocketMode"], ""); private != (mode == "0600") {
			t.Errorf("%s: everybody may ask there, or nobody: SocketMode=%q", path, mode)
		}
	}
}

// TestTheDocumentedCapabilitiesAreTheUnitsWithoutThoseOfDrivers: who copies them loses nothing else.
func TestTheDocumentedCapabilitiesAreTheUnitsWithoutThoseOfDrivers(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	const key = "CapabilityBoundingSet="
	_, documented, _ := strings.Cut(string(page), "\n"+key+"\n"+key)
	documented, _, _ = strings.Cut(documented, "\n")
	for name, last := range map[string]string{"epd-agent": "", "epd": " CAP_NET_BIND_SERVICE"} {
		set := readUnit(t, filepath.Join(unitFolder, name+".service"))["Service.CapabilityBoundingSet"]
		if len(set) != 1 {
			t.Fatalf("%s: %q", name, set)
		}
		want := slices.DeleteFunc(strings.Fields(set[0]), func(c string) bool {
			return c == "CAP_SYS_MODULE" || c == "CAP_MKNOD"
		})
		if got := strings.TrimSuffix(documented, last); got != strings.Join(want, " ") {
			t.Errorf("%s: documented %q, want %q", name, got, want)
		}
	}
}

// Users may take every core of a node, and a Prolog waits two seconds.
func TestJobsThatTakeAllCoresDontStarveEPD(t *testing.T) {
	for name, u := range units(t) {
		for _, want := range []string{"CPUWeight=1000", "IOWeight=1000", "Nice=-10"} {
			key, value, _ := strings.Cut(want, "=")
			if got := u["Service."+key]; len(got) != 1 || got[0] != value {
				t.Errorf("%s: %s %q, want %s", name, key, got, value)
			}
		}
	}
}
