package sweep

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// Command is how a task is begun on another machine.
type Command struct {
	Program  string   // its path there
	Dir      string   // the working directory, absolute
	Options  []string // of the program: commands and flags; the folder and the task come behind them
	Operands []string // behind all flags
}

// TaskFlags are the flags of a command that does a task: the sweep's folder, and the task.
const (
	FolderFlag = "slurm-dir"
	TaskFlag   = "slurm-task"
)

// Script returns the batch script of an array's tasks, for a POSIX shell.
func (c *Command) Script(folder string, array int) string {
	return fmt.Sprintf(`#!/bin/sh
# Array %[1]d of a sweep by epplan. A task may run twice: what is done is left as it is.
folder=%[2]s
task="%[1]d_$SLURM_ARRAY_TASK_ID"
GOMAXPROCS="${SLURM_CPUS_ON_NODE:-1}"
export GOMAXPROCS
cd -- %[3]s &&
	%[4]s "--%[5]s=$folder" "--%[6]s=$task" -- %[8]s
status=$?
echo "$status" >"$folder/%[7]s/$task.ended"
exit "$status"
`, array, hooks.ShellQuote(folder), hooks.ShellQuote(c.Dir),
		quoteAll(append([]string{c.Program}, c.Options...)), FolderFlag, TaskFlag, tasksFolder,
		quoteAll(c.Operands))
}

// quoteAll makes texts words of a shell's command.
func quoteAll(texts []string) string {
	words := make([]string, len(texts))
	for i, text := range texts {
		words[i] = hooks.ShellQuote(text)
	}
	return strings.Join(words, " ")
}

// SbatchArgs are sbatch's arguments for an array of the sweep in a folder, given by its absolute path.
func (f *Folder) SbatchArgs(array, tasks int, options ...string) []string {
	return slurm.SubmitArrayArgs(f.script(array), f.jobName(), f.outputOf(array), tasks, options...)
}

// script returns where an array's script is.
func (f *Folder) script(array int) string { return f.file(tasksFolder, strconv.Itoa(array)+".sh") }

// outputOf returns where tasks of an array print to, as sbatch's --output has it, which fills in what
// follows a %.
func (f *Folder) outputOf(array int) string {
	return strings.ReplaceAll(f.file(tasksFolder, ""), "%", "%%") + fmt.Sprintf("/%d_%%a.log", array)
}
