package jobarray

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/lab/sweep"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// usualTasks is how many tasks an array has at most unless it is said.
const usualTasks = 100

// ErrNoResult means that a command has done what it is to do, and has nothing to print: it was a
// task of an array, or only said what would be done.
var ErrNoResult = errors.New("done, without a result")

// Terminal is where a command says how far it is.
type Terminal struct {
	Stderr io.Writer
	IsLive bool // stderr is a terminal
	Now    func() time.Time
	Note   func(text string)
}

// Job is a command's work.
type Job struct {
	Version string   // of the program
	Inputs  []string // files that were read so far, as they were named
	Parts   []string // what each part is, in words
	Work    sweep.Work
}

// run is a job while it is done.
type run struct {
	*Job
	t        *Terminal
	c        *cli.Context
	manifest sweep.Manifest
	command  sweep.Command
	client   *slurm.Client // nil: there is no Slurm
}

// Run has a job done as the flags of a command say, which Check has seen, and returns the
// folder with what its parts came to; ErrNoResult where that isn't for this process to print.
func (j *Job) Run(c *cli.Context, t *Terminal) (*sweep.Folder, error) {
	r, err := j.begin(c, t)
	if err != nil {
		return nil, err
	}
	path := cmp.Or(c.String(sweep.FolderFlag), "epplab-sweep-"+r.manifest.ID())
	if terminal.IsDryRun(c) {
		return nil, r.announce(path)
	}
	if task := c.String(sweep.TaskFlag); task != "" {
		folder, err := sweep.Join(path, &r.manifest)
		if err == nil {
			err = folder.RunTask(c.Context, task, &r.Work)
		}
		return nil, cmp.Or(err, ErrNoResult)
	}
	folder, err := sweep.Open(path, &r.manifest)
	if _, ok := errors.AsType[*sweep.OtherSweepError](err); ok {
		return nil, &Error{
			Err: err, Hint: "take another --" + sweep.FolderFlag + ", or what that sweep was begun with",
		}
	}
	if err != nil {
		return nil, err
	}
	err = r.gather(folder)
	switch {
	case c.Err() != nil:
		t.Note("what is done is kept in " + folder.Path() + ": the same command goes on from there")
	case err == nil:
		t.Note("all parts are done, and kept in " + folder.Path())
	}
	if failed, ok := errors.AsType[*sweep.PartsError](err); ok {
		hint := "what is done is kept in " + folder.Path() + ": the same command tries the rest again"
		if slices.ContainsFunc(failed.Parts, func(p sweep.FailedPart) bool {
			return strings.Contains(p.Message, string(slurm.Timeout))
		}) {
			hint += "; --" + sbatchFlag + " --time=4:00:00 gives tasks longer"
		}
		err = &Error{Err: err, Hint: hint}
	}
	return folder, err
}

// begin finds out what the parts follow from.
func (j *Job) begin(c *cli.Context, t *Terminal) (*run, error) {
	inputs, err := sweep.ReadInputs(j.Inputs)
	if errors.Is(err, sweep.ErrStream) || slices.Contains(j.Inputs, "-") {
		return nil, usagef("standard input or a pipe is read, want files with --%s: every task reads them",
			ArrayFlag)
	}
	if err != nil {
		return nil, err
	}
	program, name, err := sweep.ThisProgram("epplab", j.Version)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	r := &run{Job: j, t: t, c: c, client: sweep.FindSlurm()}
	r.command = sweep.Command{
		Program: cmp.Or(c.String(programFlag), program), Dir: dir, Options: options(c),
		Operands: c.Args().Slice(),
	}
	r.manifest = sweep.Manifest{
		Program: name, Inputs: inputs, Parts: j.Parts,
		Command: slices.Concat(r.command.Options, []string{"--"}, r.command.Operands),
	}
	return r, nil
}

// parts returns how many there are, in words.
func (r *run) parts() string { return report.Plural(len(r.Parts), "part") }

// gather has job arrays, or this machine, do what isn't done yet.
func (r *run) gather(folder *sweep.Folder) error {
	line := &sweep.Line{Now: r.t.Now, Print: r.tell}
	if r.t.IsLive {
		line.Progress = report.NewProgress(r.t.Stderr, true, r.t.Now, "sweep", len(r.Parts))
		defer line.Progress.Finish()
	}
	if r.client == nil {
		r.t.Note("no sbatch on the PATH: this machine does all of " + r.parts())
		return folder.RunHere(r.c.Context, &r.Work, line.Show)
	}
	tasks, err := r.mostTasks()
	if err != nil {
		return err
	}
	return folder.Gather(r.c.Context, &sweep.Array{
		Slurm: r.client, Tasks: tasks, Options: sbatchOptions(r.c), Command: r.command, Tell: r.tell,
		Show: line.Show,
	})
}

// mostTasks returns how many tasks an array may have.
func (r *run) mostTasks() (int, error) {
	tasks := cmp.Or(r.c.Int(ArrayFlag), usualTasks)
	if r.client == nil {
		return tasks, nil
	}
	most, err := r.client.MaxArrayTasks(r.c.Context)
	if err != nil {
		return tasks, &Error{Err: err, Hint: "without --" + ArrayFlag + " this machine does the work"}
	}
	return min(tasks, most), nil
}

// announce says what would be submitted.
func (r *run) announce(path string) error {
	folder, err := sweep.Describe(path, &r.manifest)
	if err != nil {
		return err
	}
	tasks, err := r.mostTasks()
	if err != nil { // the script doesn't depend on it
		r.t.Note(err.Error())
	}
	if r.client == nil {
		r.t.Note("no sbatch on the PATH: this machine would do all of " + r.parts())
	} else {
		words := folder.SbatchArgs(1, min(tasks, len(r.Parts)), sbatchOptions(r.c)...)
		for i, word := range words {
			words[i] = hooks.ShellQuote(word)
		}
		r.t.Note(fmt.Sprintf("would do %s by sbatch %s", r.parts(), strings.Join(words, " ")))
	}
	_, err = io.WriteString(r.c.App.Writer, r.command.Script(folder.Path(), 1))
	return cmp.Or(err, ErrNoResult)
}

// tell prints a line above the one that says how far it is.
func (r *run) tell(text string) {
	if r.t.IsLive {
		_, _ = io.WriteString(r.t.Stderr, "\r\x1b[K")
	}
	r.t.Note(text)
}
