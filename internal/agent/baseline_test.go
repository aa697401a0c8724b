package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/gpu"
	"github.com/epplan/epplan/internal/agent"
)

// limit sets the power limit of a GPU as its administrator does.
func (h *host) limit(i int, w dvfsmodel.Watt) {
	h.t.Helper()
	if err := h.sims[i].LimitPower(w); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) wantLimits(when string, want ...dvfsmodel.Watt) {
	h.t.Helper()
	for i, got := range h.limits() {
		if got != want[i] {
			h.t.Errorf("%s: GPU %d has a power limit of %v W, want %v", when, i, got, want[i])
		}
	}
}

// crashed returns an agent that starts after another one was killed.
func (h *host) crashed() *agent.Agent {
	h.t.Helper()
	clear(h.claims.owners)
	return h.started()
}

func TestAPowerLimitThatAnAdministratorLowersDuringARunStays(t *testing.T) {
	ctx, more := context.Background(), dvfsmodel.Setting{Core: 1700, Cap: 200}
	for name, then := range map[string]func(*host, *agent.Agent){
		"its end":                  func(_ *host, a *agent.Agent) { end(a, 1) },
		"a start after a crash":    func(h *host, _ *agent.Agent) { h.crashed() },
		"epd restore beside it":    func(h *host, _ *agent.Agent) { h.restoreBeside() },
		"epplan restore":           func(_ *host, a *agent.Agent) { _, _ = a.Restore(ctx, "test") },
		"a stop":                   func(_ *host, a *agent.Agent) { _, _ = a.Stop(ctx) },
		"hands off":                func(_ *host, a *agent.Agent) { _ = a.RevertToDefault(ctx, "r1", "test") },
		"a run that wants more":    func(h *host, a *agent.Agent) { apply(h, a, "r2", 2, more, 0) },
		"a run that wants nothing": func(h *host, a *agent.Agent) { apply(h, a, "r2", 2, free, 0) },
		"a sweep": func(_ *host, a *agent.Agent) {
			_, _ = a.Sweep(ctx, ignoreMissing, ignoreMissing)
		},
		"an entry that can't be read": func(h *host, _ *agent.Agent) {
			h.journal.put(h.uuids[0]+".json", "")
			h.crashed()
		},
		"an entry that is gone": func(h *host, _ *agent.Agent) {
			delete(h.journal.names, h.uuids[0]+".json")
			h.crashed()
		},
		"an entry that is foreign, beside a living agent": func(h *host, _ *agent.Agent) {
			h.journal.put(h.uuids[0]+".json", `{"schema":9}`)
			h.restoreBeside()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, site := range []dvfsmodel.Watt{200, 250} {
				h := newHost(t, twoGPUs)
				h.options = func(o *agent.Options) { o.Grace = 1 }
				h.claims = &claims{owners: map[string]*fuse{}}
				h.limit(0, site)
				a := h.started()
				apply(h, a, "r1", 1, capped, 0)
				h.wantLimits("while it runs", 150, 250)
				h.limit(0, 120)
				then(h, a)
				h.wantLimits("after "+name, 120, 250)
			}
		})
	}
}

// Whatever the journal says or doesn't, the limit from before the run comes back, and no other GPU's changes.
func TestTheSitesPowerLimitComesBackWhateverTheJournalsStateIs(t *testing.T) {
	entry := func(h *host) string { return h.uuids[0] + ".json" }
	base := func(h *host) string { return h.uuids[0] + ".baseline" }
	spoil := map[string]func(h *host){
		"empty entry": func(h *host) { h.journal.put(entry(h), "") },
		"zeros":       func(h *host) { h.journal.put(entry(h), "\x00\x00\x00") },
		"keys from before": func(h *host) {
			h.journal.put(entry(h), strings.NewReplacer(`"core":{"value"`, `"core":{"locked_mhz"`,
				`"memory":{"value"`, `"memory":{"locked_mhz"`).Replace(string(h.journal.names[entry(h)].data)))
		},
		"another schema":       func(h *host) { h.journal.put(entry(h), `{"schema":9}`) },
		"no entry":             func(h *host) { delete(h.journal.names, entry(h)) },
		"a copy of the entry":  func(h *host) { h.journal.names["copy.bak"] = h.journal.names[entry(h)] },
		"no baseline":          func(h *host) { delete(h.journal.names, base(h)) },
		"torn baseline":        func(h *host) { h.journal.put(base(h), `{"schema":1,"uu`) },
		"a note with all GPUs": func(h *host) { h.journal.put("notes.txt", strings.Join(h.uuids, " ")) },
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			for _, s := range []dvfsmodel.Setting{capped, {Cap: 120}, slow} {
				h := newHost(t, twoGPUs)
				h.limit(0, 200)
				h.limit(1, 180)
				a := h.started()
				apply(h, a, "r1", 1, s, 0)
				spoil(h)
				a = h.agent(nil)
				report, err := a.Start(t.Context())
				if err != nil || !report.Clean() {
					t.Errorf("%v, %+v", err, report)
				}
				h.wantLimits("after a start", 200, 180)
				h.wantRequested("after a start")
				h.wantFree()
			}
		})
	}
}

// With neither an entry nor a baseline nobody knows whose the limit is: it stays, and that is said.
func TestAPowerLimitOfUnknownOriginStaysAndIsSaid(t *testing.T) {
	for _, text := range []string{"", `{"schema":9}`, "\x00"} {
		h := newHost(t, twoGPUs)
		h.limit(0, 200)
		a := h.started()
		apply(h, a, "r1", 1, capped, 0)
		h.journal.put(h.uuids[0]+".json", text)
		h.journal.put(h.uuids[0]+".baseline", text)
		a = h.agent(nil)
		if _, err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.wantLimits("after a start", 150, 250)
		if got := a.State().GPUs[gpuOf(a, h.uuids[0])].Unsure; !strings.Contains(got, "150 W") {
			t.Errorf("said %q", got)
		}
		if got := h.started().State().GPUs[gpuOf(a, h.uuids[0])].Unsure; !strings.Contains(got, "150 W") {
			t.Errorf("after another start: said %q", got)
		}
		h.limit(0, 190) // the administrator's word
		b := h.started()
		if got := b.State().GPUs[gpuOf(b, h.uuids[0])].Unsure; got != "" {
			t.Errorf("with another limit: said %q", got)
		}
	}
}

// gpuOf returns the place of a GPU in an agent's state.
func gpuOf(a *agent.Agent, uuid string) int {
	for i, g := range a.State().GPUs {
		if g.Identity.UUID == uuid {
			return i
		}
	}
	return -1
}

func TestAForeignFileThatNamesGPUsChangesNoPowerLimitAndNoProfile(t *testing.T) {
	h := newHost(t, twoGPUs)
	h.limit(0, 200)
	h.limit(1, 180)
	h.request(dvfsmodel.MemoryBound)
	h.journal.put("notes.txt", "limits of "+strings.Join(h.uuids, " "))
	if _, err := h.agent(nil).Start(t.Context()); err != nil {
		t.Error(err)
	}
	h.wantLimits("after a start", 200, 180)
	h.wantRequested("after a start", dvfsmodel.MemoryBound)
}

func TestAnEntryOfAClockThatWasKnownBeforeIsForeign(t *testing.T) {
	h := newHost(t, twoGPUs)
	id := h.sims[0].Identity()
	h.journal.put(h.uuids[0]+".json", `{"schema":1,"uuid":"`+h.uuids[0]+`","bus":"`+id.Bus+`","model":"x",`+
		`"boot_id":"boot-1","driver":"driver-1","domains":{"core":{"value":1600,"prior":"known",`+
		`"prior_value":1700,"since":"2026-01-01T00:00:00Z","at":"2026-01-01T00:00:00Z","run":"r","job":1}}}`)
	report, err := h.agent(nil).Start(t.Context())
	if err != nil || fates(report)[h.uuids[0]] != agent.EntrySetAside {
		t.Errorf("%+v, %v", report, err)
	}
	h.wantFree()
}

// An administrator changes limits between runs, up and down: the last word counts.
func TestTheBaselineFollowsTheAdministratorBetweenRuns(t *testing.T) {
	h := newHost(t, twoGPUs)
	a := h.started()
	for i, w := range []dvfsmodel.Watt{200, 160, 240, 250} {
		h.limit(0, w)
		job := uint32(i + 1)
		apply(h, a, fmt.Sprint("r", i), job, capped, 0)
		if w > 150 {
			h.wantLimits("while it runs", 150, 250)
		}
		end(a, job)
		h.wantLimits("after it", w, 250)
	}
}

// site is a host whose GPUs the site holds below some clocks.
func siteHost(t *testing.T, ceiling *dvfsmodel.Setting) *host {
	t.Helper()
	h := newHost(t, twoGPUs)
	h.claims = &claims{owners: map[string]*fuse{}}
	h.options = func(o *agent.Options) {
		o.Grace = 1
		o.SiteClocks = func(gpu.Identity) (dvfsmodel.Setting, bool) { return *ceiling, true }
	}
	return h
}

func TestTheSitesClocksAreInForceFromTheStartAndAfterEveryGiveBack(t *testing.T) {
	ctx := context.Background()
	for name, giveBack := range map[string]func(*host, *agent.Agent){
		"the end":               func(_ *host, a *agent.Agent) { end(a, 1) },
		"a stop":                func(_ *host, a *agent.Agent) { _, _ = a.Stop(ctx) },
		"epplan restore":        func(_ *host, a *agent.Agent) { _, _ = a.Restore(ctx, "test") },
		"hands off":             func(_ *host, a *agent.Agent) { _ = a.RevertToDefault(ctx, "r1", "test") },
		"a crash":               func(h *host, _ *agent.Agent) { h.crashed() },
		"epd restore beside it": func(h *host, _ *agent.Agent) { h.restoreBeside() },
		"a torn entry": func(h *host, _ *agent.Agent) {
			h.journal.put(h.uuids[0]+".json", "")
			h.restoreBeside()
		},
		"a torn baseline": func(h *host, _ *agent.Agent) {
			h.journal.put(h.uuids[0]+".baseline", "")
			h.restoreBeside()
		},
		"an agent that knows of no site": func(h *host, _ *agent.Agent) {
			h.options = nil
			h.crashed()
		},
		"a reboot": func(h *host, _ *agent.Agent) {
			h.reboot(true)
			var err error
			if h.sims, err = h.library.Sims(); err != nil {
				h.t.Fatal(err)
			}
			h.options = nil // what it was told before stands in the baseline
			h.crashed()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ceiling := range []dvfsmodel.Setting{{Core: 1800}, {Core: 1800, Mem: 4500}, {Mem: 5000}} {
				h := siteHost(t, &ceiling)
				a := h.started()
				h.wantLocked(ceiling, ceiling)
				for _, s := range []dvfsmodel.Setting{slow, coreLow, {Cap: 150}} {
					apply(h, a, "r1", 1, s, 0)
					giveBack(h, a)
					if h.locked(0) != ceiling || h.locked(1) != ceiling {
						t.Fatalf("after %v: locked at %v and %v, want the site's %v", s, h.locked(0), h.locked(1), ceiling)
					}
					a = h.crashed()
					end(a, 1)
				}
			}
		})
	}
}

func TestASiteThatWantsLessThanAGPUHasGetsItsLowestClock(t *testing.T) {
	h := siteHost(t, &dvfsmodel.Setting{Core: 1})
	h.started()
	table, err := h.sims[0].Clocks()
	if err != nil {
		t.Fatal(err)
	}
	lowest := slices.Min(slices.Concat(table.Core...))
	h.wantLocked(dvfsmodel.Setting{Core: lowest}, dvfsmodel.Setting{Core: lowest})
}

func TestNoRunIsLockedAboveTheSitesClocks(t *testing.T) {
	ceiling := dvfsmodel.Setting{Core: 1700}
	h := siteHost(t, &ceiling)
	a := h.started()
	got, err := a.Apply(t.Context(), h.run("r1", 1, dvfsmodel.Setting{Core: 1800}, 0))
	if err == nil || got.Locked || !strings.Contains(err.Error(), "site's") {
		t.Errorf("%+v, %v", got, err)
	}
	h.wantLocked(ceiling, ceiling)
}

func TestTheSitesClocksFollowTheConfiguration(t *testing.T) {
	ceiling := dvfsmodel.Setting{Core: 1800}
	h := siteHost(t, &ceiling)
	a := h.started()
	sweep := func() {
		if _, err := a.Sweep(t.Context(), alive, alive); err != nil {
			t.Error(err)
		}
	}
	for i, now := range []dvfsmodel.Setting{{Core: 1700, Mem: 5000}, {Core: 1900}, {}, {Core: 1600}} {
		ceiling = now
		apply(h, a, fmt.Sprint("r", i), 1, dvfsmodel.Setting{Core: 1600, Mem: 4000}, 1)
		sweep()
		h.wantLocked(now, dvfsmodel.Setting{Core: 1600, Mem: 4000})
		end(a, 1)
		sweep()
		h.wantLocked(now, now)
	}
}

// What the site hasn't asked epd for isn't epd's to release.
func TestAStandingLockThatNobodyToldOfOutlivesAnAgentThatSetsNothing(t *testing.T) {
	h := newHost(t, twoGPUs)
	if err := h.sims[0].Set(gpu.CoreClock, 1700); err != nil {
		t.Fatal(err)
	}
	a := h.started()
	apply(h, a, "r1", 1, dvfsmodel.Setting{Cap: 150}, 0)
	end(a, 1)
	if _, err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wantLocked(coreLow)
}

// standing returns a host at work on whose first GPU somebody else's lock stands, and whose agent has
// watched both for a while; what the site tells of its limits is told.
func standing(h *host, a *agent.Agent, told *dvfsmodel.Setting) *agent.Agent {
	h.t.Helper()
	a.Close()
	h.options = func(o *agent.Options) {
		o.SiteClocks = func(gpu.Identity) (dvfsmodel.Setting, bool) { return *told, told.Core > 0 }
		o.UsualCore = func(gpu.Identity) dvfsmodel.MHz { return 1800 }
	}
	errs := []error{ //nolint:prealloc // a few
		h.sims[0].Set(gpu.CoreClock, 1700), h.sims[0].Run(anyWork), h.sims[1].Run(anyWork),
	}
	a = h.started()
	apply(h, a, "r1", 1, free, 0, 1)
	for range 20 {
		sleep(time.Second)
		errs = append(errs, a.Sample(h.t.Context()))
	}
	end(a, 1)
	_, err := a.Sweep(h.t.Context(), alive, alive)
	if err := errors.Join(append(errs, err)...); err != nil {
		h.t.Fatal(err)
	}
	return a
}

// NVML doesn't tell of a lock. A GPU at work that never exceeds one clock is left alone until its site says
// whether it has a limit, also after a restart.
func TestAGPUThatSeemsToHaveAStandingLimitIsLeftAloneUntilTheSiteTells(t *testing.T) {
	watched(t, agent.WatchHooks{}, func(h *host, a *agent.Agent) {
		t := h.t
		var told dvfsmodel.Setting
		a = standing(h, a, &told)
		for _, a := range []*agent.Agent{a, h.started()} {
			got, err := a.Apply(t.Context(), h.run("r2", 2, dvfsmodel.Setting{Core: 1600}, 0))
			if !errors.Is(err, agent.ErrStanding) || got.Locked || !strings.Contains(err.Error(), "1700 MHz") {
				t.Errorf("%+v, %v", got, err)
			}
			end(a, 2)
			h.wantLocked(coreLow, free)
			gpus := a.State().GPUs
			if first, other := gpuOf(a, h.uuids[0]), gpuOf(a, h.uuids[1]); gpus[first].Suspected != 1700 ||
				gpus[other].Suspected != 0 {
				t.Errorf("suspected %v and %v", gpus[first].Suspected, gpus[other].Suspected)
			}
		}
		told.Core = 1700
		a = h.started()
		got, err := a.Apply(t.Context(), h.run("r3", 3, dvfsmodel.Setting{Core: 1600}, 0))
		if err != nil || !got.Locked {
			t.Errorf("told: %+v, %v", got, err)
		}
		end(a, 3)
		h.wantLocked(coreLow)
	})
}
