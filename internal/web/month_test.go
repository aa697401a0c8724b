package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// Usage returns two accounts' runs of a month.
func (c *cluster) Usage(
	ctx context.Context, since, until time.Time, by string, _ bool,
) (*epdapi.Usage, error) {
	const kWh = 3.6e6
	u := &epdapi.Usage{Since: since, Until: until, By: by, Groups: []epdapi.UsageSum{
		{
			Key: "physics", Jobs: 80, Runs: 90, GPUS: 9e5, EnergyJ: 100 * kWh, EnergyRuns: 90, GPUEnergyJ: 80 * kWh,
			NodeEnergyJ: 100 * kWh, NodeRuns: 90, HeldOutJ: 5 * kWh,
			Modelled: epdapi.ModelledUse{Runs: 70, DefaultJ: 90 * kWh, UsedJ: 70 * kWh},
		},
		{
			Key: "", Jobs: 0, Runs: 3, EnergyJ: 20 * kWh, EnergyRuns: 2, GPUEnergyJ: 20 * kWh,
			LastJob: epdapi.LastJob{Name: "train", User: "ada", Partition: "gpu"},
		},
	}}
	for i := range u.Groups {
		u.Total.Add(&u.Groups[i])
	}
	for i := range 3 {
		from := since.AddDate(0, 0, i)
		u.Over = append(u.Over, epdapi.UsagePart{From: from, Until: from.AddDate(0, 0, 1)})
	}
	u.Over[1].UsageSum = u.Total
	o, err := c.Overview(ctx)
	if err == nil {
		u.Factors, u.Savings = o.Savings.Factors, &o.Savings
		u.Savings.Since, u.Savings.Until = since, until
	}
	return u, err
}

func TestAMonthIsChosenAndGroupedByTheAddress(t *testing.T) {
	c := newCluster()
	for path, says := range map[string]string{
		"/month":                            "Energy of jobs in " + shownAt.Local().Format("January 2006"),
		"/month?month=2025-12&by=workload":  "Energy of jobs in December 2025",
		"/month?month=2001-01":              "Energy of jobs in January 2001",
		"/month?month=2025-12&by=gpu":       "By GPU model",
		"/month?month=2025-12&by=account":   "physics",
		"/month?month=2025-12&by=partition": "not known",
	} {
		if p := look(t, c, admin, path); p.status != http.StatusOK || !strings.Contains(words(p.root), says) {
			t.Errorf("%s: status %d, without %q: %s", path, p.status, says, words(p.root))
		}
	}
	for _, path := range []string{"/month?month=2025-13", "/month?month=x", "/month?by=name"} {
		if p := look(t, c, admin, path); p.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", path, p.status)
		}
	}
}
