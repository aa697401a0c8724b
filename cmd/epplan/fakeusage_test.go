package main

import (
	"net/http"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
)

// fakeUsage returns two users' runs of three days; before 2025 nobody's. A month whose records are gone is
// October 2024.
func fakeUsage(r *http.Request) any {
	q := r.URL.Query()
	since, _ := time.Parse(time.RFC3339, q.Get("since"))
	until, _ := time.Parse(time.RFC3339, q.Get("until"))
	u := epdapi.Usage{Since: since, Until: until, By: q.Get("by")}
	if saved, ok := fakeSavings(r).(epdapi.Savings); ok {
		u.Factors, u.Savings = saved.Factors, &saved
	}
	if !until.IsZero() && until.Year() < 2024 {
		if q.Get("own") == "true" || since.Year() == 2021 { // when only ada herself asked
			u.Own, u.User, u.Savings = true, "ada", nil
		}
		return u
	}
	if until.Year() == 2024 {
		u.Pruned = &epdapi.UsageSum{Runs: 80, EnergyJ: 36e6, GPUEnergyJ: 36e6}
		u.Total = *u.Pruned
		return u
	}
	const kWh = 3.6e6
	u.Groups = []epdapi.UsageSum{
		{
			Key: "ada", Jobs: 420, Runs: 440, GPUS: 3.6e6, IdleGPUS: 4.5e5, IdleJ: 7 * kWh,
			EnergyJ: 150 * kWh, EnergyRuns: 430, GPUEnergyJ: 100 * kWh,
			NodeEnergyJ: 145 * kWh, NodeRuns: 400, NodeModelledJ: 45 * kWh, HeldOutJ: 9 * kWh,
			Modelled: epdapi.ModelledUse{Runs: 400, DefaultJ: 120 * kWh, UsedJ: 95 * kWh},
			Measured: &epdapi.GroupSaving{
				Treated: 400, HeldOut: 20,
				GPU: epdapi.Saving{
					Runs: 390, Against: 19, SavedJ: 20 * kWh, LowJ: 15 * kWh, HighJ: 25 * kWh, BaselineJ: 100 * kWh,
				},
				Node: epdapi.Saving{
					Runs: 380, Against: 18, SavedJ: 14 * kWh, LowJ: 7 * kWh, HighJ: 21 * kWh, BaselineJ: 140 * kWh,
				},
				Time: epdapi.Longer{Runs: 390, Against: 19, LongerS: 4, LowS: 2, HighS: 6, BaselineS: 100},
			},
		},
		{
			Key: "bob", Jobs: 90, Runs: 90, GPUS: 7.2e5, EnergyJ: 50 * kWh, EnergyRuns: 90,
			GPUEnergyJ: 40 * kWh, NodeEnergyJ: 50 * kWh, NodeRuns: 90, HeldOutJ: 2 * kWh,
			Measured: &epdapi.GroupSaving{Treated: 60, HeldOut: 3},
		},
	}
	if u.By == "partition" {
		u.Groups[1].Key = "<b>,\"x|y\n\x1b[31m" // what no file and no terminal may take as its own
	}
	for i := range u.Groups {
		if u.By == "workload" {
			u.Groups[i].LastJob = epdapi.LastJob{ID: 4711, Name: "train", User: "ada", Partition: "gpu"}
		}
		u.Total.Add(&u.Groups[i])
	}
	if q.Get("own") == "true" {
		train := u.Groups[0]
		train.Key = "w-1"
		u.Own, u.User, u.Savings, u.Total, u.Groups = true, "ada", nil, train, []epdapi.UsageSum{train}
		return u
	}
	day := time.Date(2025, 10, 1, 0, 0, 0, 0, time.Local)
	for i := range 3 {
		from := day.AddDate(0, 0, i)
		u.Over = append(u.Over, epdapi.UsagePart{From: from, Until: from.AddDate(0, 0, 1)})
	}
	u.Over[1].UsageSum, u.Over[2].UsageSum = u.Groups[0], u.Groups[1]
	if until.Sub(since) > 300*24*time.Hour { // a year, in August of which only totals are kept
		august := time.Date(2025, 8, 1, 0, 0, 0, 0, time.Local)
		u.Over = append(u.Over, epdapi.UsagePart{From: august, Until: august.AddDate(0, 1, 0), PrunedJ: 10 * kWh})
		u.Pruned = &epdapi.UsageSum{Runs: 80, EnergyJ: 10 * kWh}
		u.Total.Add(u.Pruned)
	}
	return u
}
