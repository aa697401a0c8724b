package livetest_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// act is a workload: what it does on a GPU that does nothing else, and the limit
// that its user sets, in Slurm's minutes.
type act struct {
	name  string
	truth dvfsmodel.Params // in the job's seconds
	limit time.Duration
	// phases of it, with waiting in between; nil: it never waits.
	phases []gpu.Phase
}

// drawActs draws workloads of 5 to 10 minutes, from memory bound to core bound, with
// more or less power that no clock changes. Most limits leave room; every tenth
// workload is core bound under a limit that its cheapest clocks break.
func drawActs(random *rand.Rand, count int) []act {
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	all := make([]act, count)
	for i := range all {
		seconds, fixed, delta := between(300, 600), between(0, 0.1), between(0.05, 0.95)
		limit := time.Duration(math.Ceil(between(1.5, 3)*seconds/60)) * time.Minute
		if i%10 == 3 {
			const room = 1.2
			limit = time.Duration(math.Ceil(seconds/60)) * time.Minute
			seconds, delta = limit.Seconds()/room, 0.95
		}
		all[i] = act{
			name: fmt.Sprintf("w%02d", i),
			truth: dvfsmodel.Params{
				P0: dvfsmodel.Watt(between(30, 70)), Gamma: dvfsmodel.Watt(between(10, 30)),
				C: dvfsmodel.Watt(between(60, 170)),
				D: seconds * (1 - fixed), Delta: delta, T0: seconds * fixed,
			},
			limit: limit,
		}
	}
	return all
}

// stage has jobs do their work on simulated GPUs: a job says that it began by one
// pipe, and waits at another until its work is done.
type stage struct {
	*lab
	acts    []act
	scatter float64 // of the work of a run: the deviation of its logarithm
	random  *rand.Rand
	folder  string
	sims    map[string][]*gpu.Sim

	mu   sync.Mutex
	on   map[string]*played // by node and GPU
	done map[int64]*played
}

// played is a job's run.
type played struct {
	job          int64
	act          *act
	gpu          *gpu.Sim
	exit         *os.File
	began, ended time.Time // of its work; when that was seen
}

func newStage(l *lab, acts []act, scatter float64, random *rand.Rand) *stage {
	l.Helper()
	s := &stage{
		lab: l, acts: acts, scatter: scatter, random: random, folder: filepath.Join(l.dir, "stage"),
		sims: make(map[string][]*gpu.Sim), on: make(map[string]*played), done: make(map[int64]*played),
	}
	for _, node := range l.names {
		s.sims[node] = l.sims(node)
	}
	entry := filepath.Join(s.folder, "entry")
	err := errors.Join(os.Mkdir(s.folder, 0o700), os.Chmod(s.folder, 0o777),
		syscall.Mkfifo(entry, 0o600), os.Chmod(entry, 0o666))
	if err != nil {
		l.Fatal(err)
	}
	pipe, err := os.OpenFile(entry, os.O_RDWR, 0)
	if err != nil {
		l.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			if err := s.enter(strings.Fields(lines.Text())); err != nil {
				l.Errorf("%q: %v", lines.Text(), err)
			}
		}
	})
	l.Cleanup(func() {
		_ = pipe.Close()
		reading.Wait()
	})
	return s
}

// submit submits a job whose work is drawn, with further arguments of sbatch.
func (s *stage) submit(a *act, args ...string) int64 {
	s.Helper()
	return s.submitPart(a, 0, args...)
}

// submitPart submits a job whose work is such a part of its workload's; 0: it is drawn.
func (s *stage) submitPart(a *act, part float64, args ...string) int64 {
	s.Helper()
	line := fmt.Sprintf("d=%s; mkfifo $d/$SLURM_JOB_ID; echo %s $SLURM_JOB_ID $SLURMD_NODENAME "+
		"$SLURM_JOB_GPUS ${PART:-0} >$d/entry; read x <$d/$SLURM_JOB_ID",
		s.folder, a.name)
	if part > 0 { // not in the script, by which workloads are told apart
		args = append(args, fmt.Sprintf("--export=ALL,PART=%v", part))
	}
	return s.lab.submit(line,
		append(args, "--gres=gpu:1", "-J", a.name, "-t", strconv.Itoa(int(a.limit.Minutes())))...)
}

// enter starts a job's work.
func (s *stage) enter(said []string) error {
	const words = 5
	if len(said) != words {
		return errors.New("want workload, job, node, GPU and part")
	}
	index := slices.IndexFunc(s.acts, func(a act) bool { return a.name == said[0] })
	job, notID := strconv.ParseInt(said[1], 10, 32)
	place, notPlace := strconv.Atoi(said[3])
	part, notPart := strconv.ParseFloat(said[4], 64)
	exit, err := os.OpenFile(filepath.Join(s.folder, said[1]), os.O_RDWR, 0)
	if err := errors.Join(notID, notPlace, notPart, err); err != nil {
		return err
	}
	p := &played{job: job, act: &s.acts[index], gpu: s.sims[said[2]][place], exit: exit, began: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[said[2]+"/"+said[3]] = p
	if part == 0 {
		part = math.Exp(s.scatter * s.random.NormFloat64())
	}
	return p.gpu.Run(gpu.Work{PID: int(job), Model: p.act.truth.Scale(part), Phases: p.act.phases})
}

// play lets the jobs go whose work is done, and returns how many did so far.
func (s *stage) play() int {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for place, p := range s.on {
		work, err := p.gpu.Work()
		if err == nil && len(work) > 0 {
			continue
		}
		_, said := p.exit.WriteString("done\n")
		if err := errors.Join(err, said); err != nil {
			s.Errorf("job %d: %v", p.job, err)
		}
		delete(s.on, place)
		p.ended = time.Now()
		s.done[p.job] = p
	}
	return len(s.done)
}

// close ends the pipes of jobs that went.
func (s *stage) close() {
	for _, p := range s.done {
		_ = p.exit.Close()
	}
}
