package livetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"github.com/epplan/epplan/internal/doctor"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// doctorConf has the queue ordered by priorities that a site might have.
var doctorConf = []string{"PriorityType=priority/multifactor", "PriorityWeightPartition=100000"}

// patient is a lab that epplan doctor is called to: to the machine of n1, which
// is head and node.
type patient struct {
	*lab
	bin string // a folder that comes first in the PATH
}

// etc returns a file of Slurm's.
func (p *patient) etc(name string) string { return filepath.Join(p.dir, "slurm/etc", name) }

// environment returns what epplan and typed commands see.
func (p *patient) environment() []string {
	path := p.bin + ":" + p.lab.bin + ":" + os.Getenv("PATH")
	return append(os.Environ(), "SLURM_CONF="+p.conf, "PATH="+path, "EPD_STATE="+filepath.Join(p.dir, "n1"),
		"EPD_GPU="+p.gpu)
}

// doctor is epplan doctor with arguments.
func (p *patient) doctor(args []string) *exec.Cmd {
	all := slurmlab.Preferred(append([]string{filepath.Join(p.lab.bin, "epplan"), "doctor"}, args...)...)
	cmd := exec.CommandContext(p.Context(), all[0], all[1:]...)
	cmd.Env = p.environment()
	return cmd
}

// look runs epplan doctor with further arguments.
func (p *patient) look(args ...string) []doctor.Finding {
	p.Helper()
	args = append([]string{
		"--json", "--role", "both", "--agent-socket", p.socket("n1"), "--submit-socket",
		filepath.Join(p.dir, "submit.sock"),
		"--state", filepath.Join(p.dir, "n1"), "--config", filepath.Join(p.dir, "config.toml"),
	}, args...)
	cmd := p.doctor(args)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	began := time.Now()
	out, err := cmd.Output()
	if took := time.Since(began); took > 25*time.Second {
		p.Errorf("epplan doctor took %v", took)
	}
	var report doctor.Report
	if wrong := json.Unmarshal(out, &report); wrong != nil {
		p.Fatalf("%v: %s\n%s", wrong, out, &complaint)
	}
	var exit *exec.ExitError
	if bad := report.Count(doctor.Bad) > 0; bad != errors.As(err, &exit) || bad && exit.ExitCode() != 1 {
		p.Errorf("%d bad findings, and it ends with %v", report.Count(doctor.Bad), err)
	}
	return report.Findings
}

// ids returns the findings of a grade, each once, in order.
func ids(all []doctor.Finding, g doctor.Grade) []string {
	var found []string
	for i := range all {
		if all[i].Grade == g && !slices.Contains(found, all[i].ID) {
			found = append(found, all[i].ID)
		}
	}
	slices.Sort(found)
	return found
}

// mend does what fixes of a finding say: lines go into files, commands are typed.
func (p *patient) mend(all []doctor.Finding, id string) {
	p.Helper()
	for i := range all {
		if all[i].ID != id {
			continue
		}
		fix := all[i].Fix
		if fix.Line != "" {
			p.putLine(fix.File, fix.Line)
		}
		if fix.Run == "" {
			continue
		}
		cmd := exec.CommandContext(p.Context(), "sh", "-c", fix.Run)
		cmd.Env = p.environment()
		if out, err := cmd.CombinedOutput(); err != nil {
			p.Errorf("%s: %v\n%s", fix.Run, err, out)
		}
	}
}

// putLine puts a setting into a file, in place of one of the same name.
func (p *patient) putLine(file, line string) {
	p.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	key, _, _ := strings.Cut(line, "=")
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(l string) bool {
		return strings.HasPrefix(l, key+"=")
	})
	p.replace(file, strings.Join(append(lines, line), "\n")+"\n", 0o644)
}

// dropLine takes a setting out of slurm.conf.
func (p *patient) dropLine(key string) {
	p.Helper()
	text, err := os.ReadFile(p.conf)
	if err != nil {
		p.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool {
		return strings.HasPrefix(l, key+"=")
	})
	p.replace(p.conf, strings.Join(lines, "\n"), 0o644)
}

// replace writes a file at once: Slurm may be reading it anew.
func (p *patient) replace(file, text string, mode os.FileMode) {
	p.Helper()
	if mode&0o111 != 0 {
		p.writeProgram(file, strings.NewReader(text), mode)
		return
	}
	if err := renameio.WriteFile(file, []byte(text), mode, renameio.WithStaticPermissions(mode)); err != nil {
		p.Fatal(err)
	}
}

// reconfigure puts lines into slurm.conf and has Slurm read it.
func (p *patient) reconfigure(lines ...string) {
	p.Helper()
	for _, line := range lines {
		p.putLine(p.conf, line)
	}
	p.slurm("scontrol", "reconfigure")
}

// stop signals a process that the lab keeps the number of.
func (p *patient) signalPID(name string, sig syscall.Signal) {
	p.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(p.read("slurm/run/" + name + ".pid")))
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *patient) move(from, to string) {
	p.Helper()
	if err := os.Rename(from, to); err != nil {
		p.Fatal(err)
	}
}

// kept keeps a file as it is, and puts it back.
func (p *patient) kept(file string) (back func()) {
	p.Helper()
	info, err := os.Stat(file)
	if err != nil {
		p.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	return func() { p.replace(file, string(text), info.Mode().Perm()) }
}

// ailment is a way in which a lab is broken.
type ailment struct {
	name  string
	want  string       // the finding, and no other that is bad
	grade doctor.Grade // of it, Bad where it isn't said
	args  []string     // further ones of epplan doctor
	// hurt breaks the lab. What it returns mends it where the fix can't be typed
	// in a lab (it has no systemd, for one); nil: the fix is typed.
	hurt func(*patient) (back func())
}

func TestTheDoctorNamesWhatIsBrokenAndHowItIsMended(t *testing.T) {
	p := &patient{lab: newLab(t, setup{config: enforce, conf: doctorConf}), bin: t.TempDir()}
	p.healthy("before")
	for _, a := range slices.Concat(slurmAilments(), fileAilments(), epdAilments(), nodeAilments()) {
		t.Run(a.name, func(t *testing.T) {
			p := &patient{lab: p.on(t), bin: p.bin}
			grade := a.grade
			if grade == "" {
				grade = doctor.Bad
			}
			back := a.hurt(p)
			found := p.look(a.args...)
			if got := ids(found, grade); grade == doctor.Bad && !slices.Equal(got, []string{a.want}) ||
				!slices.Contains(got, a.want) {
				p.Errorf("found %v, want %s\n%+v", got, a.want, found)
			}
			if back != nil {
				back()
			} else {
				p.mend(found, a.want)
			}
			if got := ids(p.look(), grade); slices.Contains(got, a.want) {
				p.Errorf("mended as it says, and %s is still there", a.want)
			}
			p.healthy("after")
		})
	}
	t.Run("a clock that is ten minutes off", func(t *testing.T) {
		p := &patient{lab: p.on(t), bin: p.bin}
		found := p.look("--controller", slowClock(t))
		if got := ids(found, doctor.Bad); !slices.Equal(got, []string{"clock-skew-large"}) {
			p.Errorf("found %v", got)
		}
		for i := range found {
			if f := &found[i]; f.ID == "clock-skew-large" &&
				(!strings.Contains(f.What, "ahead of that of 127.0.0.1") || f.Fix == nil) {
				p.Errorf("it says %+v", f)
			}
		}
	})
}

// healthy checks that nothing is bad.
func (p *patient) healthy(when string) {
	p.Helper()
	p.eventually("nothing is bad "+when, func() bool { return len(ids(p.look(), doctor.Bad)) == 0 })
}

// slow has something run before the doctor's squeue.
func (p *patient) slow(before string) (back func()) {
	own := p.bin
	p.bin = p.wrap(before)
	return func() { p.bin = own }
}

func slurmAilments() []ailment {
	return []ailment{
		{name: "no munged", want: "munge-down", hurt: func(p *patient) func() {
			socket := filepath.Join(p.dir, "slurm/munge/socket")
			p.move(socket, socket+".away")
			return func() { p.move(socket+".away", socket) }
		}},
		{name: "a munged that hangs", want: "munge-hung", hurt: func(p *patient) func() {
			p.signalPID("munged", syscall.SIGSTOP)
			return func() { p.signalPID("munged", syscall.SIGCONT) }
		}},
		{name: "a slurmctld that hangs", want: "slurmctld-hung", hurt: func(p *patient) func() {
			p.signalPID("slurmctld", syscall.SIGSTOP)
			return func() { p.signalPID("slurmctld", syscall.SIGCONT) }
		}},
		{name: "an old Slurm", want: "slurm-old", hurt: func(p *patient) func() {
			stub := filepath.Join(p.bin, "scontrol")
			p.replace(stub, "#!/bin/sh\n[ \"$1\" = --version ] && echo slurm 20.11.4 && exit\n"+
				"exec /usr/bin/scontrol \"$@\"\n", 0o755)
			return func() { _ = os.Remove(stub) }
		}},
		{
			name: "a queue that takes long to list", want: "queue-slow", grade: doctor.Warn,
			hurt: func(p *patient) func() {
				return p.slow(`case "$*" in *--jobs=*) ;; *) exec sleep 30 ;; esac`)
			},
		},
		{name: "a Slurm that is slow to tell of a job", want: "job-slow", hurt: func(p *patient) func() {
			p.slurm("scancel", name(p.submit("true", "-H"))) // there must be one
			return p.slow(`case "$*" in *--jobs=*) exec sleep 5 ;; esac`)
		}},
		{name: "a drained node", want: "node-drained", hurt: func(p *patient) func() {
			p.slurm("scontrol", "update", "nodename=n2", "state=drain", "reason=Prolog error")
			return nil
		}},
		{name: "no PrologFlags", want: "prolog-flags", grade: doctor.Warn, hurt: func(p *patient) func() {
			p.dropLine("PrologFlags")
			p.reconfigure()
			return nil
		}},
		{name: "hooks without time", want: "hook-timeout", hurt: func(p *patient) func() {
			p.reconfigure("PrologEpilogTimeout=2")
			return nil
		}},
		{name: "priorities that are all the same", want: "priority-flat", hurt: func(p *patient) func() {
			p.reconfigure("PriorityWeightPartition=0")
			return nil
		}},
		{name: "priorities that leave no room", want: "priority-low", hurt: func(p *patient) func() {
			p.reconfigure("PriorityWeightAge=1000", "PriorityWeightPartition=0")
			p.Cleanup(func() { // by the fix a new job has a priority from which nice can take
				job := p.submit("true", "-H")
				p.slurm("scontrol", "update", "jobid="+name(job), "StartTime=now+1hour")
				p.slurm("scontrol", "release", name(job))
				defer p.slurm("scancel", name(job))
				priority, err := strconv.Atoi(p.slurm("squeue", "-h", "-o", "%Q", "-j", name(job)))
				if err != nil || priority < 1000 {
					p.Errorf("mended as it says, and a new job has priority %d (%v)", priority, err)
				}
			})
			return nil
		}},
		{name: "no SuspendProgram", want: "power-saving", hurt: func(p *patient) func() {
			p.write("config.toml", enforce+"sleep_after_s = 600\n", 0o644)
			p.signal("n1", syscall.SIGHUP)
			return nil
		}},
		{
			name: "nodes that need not sleep again", want: "config-stale", grade: doctor.Warn,
			hurt: func(p *patient) func() {
				p.write("config.toml", enforce, 0o644)
				return nil
			},
		},
	}
}

func fileAilments() []ailment {
	return []ailment{
		{name: "no job_submit.lua", want: "submit-script-missing", hurt: func(p *patient) func() {
			p.move(p.etc("job_submit.lua"), p.etc("job_submit.away"))
			return nil
		}},
		{
			name: "a job_submit.lua of somebody else's", want: "submit-script-foreign",
			hurt: func(p *patient) func() {
				p.replace(p.etc("job_submit.lua"),
					"function slurm_job_submit(desc, parts, uid)\n\treturn slurm.SUCCESS\nend\n"+
						"function slurm_job_modify(desc, job, parts, uid)\n\treturn slurm.SUCCESS\nend\n"+
						"return slurm.SUCCESS\n", 0o755)
				return nil
			},
		},
		{
			name: "a job_submit.lua that doesn't load", want: "submit-script-broken",
			hurt: func(p *patient) func() {
				back := p.kept(p.etc("job_submit.lua"))
				p.replace(p.etc("job_submit.lua"), "function slurm_job_submit(\n", 0o755)
				return back
			},
		},
		{name: "no epplan.lua", want: "submit-module-missing", hurt: func(p *patient) func() {
			if err := os.Remove(p.etc("epplan.lua")); err != nil {
				p.Fatal(err)
			}
			return nil
		}},
		{name: "a Prolog that can't be run", want: "hook-not-executable", hurt: func(p *patient) func() {
			if err := os.Chmod(p.etc("prolog.sh"), 0o644); err != nil {
				p.Fatal(err)
			}
			return nil
		}},
		{name: "a Prolog that names no file", want: "hook-no-match", hurt: func(p *patient) func() {
			p.Cleanup(func() { p.reconfigure("Prolog=" + p.etc("prolog.sh")) })
			p.reconfigure("Prolog=" + p.etc("nothing.d/*"))
			return nil
		}},
		{name: "no Epilog", want: "hook-foreign", hurt: func(p *patient) func() {
			p.reconfigure("Epilog=/bin/true")
			return func() { p.reconfigure("Epilog=" + p.etc("epilog.sh")) }
		}},
		{
			name: "a configuration with a key that there isn't", want: "config-wrong",
			hurt: func(p *patient) func() {
				p.write("config.toml", "[live]\nmod = \"enforce\"\n", 0o644)
				return func() { p.write("config.toml", enforce, 0o644) }
			},
		},
	}
}

func epdAilments() []ailment {
	return []ailment{
		{name: "a socket that is gone", want: "socket-missing", hurt: func(p *patient) func() {
			if err := os.Remove(p.socket("n1")); err != nil {
				p.Fatal(err)
			}
			return func() {
				p.stopEPD("n1", syscall.SIGTERM)
				p.startEPD("n1")
			}
		}},
		{name: "a socket that is open", want: "socket-open", hurt: func(p *patient) func() {
			if err := os.Chmod(p.socket("n1"), 0o666); err != nil {
				p.Fatal(err)
			}
			return nil
		}},
		{name: "a socket that is closed", want: "socket-closed", hurt: func(p *patient) func() {
			if err := os.Chmod(filepath.Join(p.dir, "submit.sock"), 0o600); err != nil {
				p.Fatal(err)
			}
			return nil
		}},
		{name: "no epd", want: "epd-down", hurt: func(p *patient) func() {
			p.stopEPD("n1", syscall.SIGTERM)
			return func() { p.startEPD("n1") }
		}},
		{name: "an epd that hangs", want: "epd-hung", hurt: func(p *patient) func() {
			p.signal("n1", syscall.SIGSTOP)
			return func() { p.signal("n1", syscall.SIGCONT) }
		}},
		{name: "a state folder that is open", want: "state-open", hurt: func(p *patient) func() {
			if err := os.Chmod(filepath.Join(p.dir, "n1"), 0o755); err != nil {
				p.Fatal(err)
			}
			return nil
		}},
		{name: "records that are replaced", want: "store-moved", hurt: func(p *patient) func() {
			p.putBack("n1", p.backup("n1"))
			p.eventually("epd has looked", func() bool { return p.status("n1").Controller.Trouble != "" })
			return func() {
				p.stopEPD("n1", syscall.SIGTERM)
				p.startEPD("n1")
			}
		}},
		{name: "records that are damaged", want: "store-damaged", hurt: func(p *patient) func() {
			p.stopEPD("n1", syscall.SIGTERM) // so that all of them are in the file
			p.startEPD("n1")
			f, err := os.OpenFile(filepath.Join(p.dir, "n1/records.db"), os.O_RDWR, 0)
			if err != nil {
				p.Fatal(err)
			}
			const page, pages = 4096, 6
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, pages*page), page)
			if err := errors.Join(err, f.Close()); err != nil {
				p.Fatal(err)
			}
			return func() {
				p.stopEPD("n1", syscall.SIGTERM)
				p.startEPD("n1")
			}
		}},
	}
}

func nodeAilments() []ailment {
	return []ailment{
		{name: "a lock that nobody needs", want: "lock-without-run", hurt: func(p *patient) func() {
			job := p.lock("n1", 1)
			entries, err := filepath.Glob(filepath.Join(p.dir, "n1/journal/*.json"))
			if err != nil || len(entries) != 1 {
				p.Fatalf("%v, %v: want one entry", entries, err)
			}
			left := p.kept(entries[0])
			p.completes(job)
			p.free("n1")
			left()
			return nil
		}},
		{name: "outcomes that wait", want: "spool-old", hurt: func(p *patient) func() {
			file := filepath.Join(p.dir, "n1/spool/00000000000000000001-r.entry")
			p.replace(file, "x", 0o600)
			old := time.Now().Add(-2 * time.Hour)
			if err := os.Chtimes(file, old, old); err != nil {
				p.Fatal(err)
			}
			return func() { _ = os.Remove(file) }
		}},
		{name: "a spool that is full", want: "spool-full", hurt: func(p *patient) func() {
			file := filepath.Join(p.dir, "n1/spool/00000000000000000001-r.entry")
			p.replace(file, "x", 0o600)
			if err := os.Truncate(file, 60<<20); err != nil {
				p.Fatal(err)
			}
			return func() { _ = os.Remove(file) }
		}},
		{name: "GPUs that are fewer than Slurm's", want: "gres-count", hurt: func(p *patient) func() {
			sim := filepath.Join(p.dir, "n1/sim")
			p.stopEPD("n1", syscall.SIGTERM)
			p.move(sim, sim+".away")
			p.startEPD("n1", "--gpu", "sim:2,busy")
			return func() {
				p.stopEPD("n1", syscall.SIGTERM)
				p.move(sim, sim+".two")
				p.move(sim+".away", sim)
				p.startEPD("n1")
			}
		}},
		{name: "a GPU that can't be locked", want: "gpu-permission", hurt: func(p *patient) func() {
			p.stopEPD("n1", syscall.SIGTERM)
			p.startEPD("n1", "--gpu-faults", "lock:permission")
			p.ends(p.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed), "COMPLETED")
			return func() {
				p.stopEPD("n1", syscall.SIGTERM)
				p.startEPD("n1")
			}
		}},
	}
}

// slowClock returns a controller whose clock is behind, and whom munge doesn't
// vouch for.
func slowClock(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
