package sharing_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/planner/sharing"
)

func TestAStateForgetsWhatWasRemoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := byHand()
		in.Servers = append(in.Servers, sharing.Server{StaticW: 50, OtherW: 5, GPUMemGB: []float64{16, 32}})
		in.Tasks = append(in.Tasks, sharing.Task{
			ID: "c", MemGB: 10, GPUs: 2, Kappa: 1.05, UtilPct: []float64{100, 10},
		})
		s := sharing.NewState(in)
		type at struct{ task, gpu int }
		var there []at
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			if len(there) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				s.Remove(there[i].task, there[i].gpu)
				there = append(there[:i], there[i+1:]...)
				continue
			}
			p := at{rapid.IntRange(0, len(in.Tasks)-1).Draw(t, "task"), rapid.IntRange(0, 3).Draw(t, "gpu")}
			s.Add(p.task, p.gpu)
			there = append(there, p)
		}
		fresh := sharing.NewState(in)
		for _, p := range there {
			fresh.Add(p.task, p.gpu)
		}
		for gpu := range s.GPUs() {
			if s.IsBusy(gpu) != fresh.IsBusy(gpu) || s.Kappa(gpu) != fresh.Kappa(gpu) ||
				len(s.Tasks(gpu)) != len(fresh.Tasks(gpu)) ||
				math.Abs(s.FreeGB(gpu)-fresh.FreeGB(gpu)) > 1e-9 ||
				math.Abs(s.MeanPct(gpu)-fresh.MeanPct(gpu)) > 1e-9 {
				t.Fatalf("GPU %d differs from one that never had more", gpu)
			}
		}
		for server := range in.Servers {
			if s.IsServerOn(server) != fresh.IsServerOn(server) ||
				s.BusyGPUs(server) != fresh.BusyGPUs(server) {
				t.Fatalf("server %d is on: %v", server, s.IsServerOn(server))
			}
		}
	})
}
