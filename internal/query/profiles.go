package query

import (
	"context"
	"fmt"
	"math"

	"github.com/epplan/epplan/internal/epdapi"
)

// maxListed is how many workloads a list of profiles has.
const maxListed = 200

// Profiles returns those of a workload, or of the workloads that ran last. They are for
// operators.
func (s *Service) Profiles(ctx context.Context, who Caller, workload string) (*epdapi.ProfileList, error) {
	if err := Operators.Admits(who); err != nil {
		return nil, err
	}
	counts, err := s.options.Records.Sums.ProfileCounts(ctx, s.options.Cluster, workload, maxListed)
	if err != nil {
		return nil, err
	}
	answer := &epdapi.ProfileList{
		Rules: s.options.Settings().Sharing, Profiles: make([]epdapi.WorkloadProfile, 0, len(counts)),
	}
	for _, n := range counts {
		p, err := s.options.Profile(ctx, n.WorkloadKey)
		if err != nil {
			return nil, fmt.Errorf("profile of workload %s: %w", n.Workload, err)
		}
		shown := *p
		shown.Mean, shown.Low, shown.High = rounded(p.Mean), rounded(p.Low), rounded(p.High)
		answer.Profiles = append(answer.Profiles, epdapi.WorkloadProfile{
			WorkloadKey: n.WorkloadKey, Alone: n.Alone, Shared: n.Shared, Last: n.Last, UseProfile: shown,
		})
	}
	nameWorkloads(ctx, &s.lastJobs, answer.Profiles, func(p *epdapi.WorkloadProfile) (string, *epdapi.LastJob) {
		return p.Workload, &p.LastJob
	})
	return answer, nil
}

// rounded are parts to four digits, which is more than was measured.
func rounded(values []float64) []float64 {
	const digits = 1e4
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Round(v*digits) / digits
	}
	return out
}
