package query

import (
	"context"
	"fmt"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
)

// AddHistory stores jobs of a log, all of them or none.
func (s *Service) AddHistory(
	ctx context.Context, who Caller, h *epdapi.History,
) (*epdapi.HistoryAdded, error) {
	if err := Administrators.Admits(who); err != nil {
		return nil, err
	}
	if len(h.Jobs) == 0 || len(h.Jobs) > epdapi.MaxHistory {
		return nil, fmt.Errorf("%w: %d jobs, want 1 to %d", epdapi.ErrRequest, len(h.Jobs), epdapi.MaxHistory)
	}
	for i := range h.Jobs {
		if h.Jobs[i].Cluster == "" {
			h.Jobs[i].Cluster = s.options.Cluster
		}
	}
	added, err := s.options.Records.History.AddHistory(ctx, h.Jobs)
	if err != nil {
		return nil, err
	}
	if added > 0 {
		s.options.Forecasts.TrainSoon()
	}
	return &epdapi.HistoryAdded{Cluster: s.options.Cluster, Added: added}, nil
}

// HistoryQuery asks for jobs of imported logs, by submission.
type HistoryQuery struct {
	Since   time.Time // submitted then or later; zero: all
	After   time.Time // submitted later than the last job of the page before,
	AfterID string    // which is this one
}

// History are jobs of imported logs of the cluster: users get their own.
func (s *Service) History(ctx context.Context, who Caller, q *HistoryQuery) (*epdapi.HistoryPage, error) {
	f := store.HistoryFilter{
		Cluster: s.options.Cluster, From: q.Since, After: q.After, AfterID: q.AfterID,
		Limit: epdapi.MaxHistory + 1,
	}
	page := &epdapi.HistoryPage{Jobs: []record.HistoryJob{}}
	if !who.canSeeAll() {
		if f.User = who.recordName(); f.User == "" {
			return page, nil
		}
	}
	err := s.options.Records.History.VisitHistory(ctx, &f, func(p record.HistoryJob) error {
		if len(page.Jobs) == epdapi.MaxHistory {
			page.More = true
			return nil
		}
		page.Jobs = append(page.Jobs, p)
		return nil
	})
	return page, err
}
