package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/pause"
	"github.com/epplan/epplan/slurm"
)

// Slurm is what of Slurm a sweep needs; a slurm.Client has it.
type Slurm interface {
	SubmitArray(
		ctx context.Context, script, name, output string, tasks int, options ...string,
	) (slurm.ArrayJob, error)
	ArrayTasks(
		ctx context.Context, uid int, name, cluster string,
	) ([]slurm.ArrayTask, slurm.Unread, error)
	Cancel(ctx context.Context, job slurm.ArrayJob) error
}

// Array is how a sweep is done by job arrays.
type Array struct {
	Slurm   Slurm
	Tasks   int      // of an array at most
	Options []string // further ones of sbatch
	Command Command
	// Wait waits so long, or until the context's end; nil: by the clock.
	Wait func(ctx context.Context, d time.Duration) error
	Tell func(text string)    // of what happens
	Show func(state Progress) // often
}

// Progress is how far a sweep is.
type Progress struct {
	Done, Failed, Total int // parts
	Running, Waiting    int // tasks, when Slurm was asked last
}

// How often the folder is looked at and Slurm is asked: the longer a sweep takes, the
// more rarely.
const (
	minLook, maxLook = time.Second, 10 * time.Second
	minAsk, maxAsk   = 3 * time.Second, time.Minute
	lookShare        = 20 // of the time that it took so far
	askShare         = 10
	// A shared folder may show late what another machine wrote.
	settleLooks = 2
)

// maxTries is how often a part is begun by tasks that are killed before it is done.
const maxTries = 3

// signalStatus is above which a shell's exit status is that of a command that was killed.
const signalStatus = 128

// cancelTime is how long cancelling may take.
const cancelTime = 30 * time.Second

// gathering is a sweep while it is waited for.
type gathering struct {
	folder  *Folder
	array   *Array
	look    look
	arrays  []arrayRun     // that this process submitted or found
	tries   map[int]int    // by part
	givenUp map[int]string // parts, and why
	status  map[int]int    // exit statuses of tasks, by part that was given up
	took    time.Duration
	asked   time.Duration // of took, when Slurm was asked last
	deaf    bool          // Slurm didn't answer last time
	unread  string        // why some of its lines couldn't be read
	states  map[jobTask]slurm.JobState
	state   Progress
}

// jobTask is a task of an array as Slurm knows it.
type jobTask struct {
	job  slurm.JobID
	task int
}

// arrayRun is one job array.
type arrayRun struct {
	number int
	job    slurm.ArrayJob
	shares [][]int
}

// Gather has job arrays do what isn't done yet, and returns when all of it is done or has
// failed, which is a *PartsError. What of an earlier call still waits or runs is waited
// for. When the context ends, what was submitted is cancelled: another call goes on.
func (f *Folder) Gather(ctx context.Context, a *Array) error {
	g := &gathering{
		folder: f, array: a, tries: make(map[int]int), givenUp: make(map[int]string), status: make(map[int]int),
		states: make(map[jobTask]slurm.JobState),
	}
	if g.array.Wait == nil {
		g.array.Wait = pause.For
	}
	err := g.run(ctx)
	if ctx.Err() != nil {
		g.cancel(context.WithoutCancel(ctx))
		return ctx.Err()
	}
	return err
}

// jobName is that of the arrays of the sweep in this folder.
func (f *Folder) jobName() string { return "epplan-" + f.id + "-" + shortDigest(f.path) }

func (g *gathering) run(ctx context.Context) error {
	if err := g.look.update(g.folder); err != nil {
		return err
	}
	if len(g.look.missing()) > 0 || slices.Contains(g.look.failed, true) {
		if err := g.join(ctx); err != nil {
			return err
		}
	}
	for {
		open := g.open()
		if len(open) == 0 {
			return g.folder.report(&g.look, g)
		}
		if !g.alive() {
			if err := g.submit(ctx, open); err != nil {
				return err
			}
		}
		if err := g.await(ctx); err != nil {
			return err
		}
		g.assess()
	}
}

// open returns the parts to wait for.
func (g *gathering) open() []int {
	return slices.DeleteFunc(g.look.missing(), func(i int) bool { return g.givenUp[i] != "" })
}

// join finds arrays that still wait or run; without any, parts that failed are tried anew.
func (g *gathering) join(ctx context.Context) error {
	runs, err := g.folder.submitted()
	if err != nil {
		return err
	}
	cluster := ""
	if len(runs) > 0 {
		cluster = runs[len(runs)-1].job.Cluster
	}
	if err := g.ask(ctx, cluster); err != nil {
		return err
	}
	for _, job := range g.aliveJobs() {
		run := arrayRun{job: slurm.ArrayJob{ID: job, Cluster: cluster}} // who submitted it didn't live to note it
		if i := slices.IndexFunc(runs, func(r arrayRun) bool { return r.job.ID == job }); i >= 0 {
			run = runs[i]
		}
		g.arrays = append(g.arrays, run)
		g.array.Tell(fmt.Sprintf("job array %s of an earlier call is waited for", job))
	}
	if g.alive() {
		return nil
	}
	if err := g.folder.forgetFailures(); err != nil {
		return err
	}
	clear(g.look.failed)
	return nil
}

// submitted returns the arrays of the folder that Slurm took, by number.
func (f *Folder) submitted() ([]arrayRun, error) {
	var all []arrayRun
	err := f.eachFile(tasksFolder, func(name string) error {
		number, ok := strings.CutSuffix(name, ".job")
		if !ok {
			return nil
		}
		run := arrayRun{}
		var err error
		if run.number, err = strconv.Atoi(number); err != nil {
			return nil //nolint:nilerr // not ours
		}
		for file, to := range map[string]any{".job": &run.job, ".json": &run.shares} {
			text, err := os.ReadFile(f.file(tasksFolder, number+file))
			if err == nil {
				err = json.Unmarshal(text, to)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.file(tasksFolder, number+file), pathless(err))
			}
		}
		all = append(all, run)
		return nil
	})
	slices.SortFunc(all, func(a, b arrayRun) int { return a.number - b.number })
	return all, err
}

// ask asks Slurm how the tasks are.
func (g *gathering) ask(ctx context.Context, cluster string) error {
	g.asked = g.took
	tasks, unread, err := g.array.Slurm.ArrayTasks(ctx, os.Getuid(), g.folder.jobName(), cluster)
	if err != nil {
		return err
	}
	if unread.Records > 0 && unread.Reason != g.unread {
		g.array.Tell(fmt.Sprintf("%d of slurm's lines can't be read and may be of tasks that wait: %s",
			unread.Records, unread.Reason))
	}
	g.unread = unread.Reason
	g.state.Running, g.state.Waiting = 0, unread.Records
	clear(g.states)
	for _, task := range tasks {
		g.states[jobTask{task.Job, task.Task}] = task.State
		switch {
		case task.State.Ended():
		case task.State.Base == slurm.Pending:
			g.state.Waiting++
		default:
			g.state.Running++
		}
	}
	return nil
}

// alive reports whether any task waited or ran when Slurm was asked last.
func (g *gathering) alive() bool { return g.state.Running+g.state.Waiting > 0 }

// aliveJobs returns the arrays of which a task waited or ran when Slurm was asked last.
func (g *gathering) aliveJobs() []slurm.JobID {
	var all []slurm.JobID
	for task, state := range g.states {
		if !state.Ended() {
			all = append(all, task.job)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// submit has an array do parts.
func (g *gathering) submit(ctx context.Context, parts []int) error {
	number, shares, err := g.folder.newArray(parts, g.array.Tasks)
	if err != nil {
		return err
	}
	script := g.folder.script(number)
	if err := g.folder.replace(script, []byte(g.array.Command.Script(g.folder.path, number))); err != nil {
		return err
	}
	// Once Slurm was asked, its answer must be known: what it took is to be cancelled.
	job, err := g.array.Slurm.SubmitArray(context.WithoutCancel(ctx), script, g.folder.jobName(),
		g.folder.outputOf(number), len(shares), g.array.Options...)
	if err != nil {
		return err
	}
	g.arrays = []arrayRun{{number, job, shares}}
	g.state.Waiting, g.asked = len(shares), g.took
	text, err := json.Marshal(job)
	if err == nil {
		err = g.folder.replace(g.folder.file(tasksFolder, strconv.Itoa(number)+".job"), text)
	}
	again := ""
	if len(g.tries) > 0 {
		again = " once more"
	}
	g.array.Tell(fmt.Sprintf("job array %s does %d of %d parts%s in %d tasks", job.ID, len(parts),
		len(g.folder.m.Parts), again, len(shares)))
	return err
}

// await waits until nothing is missing or nobody is at it.
func (g *gathering) await(ctx context.Context) error {
	settling := 0
	for {
		g.state.Done, g.state.Total = g.look.known, len(g.folder.m.Parts)
		g.state.Failed = count(g.look.failed)
		g.state.Done -= g.state.Failed
		g.array.Show(g.state)
		if len(g.open()) == 0 || settling > settleLooks {
			return nil
		}
		if settling > 0 {
			settling++
		}
		pause := min(max(minLook, g.took/lookShare), maxLook)
		if err := g.array.Wait(ctx, pause); err != nil {
			return err
		}
		g.took += pause
		if err := g.look.update(g.folder); err != nil {
			return err
		}
		if g.took-g.asked < min(max(minAsk, g.took/askShare), maxAsk) || settling > 0 {
			continue
		}
		if err := g.ask(ctx, g.cluster()); err != nil {
			if ctx.Err() == nil && !g.deaf {
				g.array.Tell(fmt.Sprintf("slurm doesn't say how the tasks are, which are waited for: %v", err))
			}
			g.deaf = true
			continue
		}
		g.deaf = false
		if !g.alive() {
			settling = 1
		}
	}
}

func count(list []bool) (n int) {
	for _, is := range list {
		if is {
			n++
		}
	}
	return n
}

func (g *gathering) cluster() string {
	if len(g.arrays) == 0 {
		return ""
	}
	return g.arrays[len(g.arrays)-1].job.Cluster
}

// assess gives up the parts of which nothing will come: those of tasks that somebody cancelled, those of
// tasks that ended by themselves with an error, and those that were begun too often.
func (g *gathering) assess() {
	missing := make(map[int]bool)
	for _, i := range g.open() {
		missing[i] = true
	}
	unknown := false // what one of the arrays was to do
	for _, run := range g.arrays {
		unknown = unknown || run.shares == nil
		for k, share := range run.shares {
			share = slices.DeleteFunc(slices.Clone(share), func(i int) bool { return !missing[i] })
			for _, i := range share {
				delete(missing, i)
			}
			g.assessTask(&run, k, share)
		}
	}
	for i := range missing { // of tasks that nobody knows, or to be done yet
		if !unknown {
			break
		}
		if g.tries[i]++; g.tries[i] >= maxTries {
			g.givenUp[i] = fmt.Sprintf("not done in %d tries", g.tries[i])
		}
	}
	g.state.Running, g.state.Waiting = 0, 0
}

// assessTask looks at what a task hasn't done of its share.
func (g *gathering) assessTask(run *arrayRun, k int, missing []int) {
	task := taskName(run.number, k)
	status, ended := g.folder.ended(task)
	begun := g.folder.begun(task)
	for _, i := range missing {
		g.tries[i] += begun[i]
		if len(begun) == 0 {
			g.tries[i]++ // it never came to any
		}
		switch {
		case g.states[jobTask{run.job.ID, k}].Base == slurm.Cancelled:
			g.givenUp[i] = g.taskText(run, k, task) + " was cancelled"
		case ended && status > 0 && status <= signalStatus:
			g.givenUp[i] = fmt.Sprintf("%s ended: %s", g.taskText(run, k, task), g.folder.lastLine(task))
		case g.tries[i] >= maxTries:
			g.givenUp[i] = fmt.Sprintf("not done in %d tries, the last one by %s", g.tries[i],
				g.taskText(run, k, task))
		}
		if g.givenUp[i] != "" {
			g.status[i] = status
		}
	}
}

// taskText names a task as Slurm does, how it ended if Slurm still knows that, and
// where its output is.
func (g *gathering) taskText(run *arrayRun, k int, task string) string {
	how := ""
	if state, known := g.states[jobTask{run.job.ID, k}]; known && state.Base != slurm.Completed {
		how = ", " + string(state.Base)
	}
	return fmt.Sprintf("job %s_%d (%s%s)", run.job.ID, k, g.folder.log(task), how)
}

// cancel cancels what was submitted or found.
func (g *gathering) cancel(ctx context.Context) {
	ctx, end := context.WithTimeout(ctx, cancelTime)
	defer end()
	for _, run := range g.arrays {
		text := fmt.Sprintf("job array %s is cancelled", run.job.ID)
		if err := g.array.Slurm.Cancel(ctx, run.job); err != nil {
			text = fmt.Sprintf("job array %s isn't cancelled, and goes on: %v", run.job.ID, err)
		}
		g.array.Tell(text)
	}
}

// PartsError is a sweep of which some parts aren't done.
type PartsError struct {
	Parts []FailedPart
	Total int
}

// FailedPart is a part that isn't done.
type FailedPart struct {
	Name    string
	Message string
	Status  int // exit status; 0: nobody knows
}

const maxFailures = 10

// Error names the parts that failed, a line each.
func (e *PartsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d parts failed:", len(e.Parts), e.Total)
	for i, part := range e.Parts {
		if i == maxFailures {
			fmt.Fprintf(&b, "\n  … and %d more", len(e.Parts)-maxFailures)
			break
		}
		fmt.Fprintf(&b, "\n  %s: ", part.Name)
		if part.Status != 0 {
			fmt.Fprintf(&b, "exit status %d: ", part.Status)
		}
		first, _, _ := strings.Cut(part.Message, "\n")
		b.WriteString(first)
	}
	return b.String()
}

// report is the error of a sweep that has come to its end; g is nil where nothing was given up.
func (f *Folder) report(l *look, g *gathering) error {
	failed := &PartsError{Total: len(f.m.Parts)}
	for i, name := range f.m.Parts {
		if l.done[i] {
			continue
		}
		if g != nil && g.givenUp[i] != "" && !l.failed[i] {
			failed.Parts = append(failed.Parts, FailedPart{name, g.givenUp[i], g.status[i]})
			continue
		}
		why, err := f.failure(i)
		if err != nil {
			return err
		}
		if why == nil {
			why = &Failure{Message: "it isn't there any more"}
		}
		failed.Parts = append(failed.Parts, FailedPart{name, why.Message, why.Status})
	}
	if len(failed.Parts) == 0 {
		return nil
	}
	return failed
}
