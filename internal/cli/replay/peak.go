package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/epplan/epplan/planner"
)

// gpuUse is GPUs that a job held from a time to another.
type gpuUse struct {
	From, To time.Time
	GPUs     int
	Model    string // "": not known
}

// peak is the most GPUs in use at once, and the first time at which that many were.
type peak struct {
	GPUs int
	At   time.Time
}

// peaks returns the peak of each GPU model, and under "" that of all uses together. GPUs that are given
// back when others are taken aren't in use at once.
func peaks(uses []gpuUse) map[string]peak {
	type change struct {
		at    time.Time
		gpus  int // negative: given back
		model string
	}
	changes := make([]change, 0, 2*len(uses))
	for _, u := range uses {
		if u.To.After(u.From) {
			changes = append(changes, change{u.From, u.GPUs, u.Model}, change{u.To, -u.GPUs, u.Model})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.gpus, b.gpus))
	})
	now, most := make(map[string]int), make(map[string]peak)
	count := func(model string, c *change) {
		now[model] += c.gpus
		if now[model] > most[model].GPUs {
			most[model] = peak{now[model], c.at}
		}
	}
	for i := range changes {
		c := &changes[i]
		count("", c)
		if c.model != "" {
			count(c.model, c)
		}
	}
	return most
}

// peakUse is a peak of a log beside the GPUs of a cluster.
type peakUse struct {
	Model   string    `json:"gpu_model"` // "": all together
	Log     int       `json:"log_peak_gpus"`
	Cluster int       `json:"cluster_gpus"`
	At      time.Time `json:"at"`
}

// String says what the log had, when, and what the cluster has.
func (p peakUse) String() string {
	what := "GPUs"
	if p.Log == 1 {
		what = "GPU"
	}
	if p.Model != "" {
		what += " of " + p.Model
	}
	return fmt.Sprintf("%d %s in use at once (%s), the cluster has %d", p.Log, what, p.At.Format(time.DateTime),
		p.Cluster)
}

// peaksBeyondCluster returns the peaks that the cluster can't have had. If those of one model are all there are,
// their sum isn't among them.
func peaksBeyondCluster(peaks []peakUse) []peakUse {
	over := slices.DeleteFunc(slices.Clone(peaks), func(p peakUse) bool { return p.Log <= p.Cluster })
	if len(over) == 2 && over[0].Model == "" && over[0].Log == over[1].Log {
		return over[1:]
	}
	return over
}

// peakUses compares the peaks of uses with the GPUs of a cluster, all together first, then by GPU model.
// It is empty for a cluster with as many nodes as wanted.
func peakUses(uses []gpuUse, cluster *planner.Cluster) []peakUse {
	gpus := make(map[string]int)
	for i := range cluster.Classes {
		k := &cluster.Classes[i]
		if k.Count == 0 {
			return nil
		}
		gpus[k.Model] += k.Count * k.GPUs
		gpus[""] += k.Count * k.GPUs
	}
	peaks := peaks(uses)
	all := make([]peakUse, 0, len(peaks))
	for _, model := range slices.Sorted(maps.Keys(peaks)) {
		all = append(all, peakUse{
			Model: model, Log: peaks[model].GPUs, Cluster: gpus[model], At: peaks[model].At,
		})
	}
	return all
}

// scaledCluster returns a cluster with the nodes of each class times a factor, rounded up.
func scaledCluster(cluster planner.Cluster, factor float64) planner.Cluster {
	const rounding = 1e-9
	cluster.Classes = slices.Clone(cluster.Classes)
	for i := range cluster.Classes {
		k := &cluster.Classes[i]
		k.Count = int(math.Ceil(float64(float64(k.Count)*factor) - rounding))
	}
	return cluster
}
