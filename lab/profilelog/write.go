// Package profilelog writes profiles of workloads as a log of utilisation that epplan consolidate and
// correlate read.
package profilelog

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/queue"
)

// profiledSample is what a workload used of a GPU from a time on.
type profiledSample struct {
	timeS   float64
	profile *epdapi.WorkloadProfile
	gpu     int
	util    float64 // fraction
}

// samplesOf returns profiles as if each workload had run once, by itself, all of them from the same
// time on.
func samplesOf(list []epdapi.WorkloadProfile) []profiledSample {
	const beforeItsEnd = 1e-3 // seconds
	var all []profiledSample
	for i := range list {
		p := &list[i]
		if p.Runs == 0 || len(p.Mean) == 0 {
			continue
		}
		step := p.TimeS.Mean / float64(len(p.Mean))
		for gpu := range gpusOfWorkload(p.Workload) {
			for slot, util := range p.Mean {
				all = append(all, profiledSample{float64(slot) * step, p, gpu, util})
			}
			all = append(all, profiledSample{
				max(0, p.TimeS.Mean-beforeItsEnd), p, gpu, p.Mean[len(p.Mean)-1],
			})
		}
	}
	slices.SortStableFunc(all, func(a, b profiledSample) int { return cmp.Compare(a.timeS, b.timeS) })
	return all
}

// gpusOfWorkload returns how many GPUs a workload takes: the number after the last x
// of its key.
func gpusOfWorkload(key string) int {
	const most = 64
	n, err := strconv.Atoi(key[strings.LastIndexByte(key, 'x')+1:])
	if err != nil || n < 1 || n > most {
		return 1
	}
	return n
}

// Known returns how many of the workloads were profiled.
func Known(list []epdapi.WorkloadProfile) int {
	known := 0
	for i := range list {
		if list[i].Runs > 0 && len(list[i].Mean) > 0 {
			known++
		}
	}
	return known
}

// Write writes the log: a job for each known workload, with the memory that its next run takes at most.
func Write(w io.Writer, list []epdapi.WorkloadProfile) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"time_s", "job", "gpu", "util_pct", "mem_gb"}) // the writer keeps its error
	for _, s := range samplesOf(list) {
		decimal := func(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }
		_ = out.Write([]string{
			decimal(s.timeS, 3), queue.Printable(s.profile.Workload), strconv.Itoa(s.gpu),
			decimal(100*min(1, max(0, s.util)), 2),
			decimal(s.profile.PeakMem.High.Or(s.profile.PeakMem.Mean)/bytesPerGiB, 3),
		})
	}
	out.Flush()
	return out.Error()
}

const bytesPerGiB = 1 << 30
