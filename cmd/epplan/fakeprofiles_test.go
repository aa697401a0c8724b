package main

import (
	"net/http"

	"github.com/epplan/epplan/internal/colocate"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// fakeProfiles returns a workload that is known, and one that isn't yet.
func fakeProfiles(r *http.Request) any {
	known := epdapi.WorkloadProfile{
		WorkloadKey: record.WorkloadKey{Cluster: "alpha", Workload: fakeWorkload, GPUModel: "V100"}, Alone: 5,
		Shared: 2, Last: fakeBegin,
		LastJob: epdapi.LastJob{ID: 4711, Name: "train", User: "ada", Partition: "gpu"},
		UseProfile: colocate.UseProfile{
			Runs:  5,
			TimeS: colocate.Interval{Mean: 3600, Low: live.Known(3400), High: live.Known(3800)},
			PeakMem: colocate.Interval{
				Mean: 4 * bytesPerGiB, Low: live.Known(3.5 * bytesPerGiB),
				High: live.Known(4.5 * bytesPerGiB),
			},
			MemTotal: 16 * bytesPerGiB,
			Phases: []colocate.Phase{
				{From: 0, To: 0.5, Utilisation: 0.9},
				{From: 0.5, To: 1, Utilisation: 0.1},
			},
		},
	}
	for i := range colocate.Slots {
		u := 0.9
		if i >= colocate.Slots/2 {
			u = 0.1
		}
		known.Mean, known.Low, known.High = append(known.Mean, u), append(known.Low, u-0.05),
			append(known.High, u+0.05)
	}
	fresh := epdapi.WorkloadProfile{
		WorkloadKey: record.WorkloadKey{
			Cluster: "alpha", Workload: "0d6c1f02bb9e4a7788aa01c3x1", GPUModel: "V100",
		}, Alone: 0, Shared: 1, Last: fakeBegin,
		UseProfile: colocate.UseProfile{Unknown: "no run of it had its GPUs alone from start to end"},
	}
	all := epdapi.ProfileList{
		Rules: colocate.Rules{Runs: 3, Spread: 0.25, Slowdown: 1.2}, Profiles: []epdapi.WorkloadProfile{},
	}
	for _, p := range []epdapi.WorkloadProfile{known, fresh} {
		if asked := r.URL.Query().Get("workload"); asked == "" || asked == p.Workload {
			all.Profiles = append(all.Profiles, p)
		}
	}
	return all
}

// fakeShared returns how nodes suit a job: beside one in antiphase, alone, and not.
func fakeShared() *colocate.Order {
	return &colocate.Order{Job: 4714, Nodes: []colocate.Node{
		{Name: "n2", Fits: true, Correlation: -0.97, Slowdown: 1.08, Beside: []slurm.JobID{4709}},
		{Name: "n3", Rank: 1, Fits: true, RisesW: 101, Slowdown: 1.18, Beside: []slurm.JobID{}},
		{Name: "n1", Rank: 2, Slowdown: 1, Beside: []slurm.JobID{4708}, Why: "1.40 times the time alone"},
	}}
}
