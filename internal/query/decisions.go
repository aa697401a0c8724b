package query

import (
	"cmp"
	"context"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// Decisions lists decisions on runs in a mode (empty: any), the latest first, from
// before a page's Next on. Users see those of their own latest jobs, in one page.
func (s *Service) Decisions(
	ctx context.Context, who Caller, mode string, before int64, limit int,
) (*epdapi.DecisionList, error) {
	out := &epdapi.DecisionList{Decisions: []epdapi.JobDecision{}}
	limit = min(cmp.Or(max(limit, 0), pageSize), maxPage)
	var found []record.JobDecision
	var err error
	switch {
	case who.canSeeAll():
		page, listing := s.options.Records.Jobs.LastDecisions(ctx, s.options.Cluster, mode, before, limit)
		found, out.Next, err = page.Decisions, page.Next, listing
	case who.recordName() != "" && before == 0:
		found, err = s.options.Records.Jobs.LastDecisionsOf(ctx, s.options.Cluster, who.recordName(), mode, limit)
	}
	if err != nil {
		return nil, err
	}
	for i := range found {
		out.Decisions = append(out.Decisions, decisionOf(&found[i]))
	}
	return out, nil
}

// decisionOf returns a decision for whoever asks.
func decisionOf(d *record.JobDecision) epdapi.JobDecision {
	out := epdapi.JobDecision{
		Decision: d.Decision, Name: slurm.ValidUTF8(string(d.Name)), User: d.User, Partition: d.Partition,
		Apply: d.Mode == string(live.Enforce) && d.Setting.WithoutProfile() != (dvfsmodel.Setting{}),
	}
	energy, known := d.EnergyJ.Value.Get()
	chosen := d.Setting.WithoutProfile() != dvfsmodel.Setting{}
	if standard, predicted := d.DefaultJ.Get(); known && predicted && chosen {
		out.Would = live.Known(standard - energy)
	}
	return out
}
