package sweep

import (
	"fmt"
	"strings"

	"github.com/epplan/epplan/slurm"
)

// Command is how a task is begun on another machine.
type Command struct {
	Program string   // its path there
	Dir     string   // the working directory, absolute
	Args    []string // of the command; the folder and the task come behind them
}

// TaskFlags are the flags of a command that does a task: the sweep's folder, and the task.
const (
	FolderFlag = "slurm-dir"
	TaskFlag   = "slurm-task"
)

// Script is the batch script of an array's tasks, for a POSIX shell.
func (c *Command) Script(folder string, array int) string {
	words := make([]string, 0, len(c.Args)+1)
	for _, word := range append([]string{c.Program}, c.Args...) {
		words = append(words, slurm.ShellQuote(word))
	}
	return fmt.Sprintf(`#!/bin/sh
# Array %[1]d of a sweep by epplan. A task may run twice: what is done is left as it is.
folder=%[2]s
task="%[1]d_$SLURM_ARRAY_TASK_ID"
cd -- %[3]s || exit
GOMAXPROCS="${SLURM_CPUS_ON_NODE:-1}"
export GOMAXPROCS
%[4]s "--%[5]s=$folder" "--%[6]s=$task"
status=$?
echo "$status" >"$folder/%[7]s/$task.ended"
exit "$status"
`, array, slurm.ShellQuote(folder), slurm.ShellQuote(c.Dir), strings.Join(words, " "), FolderFlag, TaskFlag,
		tasksFolder)
}

// OutputOf is where tasks of an array print to, as sbatch's --output has it.
func (f *Folder) outputOf(array int) string {
	return slurm.OutputPath(f.file(tasksFolder, "")) + fmt.Sprintf("/%d_%%a.log", array)
}
