// Command standin is what package bigslurm has links to in place of Slurm's commands: a
// program of its own, as it starts ten times for each job that a measurement has begin.
package main

import (
	"os"

	"github.com/epplan/epplan/internal/testkit/bigslurm"
)

func main() { os.Exit(bigslurm.Standin()) }
