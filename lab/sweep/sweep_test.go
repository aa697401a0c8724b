package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/lab/sweep"
	"github.com/epplan/epplan/slurm"
)

// result is what a part of the test's sweeps comes to.
type result struct {
	Part  int
	Value float64
}

func resultOf(i int) result {
	if i%7 == 3 {
		return result{i, math.NaN()}
	}
	return result{i, math.Sqrt(float64(i)) - 1}
}

var errBad = errors.New("bad input")

// world is a Slurm, the machines that it has, and who waits at it.
type world struct {
	tb       rapid.TB
	dir      string
	manifest *sweep.Manifest
	draw     func(n int, what string) int // 0 to n-1
	kills    int                          // that are left to happen
	bad      map[int]bool                 // parts that can't be done
	deaf     bool                         // Slurm doesn't answer
	unread   slurm.Unread                 // lines of its answers

	next      slurm.JobID
	tasks     []worldTask
	submitted int
	options   []string
	mu        sync.Mutex
	did       map[int]int // how often each part was begun
	told      []string
	tick      func() error // of who waits
}

type worldTask struct {
	array string
	slurm.ArrayTask
}

func newWorld(tb rapid.TB, dir string, parts int) *world {
	m := &sweep.Manifest{Program: "test", Command: []string{"square"}}
	for i := range parts {
		m.Parts = append(m.Parts, "part "+strconv.Itoa(i))
	}
	return &world{
		tb: tb, dir: dir, manifest: m, draw: func(int, string) int { return 0 }, bad: make(map[int]bool),
		did: make(map[int]int), next: 100, tick: func() error { return nil },
	}
}

func (w *world) SubmitArray(
	_ context.Context, script, name, output string, tasks int, options ...string,
) (slurm.ArrayJob, error) {
	if _, err := os.Stat(script); err != nil || strings.Contains(name, ",") || output == "" {
		w.tb.Fatalf("sbatch %s as %s: %v", script, name, err)
	}
	w.next++
	w.submitted++
	w.options = options
	for k := range tasks {
		w.tasks = append(w.tasks, worldTask{
			strings.TrimSuffix(filepath.Base(script), ".sh"),
			slurm.ArrayTask{Job: w.next, Task: k, State: slurm.JobState{Base: slurm.Pending}},
		})
	}
	return slurm.ArrayJob{ID: w.next}, nil
}

func (w *world) ArrayTasks(
	_ context.Context, _ int, _, _ string,
) ([]slurm.ArrayTask, slurm.Unread, error) {
	if w.deaf {
		return nil, w.unread, slurm.ErrUnreachable
	}
	all := make([]slurm.ArrayTask, len(w.tasks))
	for i := range w.tasks {
		all[i] = w.tasks[i].ArrayTask
	}
	return all, w.unread, nil
}

func (w *world) Cancel(_ context.Context, job slurm.ArrayJob) error {
	for i := range w.tasks {
		if w.tasks[i].Job == job.ID && !w.tasks[i].State.Ended() {
			w.tasks[i].State.Base = slurm.Cancelled
		}
	}
	return nil
}

func (w *world) alive() []int {
	var all []int
	for i := range w.tasks {
		if !w.tasks[i].State.Ended() {
			all = append(all, i)
		}
	}
	return all
}

// step has one of the tasks run, which may be killed at any of its parts.
func (w *world) step(ctx context.Context) {
	alive := w.alive()
	if len(alive) == 0 {
		return
	}
	task := &w.tasks[alive[w.draw(len(alive), "task")]]
	name := fmt.Sprintf("%s_%d", task.array, task.Task)
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	killAt := -1
	if w.kills > 0 && w.draw(2, "killed") == 1 {
		w.kills--
		killAt = w.draw(4, "after parts")
	}
	work := w.work()
	work.AtOnce = 1 + w.draw(3, "at once")
	begun := 0
	if killAt >= 0 {
		work.AtOnce = 1
		work.Do = func(_ context.Context, i int) ([]byte, error) {
			if begun++; begun > killAt {
				kill()
				if w.draw(2, "torn") == 1 { // as if a file system had lost the rest of it
					torn := filepath.Join(w.dir, "parts", fmt.Sprintf("%06d", i))
					if err := os.WriteFile(torn, []byte("epplan part 1 of x, sha256 0\n{"), 0o600); err != nil {
						w.tb.Fatal(err)
					}
				}
				return sweep.Encode(result{-1, 0}) // as a plan that was cut short
			}
			return w.do(i)
		}
	}
	f, err := sweep.Join(w.dir, w.manifest)
	if err != nil {
		w.tb.Fatal(err)
	}
	err = f.RunTask(ctx, name, work)
	status := "0"
	if err != nil {
		if ctx.Err() == nil {
			w.tb.Fatalf("task %s: %v", name, err)
		}
		switch w.draw(3, "how") {
		case 0: // its node failed, and Slurm has it run again
			return
		case 1: // its node failed
			task.State.Base = slurm.NodeFail
			return
		}
		status = "137"
	}
	if err := os.WriteFile(filepath.Join(w.dir, "tasks", name+".ended"), []byte(status+"\n"), 0o600); err !=
		nil {
		w.tb.Fatal(err)
	}
	task.State.Base = slurm.Completed
}

func (w *world) do(i int) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did[i]++
	if w.bad[i] {
		return nil, errBad
	}
	return sweep.Encode(resultOf(i))
}

func (w *world) work() *sweep.Work {
	return &sweep.Work{
		Do: func(_ context.Context, i int) ([]byte, error) { return w.do(i) }, AtOnce: 1,
		Status: func(error) int { return 3 },
	}
}

// gather returns a call of the command that submits and waits.
func (w *world) gather(ctx context.Context, tasks int) (*sweep.Folder, error) {
	f, err := sweep.Open(w.dir, w.manifest)
	if err != nil {
		w.tb.Fatal(err)
	}
	return f, f.Gather(ctx, &sweep.Array{
		Slurm: w, Tasks: tasks, Command: sweep.Command{Program: "epplan", Dir: "/", Options: []string{"square"}},
		Wait: func(ctx context.Context, _ time.Duration) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			w.step(context.WithoutCancel(ctx))
			return w.tick()
		},
		Tell: func(text string) { w.told = append(w.told, text) }, Show: func(sweep.Progress) {},
	})
}

// check compares what was gathered with what one machine does.
func (w *world) check(f *sweep.Folder) {
	for i := range w.manifest.Parts {
		text, err := f.Part(i)
		if err != nil {
			w.tb.Fatal(err)
		}
		want, err := sweep.Encode(resultOf(i))
		if err != nil || string(text) != string(want) {
			w.tb.Fatalf("part %d is %s, want %s", i, text, want)
		}
	}
}

// TestPartsAreTheSameHoweverTheyAreDividedOrderedAndKilled kills tasks, nodes and those who
// wait at any time, and calls again until all is done.
func TestPartsAreTheSameHoweverTheyAreDividedOrderedAndKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "sweep") //nolint:usetesting // one for each try
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a folder for temporary files
		w := newWorld(t, dir, rapid.IntRange(1, 25).Draw(t, "parts"))
		w.draw = func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
		w.kills = rapid.IntRange(0, 12).Draw(t, "kills")
		stops := rapid.IntRange(0, 4).Draw(t, "stops")
		for range 60 {
			f, err := w.gatherUntilStopped(&stops)
			if errors.Is(err, context.Canceled) && len(w.alive()) > 0 {
				t.Fatal("tasks are left after Ctrl-C")
			}
			if err == nil {
				w.check(f)
				return
			}
		}
		t.Fatal("it comes to no end")
	})
}

// gatherUntilStopped returns a call that may be killed or interrupted at any time, so often at most.
func (w *world) gatherUntilStopped(stops *int) (*sweep.Folder, error) {
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	waits := 0
	w.tick = func() error {
		if waits++; waits > 2000 {
			w.tb.Fatalf("it waits for ever")
		}
		w.deaf = w.draw(4, "deaf") == 1
		if *stops == 0 || w.draw(6, "stop") != 1 {
			return nil
		}
		*stops--
		if w.draw(2, "by Ctrl-C") == 1 {
			interrupt()
			return ctx.Err()
		}
		return errKilled
	}
	w.deaf = false
	return w.gather(ctx, 1+w.draw(8, "tasks"))
}

var errKilled = errors.New("killed")

func TestAPartThatCantBeDoneIsTriedOnceByACall(t *testing.T) {
	w := newWorld(t, t.TempDir(), 9)
	w.bad[4] = true
	for call := 1; call <= 2; call++ {
		_, err := w.gather(t.Context(), 3)
		failed, ok := errors.AsType[*sweep.PartsError](err)
		if !ok || len(failed.Parts) != 1 || failed.Parts[0] != (sweep.FailedPart{
			Name: "part 4", Message: "bad input", Status: 3,
		}) {
			t.Fatalf("%v, want part 4 to fail alone", err)
		}
		if err.Error() != "1 of 9 parts failed:\n  part 4: exit status 3: bad input" {
			t.Errorf("it says %q", err)
		}
		if w.did[4] != call || w.did[5] != 1 || w.submitted != call {
			t.Errorf("call %d: part 4 was tried %d times, part 5 %d, in %d arrays", call, w.did[4], w.did[5],
				w.submitted)
		}
	}
	w.bad[4] = false // its input was mended where no digest sees it
	f, err := w.gather(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	w.check(f)
}

func TestAPartWhoseTasksAreKilledIsGivenUpAndTheOthersAreDone(t *testing.T) {
	w := newWorld(t, t.TempDir(), 6)
	killer := func() {
		for _, i := range w.alive() {
			task := &w.tasks[i]
			f, err := sweep.Join(w.dir, w.manifest)
			if err != nil {
				t.Fatal(err)
			}
			ctx, kill := context.WithCancel(t.Context())
			work := w.work()
			work.Do = func(_ context.Context, i int) ([]byte, error) {
				if i == 2 { // it takes too much memory
					kill()
				}
				return w.do(i)
			}
			_ = f.RunTask(ctx, fmt.Sprintf("%s_%d", task.array, task.Task), work)
			task.State.Base = slurm.OutOfMemory
			kill()
		}
	}
	w.draw = func(int, string) int { return 0 }
	w.tick = func() error { killer(); return nil }
	w.kills = 0
	step := w.tick
	f, err := sweep.Open(w.dir, w.manifest)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Gather(t.Context(), &sweep.Array{
		Slurm: w, Tasks: 2, Wait: func(context.Context, time.Duration) error { return step() },
		Tell: func(text string) { w.told = append(w.told, text) }, Show: func(sweep.Progress) {},
	})
	failed, ok := errors.AsType[*sweep.PartsError](err)
	if !ok || len(failed.Parts) != 1 || failed.Parts[0].Name != "part 2" ||
		!strings.HasPrefix(failed.Parts[0].Message, "not done in 3 tries, the last one by job ") ||
		!strings.HasSuffix(failed.Parts[0].Message, ", OUT_OF_MEMORY)") {
		t.Fatalf("%v, want part 2 to be given up", err)
	}
	if w.submitted != 3 || w.did[2] != 3 {
		t.Errorf("%d arrays, part 2 tried %d times; want 3 of each", w.submitted, w.did[2])
	}
	for i := range 6 {
		if i != 2 && w.did[i] != 1 {
			t.Errorf("part %d was done %d times", i, w.did[i])
		}
	}
}

func TestTasksThatEndByThemselvesWithAnErrorArentRepeated(t *testing.T) {
	w := newWorld(t, t.TempDir(), 4)
	w.tick = func() error {
		for _, i := range w.alive() {
			task := &w.tasks[i]
			name := filepath.Join(w.dir, "tasks", fmt.Sprintf("%s_%d", task.array, task.Task))
			err := errors.Join(os.WriteFile(name+".ended", []byte("127\n"), 0o600),
				os.WriteFile(name+".log", []byte("note\nepplan: not found\n"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			task.State.Base = slurm.Failed
		}
		return nil
	}
	w.draw = func(int, string) int { return 0 }
	f, err := sweep.Open(w.dir, w.manifest)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Gather(t.Context(), &sweep.Array{
		Slurm: w, Tasks: 2, Wait: func(context.Context, time.Duration) error { return w.tick() },
		Tell: func(string) {}, Show: func(sweep.Progress) {},
	})
	failed, ok := errors.AsType[*sweep.PartsError](err)
	if !ok || len(failed.Parts) != 4 || w.submitted != 1 || failed.Parts[3].Status != 127 ||
		!strings.HasSuffix(failed.Parts[3].Message, "ended: epplan: not found") {
		t.Errorf("%v after %d arrays", err, w.submitted)
	}
}

func TestWhatSomebodyCancelsIsntSubmittedAgain(t *testing.T) {
	w := newWorld(t, t.TempDir(), 4)
	w.tick = func() error {
		if len(w.alive()) > 0 {
			return w.Cancel(t.Context(), slurm.ArrayJob{ID: w.next})
		}
		return nil
	}
	_, err := w.gather(t.Context(), 2) // one of the two tasks is done before
	failed, ok := errors.AsType[*sweep.PartsError](err)
	if !ok || len(failed.Parts) != 2 || w.submitted != 1 ||
		!strings.HasSuffix(failed.Parts[0].Message, ", CANCELLED) was cancelled") {
		t.Errorf("%v after %d arrays", err, w.submitted)
	}
	w.tick = func() error { return nil }
	f, err := w.gather(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	w.check(f)
}

func TestAPanicIsAFailureOfItsPart(t *testing.T) {
	w := newWorld(t, t.TempDir(), 3)
	f, err := sweep.Open(w.dir, w.manifest)
	if err != nil {
		t.Fatal(err)
	}
	work := w.work()
	work.Do = func(_ context.Context, i int) ([]byte, error) {
		if i == 1 {
			panic("no such node")
		}
		return w.do(i)
	}
	err = f.RunHere(t.Context(), work, func(sweep.Progress) {})
	if err == nil || err.Error() != "1 of 3 parts failed:\n  part 1: exit status 2: panic: no such node" {
		t.Errorf("%v", err)
	}
}

func TestASweepIsntMixedWithAnotherOne(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(t.TempDir(), "batch.csv")
	read := func(text string) []sweep.Input {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		inputs, err := sweep.ReadInputs([]string{name, name})
		if err != nil || len(inputs) != 1 {
			t.Fatal(inputs, err)
		}
		return inputs
	}
	begun := &sweep.Manifest{
		Program: "epplan 1", Command: []string{"compare", "--seed=1"}, Inputs: read("a"), Parts: []string{"x"},
	}
	if _, err := sweep.Join(dir, begun); err == nil {
		t.Error("a task joined a folder that is none")
	}
	if _, err := sweep.Open(dir, begun); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		change func(m *sweep.Manifest)
		want   string
	}{
		{func(m *sweep.Manifest) { m.Program = "epplan 2" }, "it was begun by epplan 1, and this is epplan 2"},
		{func(m *sweep.Manifest) { m.Inputs = read("b") }, name + " has changed"},
		{func(m *sweep.Manifest) { m.Inputs = nil }, name + " was read then, and isn't now"},
		{
			func(m *sweep.Manifest) { m.Command = []string{"compare", "--seed=2"} },
			"its command line had --seed=1\n  its command line had no --seed=2",
		},
		{func(m *sweep.Manifest) { m.Parts = []string{"y"} }, "its parts had x\n  its parts had no y"},
	} {
		m := *begun
		test.change(&m)
		_, err := sweep.Open(dir, &m)
		if _, ok := errors.AsType[*sweep.OtherSweepError](err); !ok ||
			err.Error() != dir+" has the parts of another sweep:\n  "+test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
		if _, joined := sweep.Join(dir, &m); joined == nil {
			t.Errorf("a task joined another sweep: %s", test.want)
		}
	}
	if _, err := sweep.Open(dir, begun); err != nil {
		t.Error(err)
	}
	if _, err := sweep.Open(filepath.Dir(name), begun); err == nil ||
		!strings.HasSuffix(err.Error(), " has batch.csv in it, and no sweep: want a folder of its own, "+
			"that is empty or not there") {
		t.Errorf("a folder with something else: %v", err)
	}
	if _, err := sweep.ReadInputs([]string{"/dev/null"}); !errors.Is(err, sweep.ErrStream) {
		t.Errorf("a stream was read: %v", err)
	}
}

func TestSbatchGetsTheSitesOptions(t *testing.T) {
	w := newWorld(t, t.TempDir(), 5)
	f, err := sweep.Open(w.dir, w.manifest)
	if err != nil {
		t.Fatal(err)
	}
	a := sweep.Array{
		Slurm: w, Tasks: 2, Options: []string{"--partition=cpu"},
		Wait: func(ctx context.Context, _ time.Duration) error { w.step(ctx); return nil },
		Tell: func(text string) { w.told = append(w.told, text) }, Show: func(sweep.Progress) {},
	}
	if err := f.Gather(t.Context(), &a); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.options, a.Options) ||
		!slices.Equal(w.told, []string{"job array 101 does 5 of 5 parts in 2 tasks"}) {
		t.Errorf("options %q; %q", w.options, w.told)
	}
}

func TestTheScriptOfAnArrayIsOneForAnyShellAndAnyName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's\na $HOME `x`\\ \"folder\"")
	f, err := sweep.Open(dir, &sweep.Manifest{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "an epplan")
	text := "#!/bin/sh\npwd\nprintf '<%s>\\n' \"$@\" $GOMAXPROCS\nexit 7\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	command := sweep.Command{
		Program: program, Dir: dir, Options: []string{"compare", "--policy=a b,c=$(date)"},
		Operands: []string{"-x", "it's"},
	}
	run := exec.CommandContext(t.Context(), "sh", "-c", command.Script(f.Path(), 3))
	run.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID=5", "SLURM_CPUS_ON_NODE=4")
	out, err := run.CombinedOutput()
	want := dir + "\n<compare>\n<--policy=a b,c=$(date)>\n<--slurm-dir=" + dir + ">\n<--slurm-task=3_5>\n" +
		"<-->\n<-x>\n<it's>\n<4>\n"
	if string(out) != want || run.ProcessState.ExitCode() != 7 {
		t.Errorf("%v: %s\nwant %s", err, out, want)
	}
	ended, err := os.ReadFile(filepath.Join(dir, "tasks", "3_5.ended"))
	if err != nil || string(ended) != "7\n" {
		t.Errorf("it ended with %q, %v", ended, err)
	}
}
