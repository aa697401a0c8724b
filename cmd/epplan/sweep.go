package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/cmd/internal/dryrun"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/sweep"
	"github.com/epplan/epplan/slurm"
)

const (
	arrayFlagName  = "slurm-array"
	sbatchArgsFlag = "sbatch-args"
	programFlag    = "slurm-epplan"
)

// usualTasks is how many tasks an array has at most unless it is said.
const usualTasks = 100

// sweepFlags have a command's work done by a job array.
func sweepFlags() []cli.Flag {
	return []cli.Flag{
		atLeast(&cli.IntFlag{
			Name: arrayFlagName, DefaultText: "as many as there are parts, up to 100",
			Usage: "have Slurm do the work in a job array; `[=N]`: in N tasks at most",
		}, 0),
		&cli.StringFlag{
			Name: sweep.FolderFlag, DefaultText: "epplan-sweep-… in the working directory",
			Usage: "of --slurm-array: `FOLDER` that all nodes share, for what is done already",
		},
		&cli.StringSliceFlag{
			Name: sbatchArgsFlag, Usage: "of --slurm-array: further `OPTIONS` of sbatch, such as " +
				"'--partition=cpu --time=2:00:00'; repeat it for more",
		},
		&cli.StringFlag{
			Name: programFlag, DefaultText: "this program's own path",
			Usage: "of --slurm-array: `PATH` of epplan on the nodes",
		},
		dryrun.Flag(),
		&cli.StringFlag{Name: sweep.TaskFlag, Hidden: true},
	}
}

// partedWork is work of many parts, each a T, that don't need each other. T is written to files.
type partedWork[T any] struct {
	label   string                                       // of the line that says how far it is; empty: none
	names   []string                                     // of the parts, in words
	atOnce  int                                          // 0: as many as processors
	prepare func(ctx context.Context, parts []int) error // nil: nothing is to be prepared
	do      func(ctx context.Context, i int) (T, error)
}

// here does all parts in this process.
func (w *partedWork[T]) here(ctx context.Context, progress *report.Progress) ([]T, error) {
	if w.prepare != nil {
		all := make([]int, len(w.names))
		for i := range all {
			all[i] = i
		}
		if err := w.prepare(ctx, all); err != nil {
			return nil, err
		}
	}
	values := make([]T, len(w.names))
	return values, sideBySide(ctx, w.atOnce, len(w.names), func(ctx context.Context, i int) (err error) {
		defer progress.Add(1)
		values[i], err = w.do(ctx, i)
		return err
	})
}

// isSweep reports whether a command's work is done in parts that are kept.
func isSweep(c *cli.Context) bool { return c.IsSet(arrayFlagName) || c.IsSet(sweep.TaskFlag) }

// errSwept says that a command has done what it is to do, without a result.
var errSwept = errors.New("done, without a result")

// swept is a command whose work eachPart does.
func swept(command func(*terminal, *cli.Context) error) func(*terminal, *cli.Context) error {
	return func(t *terminal, c *cli.Context) error {
		if !isSweep(c) {
			if err := refuse(c, "is of --"+arrayFlagName+", want that too", sweep.FolderFlag, sbatchArgsFlag,
				programFlag, "dry-run"); err != nil {
				return err
			}
		}
		if err := command(t, c); !errors.Is(err, errSwept) {
			return err
		}
		return nil
	}
}

// eachPart does work, here or by Slurm, as the flags say. In a task of an array, which does
// some of the parts, and where it only says what would be done, it returns errSwept.
func eachPart[T any](t *terminal, c *cli.Context, w *partedWork[T]) ([]T, error) {
	if !isSweep(c) {
		progress := report.NewProgress(t.stderr, t.progress && w.label != "", t.now, w.label, len(w.names))
		defer progress.Finish()
		return w.here(c.Context, progress)
	}
	s, err := newSweeping(t, c, w.names)
	if err != nil {
		return nil, err
	}
	folder, err := s.run(&sweep.Work{
		Prepare: w.prepare, AtOnce: w.atOnce,
		Do: func(ctx context.Context, i int) ([]byte, error) {
			value, err := w.do(ctx, i)
			if err != nil {
				return nil, err
			}
			return sweep.Encode(value)
		},
		Status: func(err error) int { return (&terminal{stderr: io.Discard}).finish(context.Background(), err) },
	})
	if err != nil {
		return nil, err
	}
	values := make([]T, len(w.names))
	for i := range values {
		text, err := folder.Part(i)
		if err == nil {
			err = sweep.Decode(text, &values[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// sweeping is a command whose work is done in parts that are kept.
type sweeping struct {
	t        *terminal
	c        *cli.Context
	manifest sweep.Manifest
	command  sweep.Command
	options  []string      // of sbatch
	client   *slurm.Client // nil: there is no Slurm
}

func newSweeping(t *terminal, c *cli.Context, parts []string) (*sweeping, error) {
	s := &sweeping{t: t, c: c, client: sweep.FindSlurm()}
	inputs, err := sweep.ReadInputs(t.sources)
	if errors.Is(err, sweep.ErrStream) || slices.Contains(t.sources, "-") {
		return nil, usagef("standard input or a pipe is read, want files with --%s: every task reads them",
			arrayFlagName)
	}
	if err != nil {
		return nil, err
	}
	program, name, err := sweep.ThisProgram("epplan", version)
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	s.command = sweep.Command{
		Program: cmp.Or(c.String(programFlag), program), Dir: dir, Options: sweptOptions(c),
		Operands: c.Args().Slice(),
	}
	s.manifest = sweep.Manifest{
		Program: name, Inputs: inputs, Parts: parts,
		Command: slices.Concat(s.command.Options, []string{"--"}, s.command.Operands),
	}
	for _, text := range c.StringSlice(sbatchArgsFlag) {
		s.options = append(s.options, slurm.ShellWords(text)...)
	}
	for _, word := range s.options {
		if name, _, _ := strings.Cut(word, "="); name == "--array" || strings.HasPrefix(word, "-a") {
			return nil, usagef("--%s has %s, want none: --%s=N says how many tasks there are", sbatchArgsFlag, word,
				arrayFlagName)
		}
	}
	return s, nil
}

// unsweptFlags are those that say nothing about the parts: how they are shown, and who does them.
var unsweptFlags = []string{
	arrayFlagName, sweep.FolderFlag, sweep.TaskFlag, sbatchArgsFlag, programFlag, "dry-run", "json", "csv",
	"html", "svg", "curve", "jobs",
}

// sweptOptions are a command and its flags, as one may type them, that say what its parts are.
func sweptOptions(c *cli.Context) []string {
	words := []string{c.Command.Name}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(unsweptFlags, name) {
			continue
		}
		switch f.(type) {
		case *cli.BoolFlag:
			words = append(words, fmt.Sprintf("--%s=%t", name, c.Bool(name)))
		case *cli.StringSliceFlag:
			for _, value := range c.StringSlice(name) {
				words = append(words, "--"+name+"="+value)
			}
		default:
			words = append(words, fmt.Sprintf("--%s=%v", name, c.Value(name)))
		}
	}
	return words
}

// run has the work done, and returns the folder with what the parts came to.
func (s *sweeping) run(w *sweep.Work) (*sweep.Folder, error) {
	path := cmp.Or(s.c.String(sweep.FolderFlag), "epplan-sweep-"+s.manifest.ID())
	if dryrun.IsSet(s.c) {
		return nil, s.announce(path)
	}
	s.t.keepsPartial.Store(true) // it ends by itself: what was submitted is cancelled
	if task := s.c.String(sweep.TaskFlag); task != "" {
		folder, err := sweep.Join(path, &s.manifest)
		if err == nil {
			err = folder.RunTask(s.c.Context, task, w)
		}
		return nil, cmp.Or(err, errSwept)
	}
	folder, err := sweep.Open(path, &s.manifest)
	if _, ok := errors.AsType[*sweep.OtherSweepError](err); ok {
		return nil, withHint(err, "take another --"+sweep.FolderFlag+", or what that sweep was begun with")
	}
	if err != nil {
		return nil, err
	}
	err = s.work(folder, w)
	switch {
	case s.c.Err() != nil:
		s.t.notef("what is done is kept in %s: the same command goes on from there", folder.Path())
	case err == nil:
		s.t.notef("all parts are done, and kept in %s", folder.Path())
	}
	if failed, ok := errors.AsType[*sweep.PartsError](err); ok {
		hint := "what is done is kept in " + folder.Path() + ": the same command tries the rest again"
		if slices.ContainsFunc(failed.Parts, func(p sweep.FailedPart) bool {
			return strings.Contains(p.Message, string(slurm.Timeout))
		}) {
			hint += "; --" + sbatchArgsFlag + " --time=4:00:00 gives tasks longer"
		}
		err = withHint(err, hint)
	}
	return folder, err
}

func (s *sweeping) work(folder *sweep.Folder, w *sweep.Work) error {
	line := &sweep.Line{Now: s.t.now, Print: s.tell}
	if s.t.progress {
		line.Progress = report.NewProgress(s.t.stderr, true, s.t.now, "sweep", len(s.manifest.Parts))
		defer line.Progress.Finish()
	}
	if s.client == nil {
		s.t.notef("no sbatch on the PATH: this machine does all of %s", plural(len(s.manifest.Parts), "part"))
		return folder.RunHere(s.c.Context, w, line.Show)
	}
	tasks, err := s.mostTasks()
	if err != nil {
		return err
	}
	return folder.Gather(s.c.Context, &sweep.Array{
		Slurm: s.client, Tasks: tasks, Options: s.options, Command: s.command, Tell: s.tell, Show: line.Show,
	})
}

// mostTasks is how many tasks an array may have.
func (s *sweeping) mostTasks() (int, error) {
	tasks := cmp.Or(s.c.Int(arrayFlagName), usualTasks)
	if s.client == nil {
		return tasks, nil
	}
	most, err := s.client.MaxArrayTasks(s.c.Context)
	if err != nil {
		return tasks, withHint(err, "without --"+arrayFlagName+" this machine does the work")
	}
	return min(tasks, most), nil
}

// announce says what would be submitted.
func (s *sweeping) announce(path string) error {
	folder, err := sweep.Describe(path, &s.manifest)
	if err != nil {
		return err
	}
	tasks, err := s.mostTasks()
	if err != nil { // the script doesn't depend on it
		s.t.warn([]error{err})
	}
	parts := plural(len(s.manifest.Parts), "part")
	if s.client == nil {
		s.t.notef("no sbatch on the PATH: this machine would do all of %s", parts)
	} else {
		words := append([]string{"sbatch"}, folder.SbatchArgs(1, min(tasks, len(s.manifest.Parts)),
			s.options...)...)
		s.t.notef("would do %s by %s", parts, strings.Join(textsOf(words, slurm.ShellQuote), " "))
	}
	return cmp.Or(s.t.printText(s.command.Script(folder.Path(), 1)), errSwept)
}

// tell prints a line above the one that says how far it is.
func (s *sweeping) tell(text string) {
	if s.t.progress {
		_, _ = io.WriteString(s.t.stderr, "\r\x1b[K")
	}
	s.t.message("note", text)
}
