package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
)

// unread is what stays of slow where nobody knows who set it: what the driver tells.
var unread = dvfsmodel.Setting{Cap: slow.Cap, Profile: slow.Profile}

// wantUnread fails unless the GPUs' clocks are free, and all else is as it was.
func (h *host) wantUnread() {
	h.t.Helper()
	h.wantLocked(unread, unread)
	if left := h.journal.files(".json"); len(left) > 0 {
		h.t.Errorf("left in the journal: %v", left)
	}
}

// An epd to come may keep its journal in any form. Whoever goes back to this one must not
// be left with locked clocks. A power limit stays, as it may be the site's.
func TestAJournalOfAnUnknownVersionFreesTheGPUsThatItLists(t *testing.T) {
	for name, file := range map[string]struct {
		name string
		text func(uuids []string) string
	}{
		"one file for all": {"journal.json", func(uuids []string) string {
			return `{"schema":9,"gpus":{"` + uuids[0] + `":{"power_w":200},"` + uuids[1] + `":{}}}`
		}},
		"another ending": {"state.v9", func(uuids []string) string {
			return "v9\n" + strings.ToUpper(strings.Join(uuids, "\n"))
		}},
		"named for one, lists the other": {"", func(uuids []string) string {
			return `{"schema":9,"also":"` + uuids[1] + `"}`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := left(t)
			if file.name == "" {
				file.name = h.uuids[0] + ".json"
			}
			clear(h.journal.names)
			h.journal.put(file.name, file.text(h.uuids))
			report, err := h.agent(nil).Start(t.Context())
			if err != nil || !report.Clean() {
				t.Errorf("%+v, %v", report, err)
			}
			h.wantUnread()
			if want := []string{file.name + ".aside"}; !slices.Equal(h.journal.files(".aside"), want) {
				t.Errorf("aside is %q, want %q", h.journal.files(".aside"), want)
			}
		})
	}
}

// What can't be given back now is tried again, with the file in its place.
func TestAJournalOfAnUnknownVersionIsKeptUntilAllThatItListsIsFree(t *testing.T) {
	for _, name := range []string{"journal.json", "state.v9"} {
		h := left(t)
		clear(h.journal.names)
		h.journal.put(name, strings.Join(h.uuids, " "))
		if err := h.sims[1].InjectFault(gpu.FaultLost); err != nil {
			t.Fatal(err)
		}
		a := h.agent(nil)
		report, err := a.Start(t.Context())
		if !errors.Is(err, gpu.ErrLost) || report.Clean() || len(h.journal.files(".aside")) > 0 {
			t.Errorf("%s: %+v, %v; aside %q", name, report, err, h.journal.files(".aside"))
		}
		h.wantLocked(unread)
		if err := h.sims[1].Reboot(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
			t.Error(err)
		}
		h.wantLocked(unread, free) // a reset of the GPU freed the other
		if len(h.journal.files(".aside")) != 1 {
			t.Errorf("%s: aside is %q", name, h.journal.files(".aside"))
		}
	}
}

// A file that turns up while jobs run is no reason to take their clocks away.
func TestAForeignFileDoesNotTouchGPUsThatRunsHold(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	apply(h, a, "r1", 1, slow, 0)
	if err := h.sims[1].Set(gpu.CoreClock, 1700); err != nil {
		t.Fatal(err)
	}
	h.journal.put("journal.json", strings.Join(h.uuids, " "))
	if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
		t.Error(err)
	}
	h.wantLocked(slow, free)
	if state := a.State(); len(state.Runs) != 1 || state.Runs[0].HandsOff != "" {
		t.Errorf("%+v", state.Runs)
	}
	if len(h.journal.files(".aside")) != 1 {
		t.Errorf("aside is %q", h.journal.files(".aside"))
	}
}
