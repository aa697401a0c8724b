package livetest_test

import (
	"bufio"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

var (
	soakJobs    = flag.Int("jobs", 20_000, "of make soak")
	soakSeed    = flag.Uint64("seed", uint64(time.Now().Unix()), "by which make soak draws jobs and faults")
	soakSamples = flag.String("samples", "", "`folder` for the samples of make soak")
	soakMinutes = flag.Float64("minutes", 1e6, "after which make soak submits no more")
)

// What a soak is like: clocks, plans and the queue's order all act.
const soakConfig = "[live]\nmode = \"enforce\"\nhold_out = 0.1\nexplore = 0.1\nmax_slowdown = 1.5\nreorder = \"all\"\n" +
	"[live.plan]\nmode = \"enforce\"\npolicy = \"value\"\nevery_s = 5\nstale_s = 30\n"

// soakAhead is how many jobs wait or run at most.
const soakAhead = 70

// soakWorkloads is how many workloads there are.
const soakWorkloads = 12

// soak is a lab in which short jobs come and go while things fail.
type soak struct {
	*lab
	random    *rand.Rand
	watch     *soakWatch
	jobs      int
	submitted int
	kinds     map[string]int // of jobs
	faults    map[string]int
	missing   map[string][]window // when epds may not have been told of jobs
	later     []appointment
	closed    bool // nobody may ask slurmctld
	reloads   int
	ends      map[int64]jobEnd
	log       *bufio.Reader // of slurmctld, on ended jobs
	part      string        // of a line of it
}

// jobEnd is what Slurm says of a job that ended.
type jobEnd struct{ name, state string }

// appointment is something to do later.
type appointment struct {
	at time.Time
	do func()
}

// newSoak starts a lab for a soak.
func newSoak(tb testing.TB, jobs int, seed uint64) *soak {
	tb.Helper()
	tb.Logf("seed %d", seed)
	l := newLab(tb, setup{
		config: soakConfig, roles: true, nodes: 3, gpus: 8, gpu: "sim:8,busy,model=H200", brief: true,
		scrape: true,
		conf:   []string{"MinJobAge=60", "PriorityType=priority/multifactor", "PriorityWeightPartition=100000"},
		args:   []string{"--shards", "2"},
	})
	l.smallDisk(l.names[len(l.names)-1], "journal", "runs", "spool")
	s := &soak{
		lab: l, random: rand.New(rand.NewPCG(seed, 9)), watch: newSoakWatch(l), jobs: jobs,
		kinds: make(map[string]int), faults: make(map[string]int), missing: make(map[string][]window),
		ends: make(map[int64]jobEnd),
	}
	file, err := os.OpenFile(filepath.Join(l.dir, "slurm", "log", "jobcomp.log"), os.O_RDONLY|os.O_CREATE, 0o666)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	s.log = bufio.NewReader(file)
	return s
}

// readEnds reads what slurmctld has written of jobs that ended; a job that was put back into the queue ends
// again later.
func (s *soak) readEnds() {
	for {
		text, err := s.log.ReadString('\n')
		if s.part += text; err != nil {
			if err != io.EOF { //nolint:errorlint // as bufio says it
				s.Error(err)
			}
			break
		}
		id, name, state := int64(0), "", ""
		for field := range strings.FieldsSeq(s.part) {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "JobId":
				id, _ = strconv.ParseInt(value, 10, 64)
			case "Name":
				name = value
			case "JobState":
				state = value
			}
		}
		s.ends[id], s.part = jobEnd{name, state}, ""
	}
	s.watch.ended.Store(int64(len(s.ends)))
}

// run submits jobs and has things fail until all jobs ended. Every so often it says how it is.
func (s *soak) run(faultEvery time.Duration, progress io.Writer) {
	s.Helper()
	begin, told := time.Now(), time.Now()
	var end func()
	next := time.Now().Add(s.upTo(2 * faultEvery))
	ended, since := 0, time.Now()
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(progress, "soak: %s: %s\n", time.Since(begin).Round(time.Second), fmt.Sprintf(format, args...))
	}
	for ended < s.submitted || s.submitted < s.jobs || end != nil {
		now := time.Now()
		if !s.closed {
			s.keep(now)
			if s.submitted < s.jobs && s.submitted-ended < soakAhead {
				s.submitAny()
			}
		}
		if now.Sub(begin).Minutes() > *soakMinutes {
			s.jobs = min(s.jobs, s.submitted)
		}
		if s.readEnds(); len(s.ends) > ended {
			ended, since = len(s.ends), now
		}
		if now.Sub(since) > patience {
			s.Fatalf("no job of %d ended for %s; %d did", s.submitted, patience, ended)
		}
		switch {
		case now.Before(next):
		case end != nil:
			end()
			end, next = nil, time.Now().Add(s.upTo(2*faultEvery))
		case s.submitted < s.jobs:
			all := s.faultsOf(ended < s.jobs/3)
			fault := all[s.random.IntN(len(all))]
			s.faults[fault.name]++
			say("%s", fault.name)
			end, next = fault.begin(), time.Now().Add(time.Second+s.upTo(9*time.Second))
		}
		if now.Sub(told) > 10*time.Second {
			told = now
			say("%d of %d jobs ended; %s", ended, s.jobs, s.watch.line())
		}
		<-time.After(20 * time.Millisecond)
	}
}

func (s *soak) upTo(most time.Duration) time.Duration {
	return time.Duration(s.random.Float64() * float64(most))
}

// keep keeps appointments that are due.
func (s *soak) keep(now time.Time) {
	due := s.later
	s.later = nil
	for _, a := range due {
		if now.Before(a.at) {
			s.later = append(s.later, a)
		} else {
			a.do()
		}
	}
}

// soon has one of Slurm's commands run in some seconds, of which it isn't much of a matter whether it succeeds.
func (s *soak) soon(within time.Duration, name string, args ...string) {
	s.later = append(s.later, appointment{time.Now().Add(s.upTo(within)), func() { _, _ = s.trySlurm(name, args...) }})
}

// submitAny submits a job of a kind that is drawn. Its name says how it is to end.
func (s *soak) submitAny() {
	s.Helper()
	workload := s.random.IntN(soakWorkloads)
	line := fmt.Sprintf(": workload %d; sleep %.1f", workload, float64(workload%4)*0.4)
	args := []string{"--requeue", "-t", strconv.Itoa(2 + s.random.IntN(30))}
	kind, end, count := "", "COMPLETED", 1
	gpus := func(n int) { args = append(args, fmt.Sprintf("--gres=gpu:%d", n)) }
	switch draw := s.random.IntN(100); {
	case s.submitted%400 == 0:
		kind, end, line = "that run out of time", "TIMEOUT", "sleep 300"
		gpus(1)
		args = append(args, "-t", "1")
	case draw < 30:
		kind = "on one GPU"
		gpus(1)
	case draw < 45:
		kind, count = "of arrays", 6
		gpus(1)
		args = append(args, "--array=0-5")
	case draw < 57:
		kind = "on several GPUs"
		gpus(2 + 2*s.random.IntN(2))
	case draw < 61:
		kind = "on two nodes"
		gpus(2)
		args = append(args, "-N", "2")
	case draw < 73:
		kind = "on a part of a GPU"
		args = append(args, "--gres=shard:1")
	case draw < 80:
		kind, end, line = "that fail", "FAILED", line+"; exit 3"
		gpus(1)
	case draw < 86:
		kind, end, line = "that are cancelled", "CANCELLED", "sleep 60"
		gpus(1)
	case draw < 90:
		kind, line = "put back into the queue", line+"; sleep 2"
		gpus(1)
	default:
		kind = "with wishes"
		gpus(1)
		wishes := []string{"epplan:fixed=1095", "epplan:off", "epplan:deadline=+1h", "epplan:slowdown=1.2", "nonsense"}
		args = append(args, "--comment="+wishes[s.random.IntN(len(wishes))])
	}
	job := s.submit(line, append(args, "-J", end)...)
	s.submitted += count
	s.kinds[kind] += count
	switch {
	case end == "CANCELLED":
		s.soon(5*time.Second, "scancel", name(job))
	case strings.HasPrefix(kind, "put back"):
		s.soon(4*time.Second, "scontrol", "requeue", name(job))
	}
}

// finish takes everything back while jobs wait, waits until nothing is left to do, and looks for what must
// not be.
func (s *soak) finish() {
	s.Helper()
	s.takesBack()
	s.within(patience, "the queue is empty", func() bool {
		jobs, err := s.trySlurm("squeue", "-h", "-o", "%A")
		return err == nil && jobs == ""
	})
	for _, node := range s.names {
		s.within(patience, "everything of "+node+" is recorded", func() bool {
			st := s.status(node)
			return st != nil && len(st.Runs) == 0 && st.Unrecorded == 0 && len(s.left(node)) == 0 &&
				len(s.hardware(node)) == 0
		})
	}
	s.undrained()
	if c := s.says(controller).Controller; c.Lost > 0 || c.Unwritten > 0 || c.Trouble != "" {
		s.Errorf("the controller lost %d records, %d wait; %s", c.Lost, c.Unwritten, c.Trouble)
	}
}

// takesBack has jobs wait, some with a nice of their user's, lets the plan order them, and takes that back.
func (s *soak) takesBack() {
	s.Helper()
	own := make(map[string]string)
	var jobs []string
	for range s.names {
		jobs = append(jobs, name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "60", "-J", "CANCELLED")))
	}
	for i := range 3 {
		job := name(s.submit("sleep 600", "--gres=gpu:8", "-N1", "-t", "50", "--nice="+strconv.Itoa(3*i), "-J", "CANCELLED"))
		jobs, own[job] = append(jobs, job), strconv.Itoa(3*i)
	}
	// It takes no time, and comes before the others.
	jobs = append(jobs, name(s.submit(": workload 0; sleep 0.0", "--gres=gpu:1", "-t", "5", "-J", "CANCELLED")))
	s.within(patience, "the queue is put in the plan's order", func() bool { return s.steered().Nice > 0 })
	s.allUndone(own)
	if now := s.steered(); now.Nice > 0 || now.Prefer > 0 || now.Weights > 0 {
		s.Errorf("left are %+v", now)
	}
	s.slurm("scancel", jobs...)
	s.submitted += len(jobs)
}

// call is a hook's question.
type hookCall struct {
	job        int64
	node       string
	begin, end time.Time
	gpus       string
}

func (s *soak) hookCalls(kind string) []hookCall {
	var all []hookCall
	for line := range strings.Lines(s.read(kind + ".calls")) {
		var c hookCall
		var begin, end int64
		if n, err := fmt.Sscan(line, &c.job, &c.node, &begin, &end, &c.gpus); n < 4 { // without GPUs it is an error, too
			s.Errorf("%s.calls: %q: %v", kind, line, err)
		}
		c.begin, c.end = time.Unix(0, begin), time.Unix(0, end)
		all = append(all, c)
	}
	return all
}

// place is a job on a node.
type place struct {
	job  int64
	node string
}

// excuse is why nothing may be known of a run, by its Prolog; "": there is no reason.
func (s *soak) excuse(c *hookCall) string {
	const hook = 1800 * time.Millisecond // of the two seconds that it waits
	for _, w := range s.missing[c.node] {
		if c.end.After(w.from) && (w.to.IsZero() || c.begin.Before(w.to.Add(time.Second))) {
			return "its agent was away or had a full disk"
		}
	}
	if c.end.Sub(c.begin) > hook {
		return "its agent didn't answer in time"
	}
	if c.gpus == "" { // of jobs that start as slurmctld is started again, seen on 22.05
		return "Slurm told its Prolog of no GPUs"
	}
	return ""
}

// recordedRun is what is recorded of a run.
type recordedRun struct {
	state     string
	unmatched bool
}

// account holds what is recorded against what Slurm and the hooks say: each job ended as it was to, and each
// of its runs has one outcome, or a reason why it has none. All epds must have ended.
func (s *soak) account() (runs int, none map[string]int) {
	s.Helper()
	s.readEnds()
	if len(s.ends) != s.submitted {
		s.Errorf("Slurm says of %d jobs how they ended, want %d", len(s.ends), s.submitted)
	}
	for id, e := range s.ends {
		if e.state != e.name && !(e.name == "CANCELLED" && e.state == "COMPLETED") {
			s.Errorf("job %d is %s, want %s", id, e.state, e.name)
		}
	}
	recorded := s.outcomesByPlace()
	prologs, epilogs, starts := make(map[place][]hookCall), make(map[place]int), make(map[int64]int)
	for _, c := range s.hookCalls("prolog") {
		starts[c.job]++
		prologs[place{c.job, c.node}] = append(prologs[place{c.job, c.node}], c)
	}
	for _, c := range s.hookCalls("epilog") {
		epilogs[place{c.job, c.node}]++
	}
	none = make(map[string]int)
	for at, calls := range prologs {
		count := max(len(calls), epilogs[at])
		runs += count
		states := recorded[at]
		delete(recorded, at)
		if len(states) > count {
			s.Errorf("job %d on %s: outcomes %+v of %d runs", at.job, at.node, states, count)
		}
		lacking := count - len(states)
		without := func(why string) {
			if lacking > 0 && why != "" {
				none[why]++
				lacking--
			}
		}
		for range epilogs[at] - len(calls) { // the second run of a job, some seconds after the first one
			without("Slurm ran no Prolog")
		}
		for i := range calls {
			without(s.excuse(&calls[i]))
		}
		if lacking > 0 {
			s.Errorf("job %d on %s: outcomes %+v, want %d: of the others nobody knows why", at.job, at.node, states, count)
		}
		for _, r := range states {
			switch end := s.ends[at.job].state; {
			case r.unmatched:
				none["(known by its Epilog alone)"]++
			case starts[at.job] == 1 && count == 1 && r.state != end:
				s.Errorf("job %d on %s is recorded as %q, Slurm says %s", at.job, at.node, r.state, end)
			}
		}
	}
	for at, states := range recorded {
		s.Errorf("job %d on %s: outcomes %+v, and no Prolog", at.job, at.node, states)
	}
	return runs, none
}

// outcomesByPlace are all outcomes.
func (s *soak) outcomesByPlace() map[place][]recordedRun {
	s.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(s.dir, controller, "records.db"))
	if err != nil {
		s.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing was written
	rows, err := db.QueryContext(s.Context(), "SELECT job_id, node, exit_state, unmatched FROM outcomes")
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // as above
	all := make(map[place][]recordedRun)
	for rows.Next() {
		var at place
		var r recordedRun
		if err := rows.Scan(&at.job, &at.node, &r.state, &r.unmatched); err != nil {
			s.Fatal(err)
		}
		all[at] = append(all[at], r)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return all
}

// soakResult is what a soak came to.
type soakResult struct {
	*soak
	took     time.Duration
	runs     int
	none     map[string]int
	slopes   []soakSlope
	ahead    int // jobs that ended
	third    float64
	last     float64
	writeLog float64
}

// play has a soak's jobs come and go, and says what grew.
func (s *soak) play(sampleEvery, faultEvery time.Duration, progress io.Writer) *soakResult {
	s.Helper()
	begin := time.Now()
	stop := s.watch.watch(sampleEvery)
	s.run(faultEvery, progress)
	stop()
	r := &soakResult{soak: s, took: time.Since(begin), ahead: len(s.ends)}
	r.slopes = s.watch.slopes(r.ahead)
	r.third, r.last, r.writeLog = s.watch.bytesPerJob(r.ahead)
	return r
}

// settle ends a soak, and looks for what must not be.
func (r *soakResult) settle() {
	r.Helper()
	r.finish()
	for _, node := range r.watch.processes() {
		r.stopEPD(node, syscall.SIGTERM)
	}
	r.free(r.names...)
	r.runs, r.none = r.account()
}

func (r *soakResult) String() string {
	return fmt.Sprintf("%d jobs (%s), %d runs on nodes in %s, %.1f jobs a second\nfaults: %s\nruns without an outcome, and "+
		"why: %s\n%srecords: %.0f bytes a job in the third quarter, %.0f in the last one; their log %.1f MB at most\n",
		r.ahead, counted(r.kinds), r.runs, r.took.Round(time.Second), float64(r.ahead)/r.took.Seconds(), counted(r.faults),
		counted(r.none), soakTable(r.slopes), r.third, r.last, r.writeLog/(1<<20))
}

// A small soak, in which only what grows with each job can be seen to.
func TestNothingGrowsAndNoOutcomeIsLostWhateverFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes more than a minute")
	}
	slurmlab.AnySlurm(t)
	const jobs, perThousand = 500, 200
	s := newSoak(t, jobs, 1)
	r := s.play(time.Second/2, 2*time.Second, io.Discard)
	r.settle()
	t.Log(r)
	for _, of := range r.slopes {
		if (of.name == "goroutines" || of.name == "descriptors" || of.name == "children") && of.Low > perThousand {
			t.Errorf("%s of %s grow with jobs", of.name, of.process)
		}
	}
}

// BenchmarkSoak is a long one: make soak.
func BenchmarkSoak(b *testing.B) {
	for range b.N {
		s := newSoak(b, *soakJobs, *soakSeed)
		r := s.play(2*time.Second, 6*time.Second, os.Stderr)
		if *soakSamples != "" {
			if err := os.MkdirAll(*soakSamples, 0o755); err != nil {
				b.Fatal(err)
			}
			file := filepath.Join(*soakSamples, fmt.Sprintf("soak-%d.csv", *soakSeed))
			if err := s.watch.write(file); err != nil {
				b.Fatal(err)
			}
			_, _ = fmt.Fprintln(os.Stderr, "samples:", file)
		}
		r.settle()
		_, _ = fmt.Fprintf(os.Stderr, "seed %d: %s", *soakSeed, r)
		for i := range r.slopes {
			if r.slopes[i].rises() {
				b.Errorf("%s of %s rises", r.slopes[i].name, r.slopes[i].process)
			}
		}
		const most = 1.25
		if r.last > most*r.third {
			b.Errorf("a job takes %.0f bytes of the records, and took %.0f before", r.last, r.third)
		}
	}
}
