package livetest_test

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

var (
	soakJobs    = flag.Int("jobs", 30_000, "of make soak")
	soakSeed    = flag.Uint64("seed", uint64(time.Now().Unix()), "by which make soak draws jobs and faults")
	soakSamples = flag.String("samples", "", "`folder` for the samples of make soak")
	soakMinutes = flag.Float64("minutes", 1e6, "after which make soak submits no more")
	soakEvery   = flag.Duration("every", 6*time.Second, "between make soak's faults, in the mean")
	soakFaults  = flag.String("faults", "", "of make soak alone, a `regexp` of their names: what grows isn't judged")
)

// What a soak is like: clocks, plans and the queue's order all act, and the site holds its GPUs down.
// Predictions know as many jobs as they may soon: until then memory grows with them.
const soakConfig = "[predict]\njobs = 500\n[live]\nmode = \"enforce\"\nhold_out = 0.1\nexplore = 0.1\n" +
	"max_slowdown = 1.5\nreorder = \"all\"\n" +
	"[live.plan]\nmode = \"enforce\"\npolicy = \"value\"\nevery_s = 5\nstale_s = 30\n" +
	"[live.site_clocks]\nH200 = 1755\n"

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
	unsure    int            // jobs that slurmctld may have taken
	refused   []time.Time    // when it refused one since it knew no node with their GPUs
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
		scrape: true, siteCore: 1755,
		conf: []string{"MinJobAge=300", "PriorityType=priority/multifactor", "PriorityWeightPartition=100000"},
		args: []string{"--shards", "2"},
	})
	l.smallDisk(l.names[len(l.names)-1], "journal", "runs", "spool")
	s := &soak{
		lab: l, random: rand.New(rand.NewPCG(seed, 9)), watch: newSoakWatch(l), jobs: jobs,
		kinds: make(map[string]int), faults: make(map[string]int), missing: make(map[string][]window),
		ends: make(map[int64]jobEnd),
	}
	file, err := os.Open(filepath.Join(l.dir, "slurm", "log", "jobcomp.log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	s.log = bufio.NewReader(file)
	return s
}

// run submits jobs and has things fail until all jobs ended. Every so often it says how it is.
func (s *soak) run(faultEvery time.Duration, progress io.Writer) {
	s.Helper()
	begin, told, since := time.Now(), time.Now(), time.Now()
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(progress, "soak: %s: %s\n", time.Since(begin).Round(time.Second),
			fmt.Sprintf(format, args...))
	}
	var end func()
	next := time.Now().Add(s.upTo(2 * faultEvery))
	ended := 0
	for ended < s.submitted || s.submitted < s.jobs || end != nil {
		now := time.Now()
		if !s.closed {
			s.keep(now)
			if s.submitted < s.jobs && s.submitted-ended < soakAhead {
				s.submitAny()
			}
		}
		minutes := now.Sub(begin).Minutes()
		if minutes > *soakMinutes {
			s.jobs = min(s.jobs, s.submitted)
		}
		if s.readEnds(); len(s.ends) > ended {
			ended, since = len(s.ends), now
		}
		part := min(1, max(float64(ended)/float64(s.jobs), minutes / *soakMinutes))
		s.watch.reached(ended, part)
		if now.Sub(since) > patience {
			s.Fatalf("no job of %d ended for %s; %d did", s.submitted, patience, ended)
		}
		switch {
		case now.Before(next):
		case end != nil:
			end()
			end, next = nil, time.Now().Add(s.upTo(2*faultEvery))
		case s.submitted < s.jobs:
			all, most := s.faultsOf(part < 1.0/3), 9*time.Second
			if *soakFaults != "" {
				wanted := regexp.MustCompile(*soakFaults)
				all = slices.DeleteFunc(s.faultsOf(true), func(f soakFault) bool { return !wanted.MatchString(f.name) })
				most = faultEvery
			}
			fault := all[s.random.IntN(len(all))]
			s.faults[fault.name]++
			say("%s", fault.name)
			end, next = fault.begin(), time.Now().Add(time.Second+s.upTo(most))
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

// soon has one of Slurm's commands run in some seconds; it may come too late for the job.
func (s *soak) soon(within time.Duration, name string, args ...string) {
	s.later = append(s.later, appointment{
		time.Now().Add(s.upTo(within)), func() { _, _ = s.trySlurm(name, args...) },
	})
}

// soakKind is a kind of jobs: how many of 100 submissions are of it, how they are submitted, and how they are
// to end.
type soakKind struct {
	name  string
	share int
	args  []string
	end   string // "": COMPLETED
	work  string // beside that of the workload
	count int    // of jobs; 0: one
	later []string
	in    time.Duration // at most, until later
}

var soakKinds = []soakKind{
	{name: "on one GPU", share: 30, args: []string{"--gres=gpu:1"}},
	{name: "of arrays", share: 15, args: []string{"--gres=gpu:1", "--array=0-5"}, count: 6},
	{name: "on two GPUs", share: 6, args: []string{"--gres=gpu:2"}},
	{name: "on four GPUs", share: 6, args: []string{"--gres=gpu:4"}},
	{name: "on two nodes", share: 4, args: []string{"--gres=gpu:2", "-N", "2"}},
	{name: "on a part of a GPU", share: 12, args: []string{"--gres=shard:1"}},
	{name: "that fail", share: 7, args: []string{"--gres=gpu:1"}, end: "FAILED", work: "; exit 3"},
	{
		name: "that are cancelled", share: 6, args: []string{"--gres=gpu:1"}, end: "CANCELLED", work: "; sleep 60",
		later: []string{"scancel"}, in: 5 * time.Second,
	},
	{
		name: "put back into the queue", share: 4, args: []string{"--gres=gpu:1"}, work: "; sleep 2",
		later: []string{"scontrol", "requeue"}, in: 4 * time.Second,
	},
	{name: "with a wish", share: 2, args: []string{"--gres=gpu:1", "--comment=epplan:fixed=1095"}},
	{name: "with a wish", share: 2, args: []string{"--gres=gpu:1", "--comment=epplan:off"}},
	{name: "with a wish", share: 4, args: []string{"--gres=gpu:1", "--comment=epplan:deadline=+1h"}},
	{name: "with a wish", share: 2, args: []string{"--gres=gpu:1", "--comment=epplan:slowdown=1.2"}},
}

// outOfTime are jobs that Slurm ends at their limit: some, as each takes more than a minute.
var outOfTime = soakKind{
	name: "that run out of time", args: []string{"--gres=gpu:1", "-t", "1"}, end: "TIMEOUT", work: "; sleep 300",
}

func (s *soak) drawKind() *soakKind {
	const fewOf = 400
	if s.submitted%fewOf == 0 {
		return &outOfTime
	}
	draw := s.random.IntN(100)
	for i := range soakKinds {
		if draw -= soakKinds[i].share; draw < 0 {
			return &soakKinds[i]
		}
	}
	return &soakKinds[0]
}

// submitAny submits a job of a kind that is drawn. Its name says how it is to end.
func (s *soak) submitAny() {
	s.Helper()
	workload, k := s.random.IntN(soakWorkloads), s.drawKind()
	end, count := cmp.Or(k.end, "COMPLETED"), max(1, k.count)
	args := append([]string{"--requeue", "-J", end, "-t", strconv.Itoa(2 + s.random.IntN(30))}, k.args...)
	line := fmt.Sprintf(": workload %d; sleep %.1f%s", workload, float64(workload%4)*0.4, k.work)
	job, err := s.sbatch([]byte("#!/bin/sh\n"+line+"\n"), args...)
	if err != nil { // a slurmctld that is too busy may have taken it all the same
		s.Logf("sbatch: %v", err)
		if s.unsure += count; strings.Contains(err.Error(), "node configuration is not available") {
			s.refused = append(s.refused, time.Now())
		}
		return
	}
	s.submitted += count
	s.kinds[k.name] += count
	if len(k.later) > 0 {
		s.soon(k.in, k.later[0], append(slices.Clone(k.later[1:]), name(job))...)
	}
}

// soakResult is what a soak came to.
type soakResult struct {
	*soak
	took     time.Duration
	runs     int
	none     map[string]int
	slopes   []soakSlope
	jobs     int // that ended
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
	r := &soakResult{soak: s, took: time.Since(begin), jobs: len(s.ends)}
	r.slopes = s.watch.slopes()
	r.third, r.last, r.writeLog = s.watch.bytesPerJob()
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
	return fmt.Sprintf("%d jobs (%s), %d runs on nodes in %s, %.1f jobs a second\nfaults: %s\n"+
		"runs without an outcome, and why: %s\n%s"+
		"records: %.0f bytes a job in the third quarter, %.0f in the last one; their log %.1f MB at most\n",
		r.jobs, counted(r.kinds), r.runs, r.took.Round(time.Second), float64(r.jobs)/r.took.Seconds(),
		counted(r.faults), counted(r.none), soakTable(r.slopes), r.third, r.last, r.writeLog/(1<<20))
}

// growing tells of measures that grow. All must be known of the controller and of the agent that wasn't
// started again.
func (r *soakResult) growing(grows func(*soakSlope) bool) {
	r.Helper()
	known := make(map[string]int)
	for i := range r.slopes {
		of := &r.slopes[i]
		known[of.process]++
		if grows(of) {
			r.Errorf("%s of %s: %+.1f to %+.1f for 1,000 jobs", of.name, of.process, of.Low, of.High)
		}
	}
	for _, process := range []string{controller, r.names[0]} {
		if known[process] != len(soakMeasures) {
			r.Errorf("of %s %d measures are known, want %d", process, known[process], len(soakMeasures))
		}
	}
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
	r.growing(func(of *soakSlope) bool { return of.unit == 1 && of.Low > perThousand })
}

// keepSamples writes all samples to the folder that is named.
func (s *soak) keepSamples() {
	if *soakSamples == "" {
		return
	}
	file := filepath.Join(*soakSamples, fmt.Sprintf("soak-%d.csv", *soakSeed))
	if err := errors.Join(os.MkdirAll(*soakSamples, 0o755), s.watch.write(file)); err != nil {
		s.Error(err)
	}
	_, _ = fmt.Fprintln(os.Stderr, "samples:", file)
}

// BenchmarkSoak is a long one: make soak.
func BenchmarkSoak(b *testing.B) {
	for range b.N {
		s := newSoak(b, *soakJobs, *soakSeed)
		b.Cleanup(s.keepSamples)
		r := s.play(2*time.Second, *soakEvery, os.Stderr)
		r.settle()
		_, _ = fmt.Fprintf(os.Stderr, "seed %d: %s", *soakSeed, r)
		if *soakFaults != "" {
			continue
		}
		r.growing((*soakSlope).rises)
		const most = 1.25
		if r.last > most*r.third {
			b.Errorf("a job takes %.0f bytes of the records, and took %.0f before", r.last, r.third)
		}
	}
}
