package joblog

import (
	"fmt"
	"time"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/planner/join"
	"github.com/epplan/epplan/slurm"
)

// Bounds of what a job can have drawn.
const (
	hostW      = 2000.0 // of the rest of a node whose GPUs a job has, beside others that idle
	plainNodeW = 20_000.0
	// energyLag is how much longer than the job its energy may count: Slurm reads sensors twice a minute.
	energyLag = 30 * time.Second
)

// PowerLimits knows how much GPUs can draw, by their models' names in a log.
type PowerLimits struct {
	profiles *config.Profiles
	known    map[string]float64 // watts by the log's name
}

// NewPowerLimits takes the power limits of GPU models; nil: the built-in ones.
func NewPowerLimits(profiles *config.Profiles) *PowerLimits {
	if profiles == nil {
		profiles = config.BuiltinProfiles()
	}
	return &PowerLimits{profiles, make(map[string]float64)}
}

// of returns the highest power limit of a GPU model, in watts.
func (l *PowerLimits) of(gpuModel string) float64 {
	if w, ok := l.known[gpuModel]; ok {
		return w
	}
	w := float64(join.MaxUnknownBoardPower)
	if profile, err := l.profiles.Lookup(gpuModel); gpuModel != "" && err == nil && profile.PowerLimit.Max > 0 {
		w = float64(profile.PowerLimit.Max)
	}
	l.known[gpuModel] = w
	return w
}

// checkEnergy holds a job's energy against what its GPUs and nodes can draw. One that can't be is unknown.
func (s *jobSink) checkEnergy(p *record.HistoryJob, line int) {
	energy, measured := p.EnergyJ.Get()
	if !measured {
		return
	}
	seconds := p.RunTime().Or(0) + energyLag.Seconds()
	gpus, nodes := p.GPUs.Or(0), max(1, p.Nodes.Or(1))
	ofGPUs, ofHosts := gpus*s.limits.of(p.GPUModel), nodes*hostW
	if gpus == 0 {
		ofHosts = nodes * plainNodeW
	}
	watts := energy / seconds
	switch {
	case watts > ofGPUs+ofHosts:
		s.tally.noteLine(line, kindTooMuch, fmt.Errorf("job %s: %.4g kW in the mean, at most %.4g kW by %v GPUs "+
			"%s and %v nodes", p.JobID, watts/1000, (ofGPUs+ofHosts)/1000, gpus, printable(p.GPUModel), nodes))
		p.EnergyJ = live.Number{}
	case gpus > 0 && watts > ofGPUs && !slurm.IsMIGType(p.GPUModel):
		s.tally.noteLine(line, kindOfNode, fmt.Errorf("job %s: %.4g kW in the mean, its GPUs' limit is %.4g kW",
			p.JobID, watts/1000, ofGPUs/1000))
	}
}

// PerGPU returns a job's mean power by GPU, in watts; unknown where the energy isn't that of its GPUs: of
// parts of a GPU, and beyond the GPUs' power limit.
func (l *PowerLimits) PerGPU(p *record.HistoryJob) live.Number {
	energy, measured := p.EnergyJ.Get()
	runTime, ran := p.RunTime().Get()
	gpus, counted := p.GPUs.Get()
	if !measured || !ran || !counted || gpus == 0 || runTime == 0 || slurm.IsMIGType(p.GPUModel) ||
		energy > gpus*l.of(p.GPUModel)*(runTime+energyLag.Seconds()) {
		return live.Number{}
	}
	return live.Known(energy / runTime / gpus)
}
