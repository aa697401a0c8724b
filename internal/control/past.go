package control

import (
	"fmt"
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/store"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// postHistory stores jobs of a log, all of them or none.
func (c *Controller) postHistory(r *http.Request) (any, error) {
	var h epdapi.History
	if err := DecodeJSON(r.Body, &h); err != nil {
		return nil, err
	}
	if len(h.Jobs) == 0 || len(h.Jobs) > epdapi.MaxHistory {
		return nil, fmt.Errorf("%w: %d jobs, want 1 to %d", ErrRequest, len(h.Jobs), epdapi.MaxHistory)
	}
	for i := range h.Jobs {
		if h.Jobs[i].Cluster == "" {
			h.Jobs[i].Cluster = c.options.Cluster
		}
	}
	added, err := c.options.Store.AddHistory(r.Context(), h.Jobs)
	if err != nil {
		return nil, err
	}
	if added > 0 {
		c.forecasts.TrainSoon()
	}
	return &epdapi.HistoryAdded{Cluster: c.options.Cluster, Added: added}, nil
}

// getHistory reads jobs of imported logs of the cluster: users get their own.
func (c *Controller) getHistory(r *http.Request) (any, error) {
	q := r.URL.Query()
	f := store.HistoryFilter{
		Cluster: c.options.Cluster, AfterID: q.Get("after_id"), Limit: epdapi.MaxHistory + 1,
	}
	for key, at := range map[string]*time.Time{"since": &f.From, "after": &f.After} {
		text := q.Get(key)
		if text == "" {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, fmt.Errorf("%w: %s is %s, want a time such as 2026-01-31T00:00:00Z", ErrRequest, key,
				slurm.Printable(text, 40))
		}
	}
	page := &epdapi.HistoryPage{Jobs: []record.HistoryJob{}}
	if who := CallerOf(r.Context()); !who.All && !who.Control {
		if f.User = who.own(); f.User == "" {
			return page, nil
		}
	}
	err := c.options.Store.VisitHistory(r.Context(), &f, func(p record.HistoryJob) error {
		if len(page.Jobs) == epdapi.MaxHistory {
			page.More = true
			return nil
		}
		page.Jobs = append(page.Jobs, p)
		return nil
	})
	return page, err
}
