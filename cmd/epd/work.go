package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// workLook is how often work looks whether it is done.
const workLook = 50 * time.Millisecond

// The power of made-up work at the clocks of the model, as a V100 draws it.
const (
	workStatic  dvfsmodel.Watt = 50
	workMemory  dvfsmodel.Watt = 20
	workDynamic dvfsmodel.Watt = 130
)

// workCommand returns what jobs of a lab run in place of a program that uses GPUs.
func workCommand(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:      "work",
		Usage:     "keep simulated GPUs busy, as a job of a lab would",
		UsageText: "epd work [OPTIONS]",
		Description: "Ends when the work is done, which takes the longer the lower the clocks are. There " +
			"is nothing on real GPUs\n" +
			"that it does.\nExample: EPD_GPU=sim:4 EPD_STATE=/tmp/epd epd work --gpus 0 --seconds 5",
		HideHelpCommand: true,
		OnUsageError:    refuseUsage,
		Flags: append([]cli.Flag{
			&cli.StringFlag{
				Name: "gpus", EnvVars: []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"},
				Usage: "`INDEXES` of the GPUs, separated by commas; Slurm tells its steps and jobs theirs",
				Value: "0",
			},
			&cli.Float64Flag{
				Name: "seconds", Usage: "`SECONDS` that it takes at the highest clocks", Value: 10,
			},
			&cli.Float64Flag{
				Name: "core-bound", Usage: "`PART` of the time that follows the core clock, from 0 to 1",
				Value: 0.3,
			},
			&cli.Float64Flag{
				Name: "scatter", Usage: "deviation of the `LOGARITHM` of the work from run to run",
				Value: 0.02,
			},
		}, gpuFlags()...),
		Action: func(c *cli.Context) error { return simulateWork(c, stdout) },
	}
}

// simulateWork does work on the simulated GPUs that the flags name, until it is done or
// the program is told to end.
func simulateWork(c *cli.Context, stdout io.Writer) error {
	if c.Args().Present() {
		return usagef("work takes no arguments, got %q", c.Args().First())
	}
	model, err := workModel(c)
	if err != nil {
		return err
	}
	sims, err := workGPUs(c)
	if err != nil {
		return err
	}
	began, pid := time.Now(), os.Getpid()
	for _, s := range sims {
		if err := s.Run(gpu.Work{PID: pid, Model: model}); err != nil {
			return fmt.Errorf("begin the work: %w", err)
		}
		defer s.Stop(pid) //nolint:errcheck // what is done is done
	}
	look := time.NewTicker(workLook)
	defer look.Stop()
	for _, s := range sims {
		for busy := true; busy; {
			select {
			case <-c.Done():
				return fmt.Errorf("the work wasn't finished: %w", c.Err())
			case <-look.C:
			}
			if busy, err = isWorking(s, pid); err != nil {
				return fmt.Errorf("look after the work: %w", err)
			}
		}
	}
	_, err = fmt.Fprintf(stdout, "done after %.1f s\n", time.Since(began).Seconds())
	return err
}

// isWorking reports whether a GPU still does the work of a process.
func isWorking(s *gpu.Sim, pid int) (bool, error) {
	all, err := s.Work()
	for i := range all {
		if all[i].PID == pid {
			return true, err
		}
	}
	return false, err
}

// workModel returns the work that the flags describe, with the scatter of a run.
func workModel(c *cli.Context) (dvfsmodel.Params, error) {
	seconds, bound, scatter := c.Float64("seconds"), c.Float64("core-bound"), c.Float64("scatter")
	switch {
	case !(seconds > 0) || math.IsInf(seconds, 0):
		return dvfsmodel.Params{}, usagef("--seconds %v, want more than 0", seconds)
	case !(bound >= 0 && bound <= 1):
		return dvfsmodel.Params{}, usagef("--core-bound %v, want 0 to 1", bound)
	case !(scatter >= 0 && scatter <= 1):
		return dvfsmodel.Params{}, usagef("--scatter %v, want 0 to 1", scatter)
	}
	p := dvfsmodel.Params{P0: workStatic, Gamma: workMemory, C: workDynamic, D: seconds, Delta: bound}
	return p.Scale(math.Exp(scatter * rand.NormFloat64())), nil //nolint:gosec // a simulation
}

// workGPUs returns the simulated GPUs that the flags name.
func workGPUs(c *cli.Context) ([]*gpu.Sim, error) {
	which := c.String("gpu")
	if !isSimulated(which) {
		return nil, usagef("work is for simulated GPUs: --gpu %q, want sim[:COUNT]", which)
	}
	l, err := openSim(which, c.String("state"), nil)
	if err != nil {
		return nil, simError(err)
	}
	all, err := l.Sims()
	if err != nil {
		return nil, err
	}
	var chosen []*gpu.Sim
	for name := range strings.SplitSeq(c.String("gpus"), ",") {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(all) {
			return nil, usagef("--gpus %q, want indexes from 0 to %d, separated by commas",
				c.String("gpus"), len(all)-1)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
