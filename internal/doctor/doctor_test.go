package doctor_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/doctor"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/nodekey"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/install"
	"github.com/epplan/epplan/statedir"
)

var update = flag.Bool("update", false, "rewrite the table of docs/doctor.md")

// machine is a made-up machine on which all is well, to be broken.
type machine struct {
	files   map[string]string
	owners  map[string]uint32 // of files that are not root's
	modes   map[string]fs.FileMode
	old     map[string]time.Time
	free    uint64
	conf    map[string]string // what scontrol show config says
	version string
	ping    error
	nodes   string
	munge   error
	agent   *epdapi.Status
	down    error // of both
	remote  error
	notes   []string // of levers
	skew    time.Duration
	runs    map[string]error // of other programs, by their name
	says    map[string]string
	hangs   string       // a command that never ends
	refused error        // what epd has against its folders
	jobs    string       // of squeue --json
	locks   atomic.Int32 // looks at locks in which the kernel leaves some out, less those that there were
	asked   []string
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const text = "[live]\nmode = \"enforce\"\nsleep_after_s = 600\n"

// olderModule is epplan.lua as another version of epplan wrote it.
const olderModule = "-- epplan.lua\n-- epplan install: befe444b0ad49704\nlocal SOCKET    = \"/run/epplan/submit.sock\"\n"

// luaModule is epplan.lua as an installation writes it.
var luaModule = func() string {
	module, err := install.LuaModule("/etc/slurm", epdapi.PublicSocket, "")
	if err != nil {
		panic(err)
	}
	return module
}()

func healthy() *machine {
	health := &epdapi.Health{
		State: "/var/lib/epplan", Config: "/etc/epplan/config.toml", SubmitSocket: epdapi.PublicSocket,
	}
	m := &machine{
		files: map[string]string{
			"/etc/slurm/slurm.conf": "ClusterName=c\n",
			"/etc/slurm/job_submit.lua": "function slurm_job_submit(a, b, c)\n  pcall(function() " +
				"EPPLAN = EPPLAN or dofile(\"/etc/slurm/epplan.lua\"); EPPLAN.submit(a, c) end) -- epplan\nend\n",
			"/etc/slurm/epplan.lua":           luaModule,
			"/etc/slurm/prolog.d/ours":        "epplan prolog",
			"/etc/slurm/epilog.d/ours":        "epplan epilog",
			"/usr/lib/job_submit_lua.so":      "",
			"/etc/epplan/config.toml":         text,
			"/run/epplan":                     "",
			epdapi.AgentSocket:                "",
			epdapi.PublicSocket:               "",
			"/var/lib/epplan":                 "",
			"/var/lib/epplan/journal":         "",
			"/var/lib/epplan/spool":           "",
			"/var/lib/epplan/records.db":      "",
			"/run/systemd/system":             "",
			"/proc/locks":                     "",
			"/var/lib/epplan/agent.lock":      "",
			"/proc/1/comm":                    "init\n",
			"/etc/slurm/gres.conf":            "",
			"/lib/systemd/system/epd.service": "",
		},
		modes: map[string]fs.FileMode{
			epdapi.AgentSocket: 0o600, epdapi.PublicSocket: 0o666, "/run/epplan": 0o755,
			"/var/lib/epplan": 0o700, "/var/lib/epplan/journal": 0o700, "/var/lib/epplan/spool": 0o700,
		},
		old: map[string]time.Time{}, free: 1 << 40, version: "slurm-wlm 23.02.1",
		conf: map[string]string{
			"SLURM_CONF": "/etc/slurm/slurm.conf", "Prolog": "/etc/slurm/prolog.d/*",
			"Epilog": "/etc/slurm/epilog.d/*", "PrologFlags": "Alloc,Contain",
			"JobSubmitPlugins": "lua", "PluginDir": "/usr/lib", "PriorityType": "priority/multifactor",
			"PriorityWeightPartition": "100000", "PrologEpilogTimeout": "65534",
			"PrivateData": "none", "GresTypes": "gpu", "AccountingStorageType": "accounting_storage/slurmdbd",
			"SlurmUser":      "slurm(64030)",
			"SuspendProgram": "/x", "ResumeProgram": "/y", "ResumeTimeout": "600 sec",
		},
		nodes: node("n1", "IDLE", ""),
		runs:  map[string]error{},
	}
	m.agent = &epdapi.Status{
		Version: "v1", Role: "both", Node: "n1", Health: health, GPUs: []epdapi.GPU{{UUID: "GPU-1"}},
		Controller: &epdapi.ControllerStatus{
			ConfigVersion: config.Digest([]byte(text)), Queue: epdapi.SyncStatus{At: now},
			Nodes: epdapi.SyncStatus{At: now},
		},
	}
	return m
}

// node returns a node as scontrol shows it.
func node(name, state, reason string) string {
	return "NodeName=" + name + " Arch=x86_64 CoresPerSocket=1\n   CPUAlloc=0 CPUTot=4 CPULoad=0.1\n" +
		"   AvailableFeatures=(null)\n   ActiveFeatures=(null)\n" +
		"   Gres=gpu:1\n   NodeAddr=" + name + " NodeHostName=" + name + " Version=23.02.1\n" +
		"   RealMemory=64000 AllocMem=0 FreeMem=1 Sockets=4 Boards=1\n" +
		"   State=" + state +
		" ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n   Partitions=main\n" +
		"   BootTime=2026-11-20T02:46:34 SlurmdStartTime=2026-11-20T03:04:02\n" + reason + "\n"
}

func (m *machine) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	m.asked = append(m.asked, line)
	if m.hangs != "" && strings.HasPrefix(line, m.hangs) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	switch {
	case line == "scontrol --version":
		return []byte(m.version), nil
	case line == "scontrol ping" && m.ping == nil:
		return []byte("Slurmctld(primary) at head is UP"), nil
	case line == "scontrol ping":
		return []byte("Slurmctld(primary) at head is DOWN"), m.ping
	case line == "scontrol show config":
		var b strings.Builder
		for key, value := range m.conf {
			fmt.Fprintf(&b, "%s = %s\n", key, value)
		}
		return []byte(b.String()), m.ping
	case line == "scontrol show node -d":
		return []byte(m.nodes), nil
	case strings.HasPrefix(line, "squeue --json --all --states=all"): // or one of them
		return []byte(`{"jobs":[` + cmp.Or(m.jobs, `{"job_id":6},{"job_id":7}`) + `]}`), nil
	}
	return nil, fmt.Errorf("%s isn't to be run", line)
}

func (m *machine) Status(context.Context) (*epdapi.Status, error) { return m.agent, m.down }
func (m *machine) Levers(context.Context) (*epdapi.Levers, error) {
	return &epdapi.Levers{Status: steer.Status{Notes: m.notes}}, nil
}

func (m *machine) Encode(context.Context, []byte, munge.CredentialTerms) (string, error) {
	return "x", m.munge
}

func (m *machine) Decode(context.Context, string) (munge.Credential, error) {
	return munge.Credential{Payload: []byte("epplan doctor")}, nil
}

func (m *machine) Read(name string) (string, error) {
	if name == "/proc/locks" && m.locks.Add(-1) >= 0 {
		return "", nil
	}
	if text, ok := m.files[name]; ok {
		return text, nil
	}
	return "", fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
}

func (m *machine) Stat(name string) (doctor.Info, error) {
	text, err := m.Read(name)
	mode, ok := m.modes[name]
	if !ok {
		mode = 0o755
	}
	at, ok := m.old[name]
	if !ok {
		at = now
	}
	return doctor.Info{
		Mode: mode, UID: m.owners[name], Inode: uint64(len(name)), Size: int64(len(text)), At: at,
	}, err
}

func (m *machine) Glob(pattern string) []string {
	var found []string
	for name := range m.files {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func (m *machine) CheckTrust(_ string, uid uint32) error {
	if m.refused != nil && uid == m.agent.Health.UID {
		return m.refused
	}
	return nil
}

func (m *machine) FreeSpace(string) (free, all uint64, err error) { return m.free, 1 << 41, nil }

// exits is the error of a program that ends with a status.
func exits(t *testing.T) error {
	t.Helper()
	return exec.CommandContext(t.Context(), "false").Run()
}

func (m *machine) site() *doctor.Site {
	return &doctor.Site{
		Slurm: m, Files: m, Now: func() time.Time { return now },
		Run: func(_ context.Context, name string, args ...string) (string, error) {
			m.asked = append(m.asked, name+" "+strings.Join(args, " "))
			if name == "systemctl" {
				return "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n", m.runs[name]
			}
			return m.says[name], m.runs[name]
		},
		Munge: func(string) doctor.Munge { return m },
		EPD:   func(string) doctor.EPD { return m },
		Remote: func(context.Context, string, doctor.Proof) (*epdapi.Status, time.Time, error) {
			return &epdapi.Status{Version: "v1"}, now.Add(-m.skew), m.remote
		},
	}
}

// examine runs all checks on a machine.
func (m *machine) examine(t *testing.T, role doctor.Role) *doctor.Report {
	t.Helper()
	// One after the other: the made-up machine isn't for many at once.
	all := &doctor.Report{}
	for _, c := range doctor.Checks() {
		r := doctor.Examine(t.Context(), m.site(),
			doctor.Options{Role: role, Version: "v1", Timeout: time.Second}, []doctor.Check{c})
		all.Findings = append(all.Findings, r.Findings...)
	}
	return all
}

func ids(r *doctor.Report, grades ...doctor.Grade) []string {
	var found []string
	for i := range r.Findings {
		if slices.Contains(grades, r.Findings[i].Grade) {
			found = append(found, r.Findings[i].ID)
		}
	}
	return found
}

func TestAllIsWellOnAMachineWhereItIs(t *testing.T) {
	for _, role := range []doctor.Role{doctor.Both, doctor.Head, doctor.Node, doctor.Auto} {
		r := healthy().examine(t, role)
		for _, f := range r.Findings {
			if f.Grade == doctor.Bad || f.Grade == doctor.Unknown {
				t.Errorf("%s: %+v", role, f)
			}
		}
	}
}

// broken is a way in which a machine is broken, and the finding.
type broken struct {
	want string
	hurt func(*machine)
}

// brokenSlurm are faults of Slurm and munge.
func brokenSlurm() []broken {
	return []broken{
		{"munge-down", func(m *machine) { m.munge = fmt.Errorf("%w: no such file", munge.ErrUnavailable) }},
		{"munge-hung", func(m *machine) { m.munge = context.DeadlineExceeded }},
		{"munge-wrong", func(m *machine) { m.munge = munge.ErrKey }},
		{"slurm-old", func(m *machine) { m.version = "slurm 21.08.8" }},
		{"slurm-new", func(m *machine) { m.version = "slurm 27.05.0" }},
		{"slurmctld-down", func(m *machine) { m.ping = errors.New("exit status 1") }},
		{"node-silent", func(m *machine) { m.nodes += node("n2", "DOWN+NOT_RESPONDING", "") }},
		{"node-drained", func(m *machine) {
			m.nodes += node("n2", "IDLE+DRAIN", "   Reason=Epilog error [root@2026-11-21T10:00:00]\n")
		}},
		{"submit-plugin-off", func(m *machine) { m.conf["JobSubmitPlugins"] = "cray" }},
		{"submit-plugin-missing", func(m *machine) { delete(m.files, "/usr/lib/job_submit_lua.so") }},
		{"submit-script-missing", func(m *machine) { delete(m.files, "/etc/slurm/job_submit.lua") }},
		{"submit-script-foreign", func(m *machine) { m.files["/etc/slurm/job_submit.lua"] = "return 0\n" }},
		{"submit-module-missing", func(m *machine) { delete(m.files, "/etc/slurm/epplan.lua") }},
		{"submit-module-changed", func(m *machine) { m.files["/etc/slurm/epplan.lua"] += "-- the site's own\n" }},
		{"submit-module-old", func(m *machine) { m.files["/etc/slurm/epplan.lua"] = olderModule }},
		{"submit-socket-other", func(m *machine) {
			m.files["/etc/slurm/epplan.lua"] = "local SOCKET    = \"/elsewhere\"\n"
		}},
		{"hook-unset", func(m *machine) { m.conf["Prolog"] = "(null)" }},
		{"hook-no-match", func(m *machine) { m.conf["Epilog"] = "/nowhere/*" }},
		{"hook-not-executable", func(m *machine) { m.modes["/etc/slurm/prolog.d/ours"] = 0o644 }},
		{"hook-foreign", func(m *machine) { m.files["/etc/slurm/prolog.d/ours"] = "true" }},
		{"epilog-journal", func(m *machine) {
			m.files["/etc/slurm/epilog.d/ours"] = "/usr/bin/epplan epilog --journal " +
				"/srv/other/journal </dev/null"
		}},
		{"epilog-not-first", func(m *machine) { m.files["/etc/slurm/epilog.d/the-site"] = "sleep 60" }},
		{"prolog-not-last", func(m *machine) { m.files["/etc/slurm/prolog.d/a-site"] = "sleep 60" }},
		{"task-epilog", func(m *machine) { m.conf["TaskEpilog"] = summaryFile }},
		{"task-epilog", func(m *machine) {
			hasSummary(m)
			m.modes[summaryFile] = 0o700
		}},
		{"task-epilog", func(m *machine) {
			hasSummary(m)
			m.files[summaryFile] = strings.Replace(m.files[summaryFile], "/usr/bin/epplan", "/opt/epplan", 1)
		}},
		{"prolog-flags", func(m *machine) { m.conf["PrologFlags"] = "(null)" }},
		{"hook-timeout", func(m *machine) { m.conf["PrologEpilogTimeout"] = "2" }},
		{"hook-timeout", func(m *machine) { m.conf["EpilogTimeout"] = "2" }},
		{"priority-basic", func(m *machine) { m.conf["PriorityType"] = "priority/basic" }},
		{"priority-flat", func(m *machine) { m.conf["PriorityWeightPartition"] = "0" }},
		{"priority-low", func(m *machine) {
			m.conf["PriorityWeightPartition"], m.conf["PriorityWeightAge"], m.conf["PriorityWeightQOS"] = "0",
				"1000", "1000"
			m.conf["AccountingStorageType"] = "accounting_storage/none"
		}},
		{"priority-low", func(m *machine) {
			m.notes = []string{"partition main: priorities are too near 1 for jobs to be put in order"}
		}},
		{"private-data", func(m *machine) { m.conf["PrivateData"], m.agent.Health.UID = "jobs,usage", 1000 }},
		{"power-saving", func(m *machine) { delete(m.conf, "ResumeProgram") }},
		{"power-timeout", func(m *machine) { m.conf["ResumeTimeout"] = "30 sec" }},
		{"power-mode", func(m *machine) { m.conf["SuspendTime"] = "INFINITE" }},
		{"gres-types", func(m *machine) { m.conf["GresTypes"] = "shard" }},
		{"gres-count", func(m *machine) { m.agent.GPUs = append(m.agent.GPUs, epdapi.GPU{UUID: "GPU-2"}) }},
		{"accounting", func(m *machine) { m.conf["AccountingStorageType"] = "accounting_storage/none" }},
	}
}

const summaryFile = "/etc/slurm/" + install.SummaryFile

// hasSummary has jobs' outputs end with epplan's line.
func hasSummary(m *machine) {
	m.conf["TaskEpilog"], m.modes[summaryFile], m.files["/usr/bin/epplan"] = summaryFile, 0o755, ""
	m.files[summaryFile] = "#!/bin/sh\n/usr/bin/timeout -k 0.1 1 /usr/bin/epplan job --line --socket head:6821 7\n"
}

func TestASoundTaskEpilogOfOursAndASitesOwnAreNoFindings(t *testing.T) {
	for name, change := range map[string]func(*machine){
		"ours": hasSummary, "the site's": func(m *machine) { m.conf["TaskEpilog"] = "/nowhere/own" },
	} {
		m := healthy()
		change(m)
		for _, f := range m.examine(t, doctor.Node).Findings {
			if f.Check == "task-epilog" && f.Grade != doctor.OK {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// hasDoubtfulKey has the configuration hold a value that is right and hardly what is meant.
func hasDoubtfulKey(m *machine) {
	const text = "[live]\nmode = \"enforce\"\nhold_out = 0\n"
	m.files["/etc/epplan/config.toml"], m.agent.Controller.ConfigVersion = text, config.Digest([]byte(text))
}

// brokenEPD are faults of epd.
func brokenEPD() []broken { //nolint:funlen // a table
	remote := func(m *machine) { m.agent.Role, m.agent.Health.Controllers = "agent", []string{"head:6821"} }
	byKey := func(m *machine) { remote(m); m.agent.Health.Key = nodekey.DefaultKey }
	return []broken{
		{"epd-down", func(m *machine) { m.down = epdapi.ErrUnreachable }},
		{"epd-hung", func(m *machine) {
			m.down = fmt.Errorf("%w: %w", epdapi.ErrUnreachable, context.DeadlineExceeded)
		}},
		{"socket-missing", func(m *machine) {
			m.down = epdapi.ErrUnreachable
			delete(m.files, epdapi.AgentSocket)
			m.locks.Store(3) // as where others end locks meanwhile
			m.files["/proc/locks"] = fmt.Sprintf("1: FLOCK  ADVISORY  WRITE 77 08:01:%d 0 EOF\n",
				len("/var/lib/epplan/agent.lock"))
		}},
		{"socket-open", func(m *machine) { m.modes[epdapi.AgentSocket] = 0o660 }},
		{"socket-foreign", func(m *machine) {
			folder := path.Dir(epdapi.AgentSocket)
			m.files[folder], m.owners = "", map[string]uint32{folder: 64030}
		}},
		{"socket-closed", func(m *machine) { m.modes[epdapi.PublicSocket] = 0o600 }},
		{"socket-folder", func(m *machine) { m.modes["/run/epplan"] = 0o700 }},
		{"submit-socket-missing", func(m *machine) { delete(m.files, epdapi.PublicSocket) }},
		{"controller-unreachable", func(m *machine) { remote(m); m.remote = epdapi.ErrUnreachable }},
		{"controller-refuses", func(m *machine) { remote(m); m.remote = munge.ErrUnauthentic }},
		{"controller-refuses-key", func(m *machine) { byKey(m); m.remote = munge.ErrUnauthentic }},
		{"key-unusable", func(m *machine) { byKey(m); m.remote = nodekey.ErrFile }},
		{"clock-skew", func(m *machine) { remote(m); m.skew = 4 * time.Second }},
		{"clock-skew-large", func(m *machine) { remote(m); m.skew = -time.Hour }},
		{"version-skew", func(m *machine) { m.agent.Version = "v0" }},
		{"config-wrong", func(m *machine) { m.files["/etc/epplan/config.toml"] = "[live]\nmod = 1\n" }},
		{"config-missing", func(m *machine) { delete(m.files, "/etc/epplan/config.toml") }},
		{"config-unreadable", func(m *machine) {
			m.modes["/etc/epplan/config.toml"], m.agent.Health.UID = 0o600, 1000
		}},
		{"config-stale", func(m *machine) { m.agent.Controller.ConfigVersion = "0" }},
		{"config-doubtful", hasDoubtfulKey},
		{"slurm-sync", func(m *machine) { m.agent.Controller.Queue.Failures = 4 }},
		{"comment-foreign", func(m *machine) { m.agent.Controller.ForeignComments = 3 }},
		{"slurm-unread", func(m *machine) { m.agent.Controller.Queue.Unread = 2 }},
		{"prolog-missed", func(m *machine) {
			m.agent.Controller.MissedPrologs = []epdapi.MissedProlog{{Node: "n7", Jobs: 12, Since: now, Last: 9}}
		}},
		{"submit-missed", func(m *machine) { m.agent.Controller.TokensMissing = 3 }},
		{"levers-left", func(m *machine) {
			m.down = epdapi.ErrUnreachable
			m.files["/var/lib/epplan/levers/levers.json"] = `{"schema":1,"entries":[{"lever":"nice","job":7,` +
				`"before":"0","after":"126","phase":"in_force","at":"2026-11-21T11:00:00Z"}]}`
			m.jobs = `{"job_id":7,"job_state":["PENDING"],"priority":100,"nice":126}`
		}},
		{"levers-left", func(m *machine) {
			m.down, m.files["/var/lib/epplan/levers/levers.json"] = epdapi.ErrUnreachable, `{"schema":99}`
		}},
		{"gpus-none", func(m *machine) { m.agent.GPUs = nil }},
		{"gpu-lost", func(m *machine) { m.agent.GPUs[0].Lost = true }},
		{"gpu-numbers", func(m *machine) { m.agent.Numbering = &epdapi.Numbering{Trouble: "no gres.conf"} }},
		{"gpu-stuck", func(m *machine) { m.agent.GPUs[0].Stuck = true }},
		{"gpu-permission", func(m *machine) { m.agent.GPUs[0].Refused = "permission denied" }},
		{"gpu-alien", func(m *machine) {
			m.agent.GPUs[0].ExternalChange = "it runs faster than it was locked at"
		}},
		{"gpu-persistence", func(m *machine) {
			m.says = map[string]string{"nvidia-smi": "GPU-1, Enabled\nGPU-2, Disabled\n"}
		}},
		{"lock-without-run", func(m *machine) { m.agent.GPUs[0].LockedMem = 877 }},
		{"journal-left", func(m *machine) {
			m.down = epdapi.ErrUnreachable
			m.files["/var/lib/epplan/journal/GPU-1.json"] = "{}"
		}},
		{"spool-old", func(m *machine) {
			m.files["/var/lib/epplan/spool/1-a.entry"] = "x"
			m.old["/var/lib/epplan/spool/1-a.entry"] = now.Add(-time.Hour)
		}},
		{"spool-aside", func(m *machine) { m.files["/var/lib/epplan/spool/aside/1-a.entry"] = "x" }},
		{"spool-full", func(m *machine) {
			m.files["/var/lib/epplan/spool/1-a.entry"] = strings.Repeat("x", 57<<20)
		}},
		{"store-trouble", func(m *machine) { m.agent.Controller.Trouble = "disk full" }},
		{"store-moved", func(m *machine) {
			m.agent.Controller.Moved, m.agent.Controller.Trouble = true, "records.db was replaced"
		}},
		{"store-moved", func(m *machine) { delete(m.files, "/var/lib/epplan/records.db") }},
		{"store-lost", func(m *machine) { m.agent.Controller.Lost = 3 }},
		{"disk-low", func(m *machine) { m.free = 500 << 20 }},
		{"disk-full", func(m *machine) { m.free = 1 << 20 }},
		{"state-open", func(m *machine) { m.modes["/var/lib/epplan/journal"] = 0o777 }},
		{"state-owner", func(m *machine) { m.agent.Health.UID = 1000 }},
		{"state-refused", func(m *machine) {
			m.refused = &statedir.InsecureError{
				Path: "/var/lib", What: "has mode 0777", Mend: "chmod go-w /var/lib",
			}
		}},
		{"state-refused", func(m *machine) {
			m.down, m.refused = epdapi.ErrUnreachable, &statedir.InsecureError{
				Path: "/var/lib/epplan", What: "belongs to user 4711", Mend: "chown",
			}
		}},
		{"trouble", func(m *machine) {
			m.agent.Troubles = []epdapi.Problem{{At: now, Message: "evil\x1b[2J"}}
		}},
	}
}

// Slurm runs the last name of a folder first, and of several settings the first.
func TestWhatRunsBetweenAJobAndItsHooksIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		values []string // of the setting
		files  map[string]string
		want   string // finding
		told   string
	}{
		"only ours": {
			key: "Epilog", values: []string{"/e/*"}, files: map[string]string{"zzz-epplan": "epplan epilog"},
		},
		"ours first": {
			key: "Epilog", values: []string{"/e/*"}, files: map[string]string{
				"zzz-epplan": "epplan epilog", "90-site": "sleep 60",
			},
		},
		"not the last name": {
			key: "Epilog", values: []string{"/e/*"}, files: map[string]string{
				"10-epplan": "epplan epilog", "90-site": "sleep 60", "05-site": "true",
			},
			want: "epilog-not-first", told: "in Epilog /e/90-site runs before epplan's 10-epplan",
		},
		"two of the site's": {
			key: "Epilog", values: []string{"/e/*"}, files: map[string]string{
				"50-epplan": "epplan epilog", "90-site": "sleep 60", "95-site": "true",
			},
			want: "epilog-not-first", told: "in Epilog /e/95-site,/e/90-site runs before",
		},
		"a setting before ours": {
			key: "Epilog", values: []string{"/e/90-site", "/e/zzz-epplan"},
			files: map[string]string{"zzz-epplan": "epplan epilog", "90-site": "sleep 60"},
			want:  "epilog-not-first", told: "/e/90-site runs before",
		},
		"settings after ours": {
			key: "Epilog", values: []string{
				"/e/10-ours", "/e/2", "/e/3", "/e/4", "/e/5", "/e/6", "/e/7", "/e/8", "/e/9", "/e/a", "/e/b",
			},
			files: map[string]string{
				"10-ours": "epplan epilog", "2": "", "3": "", "4": "", "5": "", "6": "", "7": "", "8": "",
				"9": "", "a": "", "b": "",
			},
		},
		"one script that calls ours": {
			key: "Epilog", values: []string{"/e/site"},
			files: map[string]string{"site": "sleep 60\nepplan epilog\n"},
		},
		"a Prolog of ours last": {
			key: "Prolog", values: []string{"/e/*"}, files: map[string]string{
				"10-epplan": "epplan prolog", "90-site": "sleep 60",
			},
		},
		"a Prolog of ours first": {
			key: "Prolog", values: []string{"/e/*"}, files: map[string]string{
				"10-epplan": "epplan prolog", "05-site": "sleep 60",
			},
			want: "prolog-not-last", told: "in Prolog /e/05-site runs after epplan's 10-epplan",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := healthy()
			delete(m.conf, c.key)
			for i, value := range c.values {
				m.conf[fmt.Sprintf("%s[%d]", c.key, i)] = value
			}
			for file, text := range c.files {
				m.files["/e/"+file] = text
			}
			r := m.examine(t, doctor.Both)
			for _, f := range r.Findings {
				if f.Check == strings.ToLower(c.key) &&
					(f.ID != c.want || !strings.Contains(f.What, c.told)) {
					t.Errorf("%q %s, want %q %s", f.ID, f.What, c.want, c.told)
				}
			}
		})
	}
}

// Whoever asks after epd died has nobody to say where the journal is but the Epilog.
func TestTheJournalOfADeadEPDIsWhereTheEpilogLooks(t *testing.T) {
	m := healthy()
	m.down = epdapi.ErrUnreachable
	m.files["/etc/slurm/epilog.d/ours"] = "/usr/bin/epplan epilog --journal /srv/epd/journal </dev/null"
	m.files["/srv/epd/agent.lock"], m.files["/srv/epd/journal"], m.files["/srv/epd/journal/GPU-1.json"] = "",
		"", "{}"
	for _, f := range m.examine(t, doctor.Both).Findings {
		if f.Check != "journal" {
			continue
		}
		if f.ID != "journal-left" || f.Fix == nil ||
			!strings.Contains(f.Fix.Run, "--journal /srv/epd/journal") {
			t.Errorf("%+v", f)
		}
		return
	}
	t.Error("the journal isn't looked at")
}

// Jobs that have gone, and those that a user changed since, have nothing of epd's any more.
func TestLeversThatSlurmKnowsNothingOfAreNotLeft(t *testing.T) {
	m := healthy()
	m.down = epdapi.ErrUnreachable
	m.files["/var/lib/epplan/levers/levers.json"] = `{"schema":1,"entries":[` +
		`{"lever":"nice","job":7,"before":"0","after":"126","phase":"in_force","at":"2026-11-21T11:00:00Z"},` +
		`{"lever":"nice","job":8,"before":"0","after":"126","phase":"in_force","at":"2026-11-21T11:00:00Z"}]}`
	m.jobs = `{"job_id":7,"job_state":["PENDING"],"priority":100,"nice":5}`
	r := doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both}, only("levers"))
	if r.Count(doctor.OK) != 1 || len(r.Findings) != 1 {
		t.Errorf("%+v", r.Findings)
	}
}

// Where somebody names another folder than epd's, no record was moved.
func TestRecordsThatAreMissingInAnotherFolderThanEPDsWereNotMoved(t *testing.T) {
	m := healthy()
	m.agent.Health.State = "/srv/epd"
	delete(m.files, "/var/lib/epplan/records.db")
	o := doctor.Options{Role: doctor.Both, Version: "v1", Timeout: time.Second, State: "/var/lib/epplan"}
	for _, f := range doctor.Examine(t.Context(), m.site(), o, doctor.Checks()).Findings {
		if f.ID == "store-moved" {
			t.Errorf("%+v", f)
		}
	}
}

func TestAControllerMayHaveAnAddressOfIPv6(t *testing.T) {
	for address, want := range map[string]string{
		"[::1]:8090": "ssh ::1 systemctl status epd-controller    # and the firewall between: " +
			"nc -vz ::1 8090",
		"head:6821": "ssh head systemctl status epd-controller    # and the firewall between: " +
			"nc -vz head 6821",
		"head": "ssh head systemctl status epd-controller    # and the firewall between: nc -vz head ",
		"[fe80::1]": "ssh fe80::1 systemctl status epd-controller    # and the firewall between: " +
			"nc -vz fe80::1 ",
	} {
		m := healthy()
		m.agent.Role, m.agent.Health.Controllers, m.remote = "agent", []string{address}, epdapi.ErrUnreachable
		r := m.examine(t, doctor.Node)
		i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool {
			return f.ID == "controller-unreachable"
		})
		if i < 0 {
			t.Fatalf("%s: found %v", address, ids(r, doctor.Bad, doctor.Warn))
		}
		if f := r.Findings[i]; f.Fix.Run != want || !strings.Contains(f.What, " "+address+":") {
			t.Errorf("%s: %q, %q, want %q", address, f.What, f.Fix.Run, want)
		}
	}
}

func TestEachFaultIsFoundAndTold(t *testing.T) {
	for _, c := range slices.Concat(brokenSlurm(), brokenEPD()) {
		t.Run(c.want, func(t *testing.T) {
			m := healthy()
			c.hurt(m)
			r := m.examine(t, doctor.Both)
			i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool { return f.ID == c.want })
			if i < 0 {
				t.Fatalf("found %v", ids(r, doctor.Bad, doctor.Warn))
			}
			f := r.Findings[i]
			if all := f.What + f.Why + f.Fix.String(); f.What == "" || f.Why == "" || f.Fix.String() == "" ||
				strings.ContainsAny(all, "{}\x1b") {
				t.Errorf("it says %+v, %v", f, f.Fix)
			}
			for j := range r.Findings {
				if r.Findings[j].Grade == doctor.OK && r.Findings[j].Check == f.Check {
					t.Errorf("and yet all is well: %+v", r.Findings[j])
				}
			}
		})
	}
}

func TestProgramsThatFailAreFaultsOfWhatTheyLookAt(t *testing.T) {
	for want, program := range map[string]string{
		"submit-script-broken": "luac5.1", "store-damaged": "epd",
		"lua-socket": "lua5.1",
	} {
		m := healthy()
		m.runs[program] = exits(t)
		if program == "epd" { // without a word on damage it can't be told
			m.says = map[string]string{program: "row 7 is missing from an index\n"}
		}
		if got := ids(m.examine(t, doctor.Both), doctor.Bad); !slices.Equal(got, []string{want}) {
			t.Errorf("%s fails: found %v, want %s", program, got, want)
		}
		m = healthy() // and where it isn't installed, nothing is said to be well
		m.runs[program] = exec.ErrNotFound
		for _, one := range luacs {
			m.runs[one] = exec.ErrNotFound
		}
		if r := m.examine(t, doctor.Both); len(ids(r, doctor.Bad)) > 0 || r.Count(doctor.Unknown) == 0 {
			t.Errorf("without %s: %+v", program, r.Findings)
		}
	}
}

var luacs = []string{"luac5.1", "luac", "luac5.4", "luac5.3"}

func TestUnitsThatFailOrAreMissingAreTold(t *testing.T) {
	for said, want := range map[string]string{
		"LoadState=loaded\nActiveState=failed\n":                         "unit-failed",
		"LoadState=loaded\nActiveState=active\nUnitFileState=disabled\n": "unit-disabled",
		"LoadState=not-found\n":                                          "unit-missing",
	} {
		site := healthy().site()
		site.Run = func(context.Context, string, ...string) (string, error) { return said, nil }
		r := doctor.Examine(t.Context(), site, doctor.Options{Role: doctor.Both}, only("units"))
		if got := ids(r, doctor.Bad, doctor.Warn); !slices.Contains(got, want) {
			t.Errorf("%q: found %v, want %s", said, got, want)
		}
	}
}

func only(name string) []doctor.Check {
	return slices.DeleteFunc(doctor.Checks(), func(c doctor.Check) bool { return c.Name != name })
}

func TestWithoutSlurmItsChecksCantTell(t *testing.T) {
	m := healthy()
	site := m.site()
	site.Slurm = nil
	delete(m.files, "/etc/slurm/slurm.conf")
	for _, c := range doctor.Checks() {
		r := doctor.Examine(t.Context(), site, doctor.Options{Role: doctor.Both}, []doctor.Check{c})
		for _, f := range r.Findings {
			if slices.Contains([]string{
				"slurmctld", "nodes", "job-submit", "submit-script", "prolog", "gres",
				"accounting",
			}, c.Name) && f.Grade == doctor.OK {
				t.Errorf("%+v", f)
			}
		}
	}
	if got := ids(doctor.Examine(t.Context(), site, doctor.Options{}, only("slurm-version")),
		doctor.Bad); !slices.Equal(got, []string{"slurm-missing"}) {
		t.Errorf("found %v", got)
	}
}

func TestWhereAnEpdThatDoesntAnswerWouldAnswerIsntMadeUp(t *testing.T) {
	m := healthy()
	m.files["/etc/slurm/epplan.lua"] = "local SOCKET    = \"/elsewhere\"\n"
	m.down = epdapi.ErrUnreachable
	for socket, want := range map[string]doctor.Grade{"": doctor.Unknown, "/another": doctor.Bad} {
		r := doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both, PublicSocket: socket},
			only("submit-socket"))
		if r.Count(want) != 1 || len(r.Findings) != 1 {
			t.Errorf("with --submit-socket %q: %+v, want one that is %s", socket, r.Findings, want)
		}
	}
}

func TestACommandThatHangsIsNamedAndHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := healthy()
		m.hangs = "scontrol ping"
		begin := time.Now()
		r := doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both}, only("slurmctld"))
		if got := ids(r, doctor.Bad); !slices.Equal(got, []string{"slurmctld-hung"}) ||
			time.Since(begin) > 10*time.Second {
			t.Errorf("found %v after %v", got, time.Since(begin))
		}
		m.hangs = "scontrol show config" // the settings are slurm.conf's then
		r = doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both}, only("prolog"))
		if got := ids(r, doctor.Bad); !slices.Equal(got, []string{"hook-unset"}) {
			t.Errorf("found %v", got)
		}
		deaf := []doctor.Check{{Name: "deaf", On: doctor.Both, Look: doctor.Deaf}}
		begin = time.Now()
		r = doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both, Timeout: 2 * time.Second},
			deaf)
		if r.Count(doctor.Unknown) != 1 || time.Since(begin) != 2*time.Second {
			t.Errorf("%+v after %v", r.Findings, time.Since(begin))
		}
		time.Sleep(time.Hour) //nolint:forbidigo // of the bubble: the deaf one ends
	})
}

func TestASlurmThatIsTooSlowForEPDIsNamedByWhatItIsSlowAt(t *testing.T) {
	one := func(line string) bool { return strings.Contains(line, "--jobs=") }
	for name, tc := range map[string]struct {
		slow func(line string, time int) bool
		want []string
		took time.Duration
	}{
		"a long queue": {func(line string, _ int) bool {
			return !one(line)
		}, []string{"queue-slow"}, 8 * time.Second},
		"one job": {func(line string, _ int) bool {
			return one(line)
		}, []string{"job-slow"}, 1500 * time.Millisecond},
		"both": {func(string, int) bool {
			return true
		}, []string{"queue-slow", "job-slow"}, 9500 * time.Millisecond},
		"a moment": {func(line string, times int) bool {
			return one(line) && times <= 2
		}, nil, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, site := healthy(), healthy().site()
			times := make(map[string]int)
			site.Slurm = slurm.RunnerFunc(func(ctx context.Context, command string, args ...string) ([]byte, error) {
				line := strings.Join(args, " ")
				times[line]++
				if command == "squeue" && tc.slow(line, times[line]) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return m.Run(ctx, command, args...)
			})
			begin := time.Now()
			r := doctor.Examine(t.Context(), site, doctor.Options{Role: doctor.Head}, only("slurm-speed"))
			got := ids(r, doctor.Bad, doctor.Warn)
			if !slices.Equal(got, tc.want) || r.Count(doctor.OK) != 1 && len(got) == 0 ||
				time.Since(begin) != tc.took {
				t.Errorf("%s: found %v after %v", name, r.Findings, time.Since(begin))
			}
			for i := range r.Findings {
				if f := &r.Findings[i]; f.Fix != nil &&
					strings.ContainsAny(f.What+f.Why+f.Fix.String(), "{}") {
					t.Errorf("it says %+v, %v", f, f.Fix)
				}
			}
		})
	}
}

// Nothing but questions is put to Slurm and the system.
func TestADoctorOnlyLooks(t *testing.T) {
	m := healthy()
	m.examine(t, doctor.Both)
	allowed := regexp.MustCompile(
		`^(scontrol (--version|ping|show (config|node -d))|squeue --json --all --states=all( --jobs=7)?|luac5\.1 -p \S+|lua5\.1 -e require "socket\.unix"|epd db check --state \S+|systemctl show --property=\S+ \S+|nvidia-smi --query-gpu=uuid,persistence_mode --format=csv,noheader)$`,
	)
	for _, line := range m.asked {
		if !allowed.MatchString(line) {
			t.Errorf("it ran %s", line)
		}
	}
	if len(m.asked) < 10 {
		t.Errorf("only %q were asked", m.asked)
	}
}

const page = "../../docs/doctor.md"

func TestThePageListsEveryCheckAndEveryFinding(t *testing.T) {
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	var table strings.Builder
	table.WriteString("\n| finding | what is wrong | fix |\n|---|---|---|\n")
	seen := make(map[string]*doctor.Fault)
	for _, c := range doctor.Checks() {
		fmt.Fprintf(&table, "| **%s** (%s) | %s | |\n", c.Name, c.On, cell(c.What))
		for _, f := range c.Faults {
			if before := seen[f.ID]; before != nil && before != f {
				t.Errorf("two faults are called %s", f.ID)
			}
			if seen[f.ID] == nil {
				fmt.Fprintf(&table, "| `%s` (%s) | %s | `%s` |\n", f.ID, f.Grade, cell(f.What), cell(f.Fix.String()))
			}
			seen[f.ID] = f
		}
	}
	block := regexp.MustCompile(`(?s)(<!-- findings of epplan doctor -->\n).*?(<!-- end of findings -->)`)
	if !block.Match(old) {
		t.Fatal("docs/doctor.md has no place for findings")
	}
	text := block.ReplaceAllStringFunc(string(old), func(b string) string {
		part := block.FindStringSubmatch(b)
		return part[1] + table.String() + "\n" + part[2]
	})
	switch {
	case text == string(old):
	case *update:
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/doctor.md is out of date: go test ./internal/doctor -update rewrites its table")
	}
}

// faults returns what a check says against a machine.
func (m *machine) faults(t *testing.T, check string) []string {
	t.Helper()
	var said []string
	r := doctor.Examine(t.Context(), m.site(), doctor.Options{Role: doctor.Both}, only(check))
	for _, f := range r.Findings {
		if f.Grade == doctor.Bad || f.Grade == doctor.Warn {
			said = append(said, f.ID+": "+f.What)
		}
	}
	return said
}

// From 25.05 on each hook has its own timeout, and scontrol shows that of both only where neither is set.
func TestEachHooksTimeoutIsTheOneThatCounts(t *testing.T) {
	for _, c := range []struct {
		both, prolog, epilog string
		want                 []string // what is said
	}{
		{both: "2", want: []string{"PrologEpilogTimeout is 2 s"}},
		{both: "2", prolog: "30", epilog: "30"},
		{both: "2", prolog: "30", want: []string{"PrologEpilogTimeout is 2 s"}},
		{both: "30", prolog: "3", epilog: "4", want: []string{"PrologTimeout is 3 s", "EpilogTimeout is 4 s"}},
		{both: "65534", prolog: "65534", epilog: "3", want: []string{"EpilogTimeout is 3 s"}},
	} {
		m := healthy()
		m.conf["PrologEpilogTimeout"], m.conf["PrologTimeout"], m.conf["EpilogTimeout"] = c.both, c.prolog, c.epilog
		var want []string
		for _, key := range c.want {
			want = append(want, "hook-timeout: "+key)
		}
		if said := m.faults(t, "hook-timeouts"); !slices.Equal(said, want) {
			t.Errorf("%+v: %q", c, said)
		}
	}
}

func TestPrologsThatRunInTheJobRunAtTheAllocation(t *testing.T) {
	m := healthy()
	m.conf["PrologFlags"] = "RunInJob"
	if said := m.faults(t, "prolog-flags"); len(said) > 0 {
		t.Errorf("%q", said)
	}
}

// From 23.11 on Prologs stand on several lines, and run in their order.
func TestEachLineOfAPrologCounts(t *testing.T) {
	lines := func(first, second string) *machine {
		m := healthy()
		delete(m.conf, "Prolog")
		m.conf["Prolog[0]"], m.conf["Prolog[1]"] = first, second
		m.files["/srv/site"] = "sleep 60"
		return m
	}
	if said := lines("/srv/site", "/etc/slurm/prolog.d/*").faults(t, "prolog"); len(said) > 0 {
		t.Errorf("ours comes last, and: %q", said)
	}
	said := lines("/etc/slurm/prolog.d/*", "/srv/site").faults(t, "prolog")
	if len(said) != 1 || !strings.HasPrefix(said[0], "prolog-not-last") {
		t.Errorf("ours comes first, and: %q", said)
	}
	// The same by the file, where slurmctld doesn't answer.
	for version, want := range map[string]int{"slurm-wlm 26.05.5": 1, "slurm-wlm 22.05.8": 0} {
		m := healthy()
		m.version, m.munge = version, errors.New("down")
		m.files["/srv/site"] = "sleep 60"
		m.files["/etc/slurm/slurm.conf"] = "ClusterName=c\nPrologFlags=Alloc\nJobSubmitPlugins=lua\nGresTypes=gpu\n" +
			"Prolog=/srv/site\nProlog=/etc/slurm/prolog.d/*\nEpilog=/srv/site\nEpilog=/etc/slurm/epilog.d/*\n"
		if said := m.faults(t, "epilog"); len(said) != want {
			t.Errorf("%s: %q", version, said)
		}
	}
}

// From 23.11 on slurmctld sends hooks that are named without a path; slurmd keeps them beside its slurm.conf.
func TestHooksThatSlurmSentAreLookedAtWhereSlurmdKeepsThem(t *testing.T) {
	for _, dir := range []string{"/run/slurm/conf/", "/etc/slurm/"} {
		m := healthy()
		m.conf["Prolog"] = "epplan-prolog"
		if said := m.faults(t, "prolog"); len(said) != 1 || !strings.HasPrefix(said[0], "hook-no-match") {
			t.Errorf("it is nowhere, and: %q", said)
		}
		m.files[dir+"epplan-prolog"] = m.files["/etc/slurm/prolog.d/ours"]
		if said := m.faults(t, "prolog"); len(said) > 0 {
			t.Errorf("in %s: %q", dir, said)
		}
	}
}

func TestASlurmOf2605SwitchesNodesOffWithoutASuspendTime(t *testing.T) {
	for version, want := range map[string]int{"slurm-wlm 25.11.2": 1, "slurm-wlm 26.05.5": 0} {
		m := healthy()
		m.version, m.conf["SuspendTime"] = version, "INFINITE"
		if said := m.faults(t, "power-saving"); len(said) != want {
			t.Errorf("%s: %q", version, said)
		}
	}
}

// Where Slurm has a key of its own, and epd keys, nobody misses munge.
func TestWithoutMungeTheRestIsLookedAtAllTheSame(t *testing.T) {
	m := healthy()
	m.munge = munge.ErrUnavailable
	m.files["/etc/slurm/slurm.conf"] = "ClusterName=c\nAuthType=auth/slurm\n"
	m.agent.Role, m.agent.Health.Controllers = "agent", []string{"head:6821"}
	m.agent.Health.Key = nodekey.DefaultKey
	for _, check := range []string{"munge", "slurmctld", "nodes", "prolog", "controller-link"} {
		if said := m.faults(t, check); len(said) > 0 {
			t.Errorf("%s: %q", check, said)
		}
	}
	m.agent.Health.Key = "" // epd's agent asks munge still
	if said := m.faults(t, "munge"); len(said) != 1 || !strings.HasPrefix(said[0], "munge-down") {
		t.Errorf("epd needs it, and: %q", said)
	}
}
