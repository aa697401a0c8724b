package daemon_test

import (
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm/hooks"
)

func TestAPrologBelievesInSharingOnlyWhatSlurmDoesNotSayHasEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		says   live.Outlook
		shared bool
	}{
		"it ended":        {live.Outlook{Life: live.LifeGone, Ended: time.Now()}, false},
		"nobody can say":  {live.Outlook{Life: live.LifeUnknown}, true},
		"it is there":     {live.Outlook{Life: live.LifeAlive}, true},
		"it is forgotten": {live.Outlook{Life: live.LifeGone}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, j := t.TempDir(), &judge{slurm: true}
			h := open(t, dir, "sim:2", "", j)
			j.setting = slow(t, h.sims[0])
			h.hook(t, hooks.Prolog, 1, 0)
			h.stop()
			h = open(t, dir, "sim:2", "", j)
			eventually(t, "the sweep at the start asks", func() bool {
				j.mu.Lock()
				defer j.mu.Unlock()
				if j.asks == 0 {
					return false
				}
				j.outlook = tc.says // not known before
				return true
			})
			answer := h.hook(t, hooks.Prolog, 2, 0)
			j.mu.Lock()
			asked := j.request
			j.mu.Unlock()
			if answer.Applied == tc.shared || asked.Shared != tc.shared || asked.Left != tc.shared {
				t.Errorf("applied %v, asked as shared %v, with a run that was left %v; want shared: %v",
					answer.Applied, asked.Shared, asked.Left, tc.shared)
			}
			h.hook(t, hooks.Epilog, 2)
		})
	}
}
