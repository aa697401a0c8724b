package daemon_test

import (
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/slurm/hooks"
)

// The controller is told of the lowest limit of a job's GPUs, of what their boards take, and whether their
// core clocks can be locked; and never takes a limit of epd's own for the site's.
func TestTheControllerIsToldOfThePowerLimit(t *testing.T) {
	for spec, want := range map[string]struct {
		limit epdapi.PowerLimit
		fixed bool
	}{
		"sim:3":           {epdapi.PowerLimit{InForce: 250, Min: 120, Max: 300}, false},
		"sim:3,lock=core": {epdapi.PowerLimit{}, false},
		"sim:3,lock=none": {epdapi.PowerLimit{}, true},
	} {
		t.Run(spec, func(t *testing.T) {
			h := open(t, t.TempDir(), spec, "", &judge{})
			for i, limit := range []dvfsmodel.Watt{300, 250, 200} {
				if err := h.sims[i].LimitPower(limit); err != nil {
					t.Fatal(err)
				}
			}
			h.hook(t, hooks.Prolog, 1, 0, 1)
			if h.request.PowerLimit != want.limit || h.request.CoreFixed != want.fixed {
				t.Errorf("%+v, fixed %v, want %+v", h.request.PowerLimit, h.request.CoreFixed, want)
			}
		})
	}
	j := &judge{setting: dvfsmodel.Setting{Core: 1237, Cap: 150}}
	h := open(t, t.TempDir(), "sim:1", "", j)
	h.hook(t, hooks.Prolog, 1, 0)
	if limit, err := h.sims[0].PowerLimit(); err != nil || limit != 150 {
		t.Fatalf("limit %v, %v", limit, err)
	}
	h.hook(t, hooks.Prolog, 2, 0) // the first one's Epilog hasn't come
	if got := h.request.PowerLimit.InForce; got != 300 {
		t.Errorf("told of %v W, want the site's limit", got)
	}
}
