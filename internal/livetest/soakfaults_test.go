package livetest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/epplan/epplan/gpu"
)

// soakFault is one of the faults of a soak: it begins, and what begin returns ends it. Jobs come and go
// meanwhile.
type soakFault struct {
	name  string
	begin func() (end func())
}

// window is a time; one without an end goes on.
type window struct{ from, to time.Time }

// away notes that nobody may be told of jobs on a node from now on, until what it returns is called.
func (s *soak) away(node string) (back func()) {
	i := len(s.missing[node])
	s.missing[node] = append(s.missing[node], window{from: time.Now()})
	return func() { s.missing[node][i].to = time.Now() }
}

// restart stops an epd, and what it returns starts it again.
func (s *soak) restart(name string, sig os.Signal, flags ...string) (end func()) {
	back := s.away(name)
	s.stopEPD(name, sig)
	return func() {
		s.startEPD(name, flags...)
		back()
	}
}

// hang has an epd stand still.
func (s *soak) hang(name string) (end func()) {
	back := s.away(name)
	s.signal(name, syscall.SIGSTOP)
	return func() {
		s.signal(name, syscall.SIGCONT)
		back()
	}
}

// driverFaults are those of a driver that an agent may be started with; what jobs do is the same with each.
var driverFaults = []string{
	"lock:permission", "lock:unsupported", "lock:transient", "lock:slow=2s", "unlock:transientx2",
	"unlock:slow=1s", "read:permission", "read:transient", "read:slow=2s", "0/read:reset@2",
	"0/read:reload@2", "clocks:transientx1", "0/*:permission", "0/*:transient", "*:slow=300ms", "0/lock:lost",
}

// driverFails starts an agent anew with a driver that has a fault.
func (s *soak) driverFails(node string) (end func()) {
	fault := driverFaults[s.random.IntN(len(driverFaults))]
	s.restart(node, syscall.SIGTERM, "--gpu-faults", fault)()
	return func() {
		start := s.restart(node, syscall.SIGTERM, "--gpu-faults", "")
		s.reboot(node, 0)
		start()
	}
}

// reboot brings a GPU back.
func (s *soak) reboot(node string, place int) {
	if err := s.sims(node)[place].Reboot(); err != nil {
		s.Error(err)
	}
}

// gpuFails has a GPU suffer a fault under an agent that goes on.
func (s *soak) gpuFails(node string) (end func()) {
	kinds := []gpu.FaultKind{gpu.FaultLost, gpu.FaultReset, gpu.FaultStuck, gpu.FaultReload, gpu.FaultForeign}
	kind, place := kinds[s.random.IntN(len(kinds))], s.random.IntN(s.gpus)
	if err := s.sims(node)[place].InjectFault(kind); err != nil {
		s.Error(err)
	}
	return func() { s.reboot(node, place) }
}

// slurmctldIsAway keeps everybody from asking slurmctld, which is stopped by a signal.
func (s *soak) slurmctldIsAway(sig syscall.Signal) (end func()) {
	s.closed = true
	pid := s.daemon("slurmctld")
	if sig == syscall.SIGSTOP {
		if err := syscall.Kill(pid, sig); err != nil {
			s.Error(err)
		}
	} else {
		s.stopDaemon("slurmctld", sig)
	}
	return func() {
		if sig != syscall.SIGSTOP {
			s.startDaemon("slurmctld")
		} else if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			s.Error(err)
		}
		s.eventually("slurmctld is back", s.pings)
		s.closed = false
		if sig != syscall.SIGSTOP {
			s.later = append(s.later, appointment{time.Now().Add(countsGPUsAnew), func() {
				_, _ = s.trySlurm("scontrol", "reconfigure")
			}})
		}
	}
}

// countsGPUsAnew is how long after its start slurmctld is configured anew: GPUs of jobs that were about to
// end when it began it takes to be in use for ever (22.05: GresUsed of idle nodes), and starts hardly any
// jobs.
const countsGPUsAnew = 10 * time.Second

// slurmdIsAway takes a node out of service, as its administrator does, and starts its slurmd again if what
// ran there ended meanwhile: one that is stopped while it starts a job leaves that job, and the node, as they
// are.
func (s *soak) slurmdIsAway(node string) (end func()) {
	s.setNode(node, "state=drain", "reason=soak")
	return func() {
		if jobs, err := s.trySlurm("squeue", "-h", "-w", node, "-o", "%A"); err == nil && jobs == "" {
			s.stopDaemon("slurmd."+node, syscall.SIGTERM)
			s.startDaemon("slurmd." + node)
		}
		s.setNode(node, "state=resume")
	}
}

// faultsOf returns the faults that may come; mortal: the controller may be killed, too. The agent of the
// first node lives throughout.
func (s *soak) faultsOf(mortal bool) []soakFault {
	anyone := func() string { return s.names[s.random.IntN(len(s.names))] }
	mortals := s.names[1:]
	other := func() string { return mortals[s.random.IntN(len(mortals))] }
	last := s.names[len(s.names)-1]
	all := []soakFault{
		{"agents killed", func() func() { return s.restart(other(), syscall.SIGKILL) }},
		{"agents stopped", func() func() { return s.restart(other(), syscall.SIGTERM) }},
		{"agents hung", func() func() { return s.hang(anyone()) }},
		{"drivers with faults", func() func() { return s.driverFails(other()) }},
		{"GPUs with faults", func() func() { return s.gpuFails(anyone()) }},
		{"GPUs with faults", func() func() { return s.gpuFails(s.names[0]) }},
		{"controllers hung", func() func() { return s.hang(controller) }},
		{"munged killed", func() func() {
			s.stopEPD(munge, syscall.SIGKILL)
			return s.startMunge
		}},
		{"slurmctld restarted", func() func() { return s.slurmctldIsAway(syscall.SIGTERM) }},
		{"slurmctld hung", func() func() { return s.slurmctldIsAway(syscall.SIGSTOP) }},
		{"nodes drained, slurmd restarted", func() func() { return s.slurmdIsAway(anyone()) }},
		{"nodes down", func() func() {
			node := other()
			s.takeDown(node)
			return func() { s.setNode(node, "state=resume") }
		}},
		{"disks full", func() func() {
			folder := []string{"journal", "runs", "spool"}[s.random.IntN(3)]
			back, free := s.away(last), s.fill(last, folder)
			return func() { free(); back() }
		}},
		{"reloads", func() func() { s.reread(); return func() {} }},
		{"levers taken back", func() func() { s.levers("--undo"); return s.reread }},
		{"slurm reconfigured", func() func() { s.slurm("scontrol", "reconfigure"); return func() {} }},
	}
	if mortal {
		all = append(all,
			soakFault{"controllers killed", func() func() { return s.restart(controller, syscall.SIGKILL) }},
			soakFault{"controllers stopped", func() func() { return s.restart(controller, syscall.SIGTERM) }})
	}
	return all
}

// reread has the controller read a configuration that differs from the last one.
func (s *soak) reread() {
	s.reloads++
	s.write("config.toml", s.config+strings.Repeat("\n", s.reloads%7), 0o644)
	s.reloadController()
}

// left are files of a node's agent that must be gone when it has nothing to do.
func (s *soak) left(node string) (files []string) {
	for _, pattern := range []string{"journal/*.json", "runs/*.json", "spool/*.entry", "spool/aside/*"} {
		found, _ := filepath.Glob(filepath.Join(s.dir, node, pattern))
		files = append(files, found...)
	}
	return files
}
