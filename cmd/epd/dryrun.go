package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/statedir"
)

// dryRunSteps returns what an epd with these flags would do. GPUs are opened and looked
// at; nothing is written, locked or listened at.
func (p *program) dryRunSteps() ([]string, error) {
	if err := statedir.Check(p.String("state")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var steps []string
	if p.role != roleAgent {
		s, err := p.readSettings()
		if err != nil {
			return nil, err
		}
		runner, err := slurmRunner(p.String("slurm"), epdapi.QueueWait)
		if err != nil {
			return nil, err
		}
		steps = append(steps, fmt.Sprintf("decide by configuration %s, mode %s, and record in %s", s.Version,
			s.Live.Mode, filepath.Join(p.String("state"), "records.db")))
		if runner != nil {
			steps = append(steps, "ask Slurm for its jobs and nodes")
		}
		if runner != nil && !p.Bool("no-levers") && !s.Live.OnlyObserves() {
			steps = append(steps, "steer Slurm's queue and nodes as the configuration says")
		}
	}
	if p.role != roleController {
		given, err := restoreSteps(filepath.Join(p.String("state"), "journal"))
		if err != nil {
			return nil, err
		}
		gpus, err := gpuSteps(p.Context)
		if err != nil {
			return nil, err
		}
		steps = append(append(steps, given...), gpus...)
	}
	for _, where := range []string{
		p.socket(), p.String("submit-socket"), p.String("listen"),
		p.String("metrics"),
	} {
		if where != "" {
			steps = append(steps, "listen at "+where)
		}
	}
	return steps, nil
}

// gpuSteps returns the GPUs that would be looked after.
func gpuSteps(c *cli.Context) ([]string, error) {
	which := c.String("gpu")
	var l gpu.Library
	var err error
	if isSimulated(which) {
		l, err = gpu.OpenSim(which, config.BuiltinProfiles().Board, nil) // in memory: nothing is written
	} else {
		l, err = openGPUs(c)
	}
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // it was read only
	devices, err := l.Devices()
	var steps []string
	for _, d := range devices {
		if d != nil {
			steps = append(steps, "look after "+d.Identity().String())
		}
	}
	if len(steps) > 0 && err != nil {
		return append(steps, "leave the others alone until they can be opened: "+err.Error()), nil
	}
	return steps, err
}

// restoreSteps returns the journal's GPUs, whose clocks would be given back.
func restoreSteps(journal string) ([]string, error) {
	files, err := os.ReadDir(journal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var steps []string
	if insecure := statedir.Check(journal); insecure != nil {
		steps = append(steps, "change nothing in the journal: "+insecure.Error())
	}
	for _, f := range files {
		if uuid, entry := strings.CutSuffix(f.Name(), ".json"); entry {
			steps = append(steps, "give the clocks of "+uuid+" back, as the journal "+journal+" says")
		}
	}
	return steps, err
}
