package main

import (
	"net/http"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/live"
)

// fakeEvent is the fake epd's event of a power budget.
func fakeEvent() epdapi.BudgetEvent {
	return epdapi.BudgetEvent{
		ID: "4f7k2m9q", Scope: "cluster", Watts: 200e3, From: fakeBegin.Add(8 * time.Hour),
		Until: fakeBegin.Add(11 * time.Hour), RampS: 300, By: "root", Set: fakeBegin,
	}
}

// fakeBudgets are two budgets, of which the rack's isn't kept.
func fakeBudgets() epdapi.BudgetList {
	none := []string{}
	return epdapi.BudgetList{
		At: fakeBegin, Mode: live.Enforce, Events: []epdapi.BudgetEvent{fakeEvent()},
		Scopes: []epdapi.BudgetScope{
			{
				Scope: "cluster", Kind: "cluster", Budget: live.Known(300e3), Spare: live.Known(1200.0),
				InForce: 298_800, Measured: 251_300, GPUs: 960, Slowed: 212, Slowdown: live.Known(1.034),
				Unlimited: none, Ignoring: none, Silent: none,
			},
			{
				Scope: "gpu[01-16]", Kind: "nodes", Budget: live.Known(40e3), Spare: live.Known(-300.0),
				InForce: 40_300, Measured: 40_100, Short: 300, GPUs: 128, Slowed: 128, Slowdown: live.Known(1.21),
				Unlimited: none, Ignoring: []string{"GPU-3b1f"}, Silent: []string{"gpu07"},
			},
		},
	}
}

// fakeSetBudget answers as an epd that takes an event.
func fakeSetBudget(r *http.Request) any {
	e := fakeEvent()
	if r.URL.Path == epdapi.PathBudget {
		e.Watts = dvfsmodel.Watt(200e3)
	}
	return e
}
