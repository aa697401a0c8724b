package steer_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/config"
	"github.com/epplan/epplan/internal/steer"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// rankAs is the order that a policy wants from now on.
func (w *world) rankAs(policy string, ids ...slurm.JobID) {
	r := &steer.Ranking{
		Policy: policy, At: w.now, Until: w.now.Add(time.Hour), Place: make(map[slurm.JobID]int),
		CountsDeadlines: strings.HasPrefix(policy, "edl"),
	}
	for place, id := range ids {
		r.Place[id] = place
	}
	w.settings.Ranking = r
}

func TestTheQueueIsPutInAPolicysOrder(t *testing.T) {
	for extent, want := range map[config.Reorder][]slurm.JobID{
		config.ReorderAll: {5, 3, 1, 2, 4},
		// Of user 10 job 1 comes behind 3 and 5, of user 20 all stays as it is.
		config.ReorderOwn: {2, 4, 5, 3, 1},
		config.ReorderOff: {1, 2, 3, 4, 5},
	} {
		w := newWorld()
		w.settings.Live.Reorder = extent
		for id := range slurm.JobID(5) {
			w.job(id+1, 10+10*uint32(id%2), 1000-int64(id), "")
		}
		w.rankAs("value", 5, 3, 1, 2, 4)
		s := w.open(t)
		step(t, s)
		if got := w.queue(); !slices.Equal(got, want) {
			t.Errorf("%s: order %v, want %v; nices %v", extent, got, want, w.nices())
		}
		if r := step(t, s); r != (steer.StepReport{}) {
			t.Errorf("%s: again: %+v", extent, r)
		}
		if _, err := s.UndoAll(t.Context()); err != nil ||
			slices.ContainsFunc(slices.Collect(maps.Values(w.nices())),
				func(n int64) bool { return n != 0 }) {
			t.Errorf("%s: undone: %v, nices %v", extent, err, w.nices())
		}
	}
}

func TestAPromisedDeadlineComesBeforeAPolicysOrder(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.job(1, 10, 1000, "")
	w.job(2, 20, 990, "")
	w.job(3, 10, 980, deadline(time.Hour))
	w.job(4, 10, 970, "") // has no place, and only goes behind the deadline
	w.job(5, 10, 1100, "")
	w.rankAs("value", 2, 3, 1)
	s := w.open(t)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{3, 5, 2, 1, 4}) {
		t.Errorf("order %v, nices %v", got, w.nices())
	}
	if w.jobs[4].Nice != 0 || w.jobs[3].Nice != 0 {
		t.Errorf("nices %v", w.nices())
	}
	if st := s.Status(); st.Policy != "value" || !slices.Equal(st.Order, []slurm.JobID{3, 2, 1}) {
		t.Errorf("%+v", st)
	}
}

// TestAPlanHasCountedDeadlinesItself: it puts a job behind others whose deadline can't be met any more, or is
// far off; a job that it doesn't know yet goes by its deadline.
func TestAPlanHasCountedDeadlinesItself(t *testing.T) {
	for mode, want := range map[config.PlanMode][]slurm.JobID{
		config.PlanEnforce: {4, 2, 1, 3}, config.PlanAdvise: {4, 3, 1, 2},
	} {
		w := newWorld()
		w.settings.Live.Reorder = config.ReorderAll
		w.settings.Live.Plan.Mode = mode
		w.job(1, 10, 1000, "")
		w.job(2, 10, 990, "")
		w.job(3, 10, 980, deadline(2*time.Hour))
		w.job(4, 10, 970, deadline(time.Hour))
		w.rankAs("edl", 2, 1, 3)
		w.settings.Ranking.GPUModel = make(map[slurm.JobID]string) // a plan's, not an order's
		step(t, w.open(t))
		if got := w.queue(); !slices.Equal(got, want) {
			t.Errorf("%s: order %v, want %v; nices %v", mode, got, want, w.nices())
		}
	}
}

// TestANewcomerPassesNobodyInOrder: it begins behind those that were put behind others, gets its place with
// the next plan, and everything is taken back like any other nice.
func TestANewcomerPassesNobodyInOrder(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	for id := range slurm.JobID(3) {
		w.job(id+1, 10, 1000, "").AdminComment = "epplan:T" + strconv.Itoa(int(id))
	}
	w.rankAs("edl", 3, 2, 1)
	s := w.open(t)
	if n := s.NiceAtSubmit("gpu", 10, false); n != 0 {
		t.Errorf("before anybody is in order a newcomer gets a nice of %d", n)
	}
	step(t, s)
	nice := s.NiceAtSubmit("gpu", 77, false)
	if nice != 2 || s.NiceAtSubmit("", 77, false) != nice || s.NiceAtSubmit("other", 77, false) != 0 {
		t.Fatalf("a newcomer gets a nice of %d, in the default partition %d, elsewhere %d; nices %v", nice,
			s.NiceAtSubmit("", 77, false), s.NiceAtSubmit("other", 77, false), w.nices())
	}
	for id := slurm.JobID(4); id <= 6; id++ { // 5's user has it begin elsewhere, 6 isn't in the plan
		w.job(id, 77, 1000, "").AdminComment = slurm.TokenWithNice("epplan:N", nice)
		w.setNice(id, nice)
	}
	w.setNice(5, 40)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{3, 2, 1, 4, 6, 5}) {
		t.Errorf("newcomers are in the queue at %v", got)
	}
	w.rankAs("edl", 4, 3, 2, 1)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{4, 6, 3, 2, 1, 5}) ||
		w.jobs[4].Nice != 0 || w.jobs[6].Nice != 0 || w.jobs[5].Nice != 40 {
		t.Errorf("order %v, nices %v", got, w.nices())
	}
	w.job(7, 77, 1000, "").AdminComment = slurm.TokenWithNice("epplan:N", nice)
	w.setNice(7, nice) // since the last step
	if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[7].Nice != 0 || w.jobs[1].Nice != 0 ||
		w.jobs[5].Nice != 40 || s.NiceAtSubmit("gpu", 77, false) != 0 {
		t.Errorf("undone: %v, nices %v", err, w.nices())
	}
}

// TestANewcomerWaitsForItsPlaceBehindTheOthers, as long as the order in force is of a queue from before it
// came.
func TestANewcomerWaitsForItsPlaceBehindTheOthers(t *testing.T) {
	for _, ofPlan := range []bool{false, true} {
		w := newWorld()
		w.settings.Live.Reorder = config.ReorderAll
		w.settings.Live.Plan.Mode = config.PlanEnforce
		rank := func(ids ...slurm.JobID) {
			w.rankAs("edl", ids...)
			if ofPlan {
				w.settings.Ranking.GPUModel = make(map[slurm.JobID]string)
			}
		}
		for id := range slurm.JobID(3) {
			w.job(id+1, 10, 1000, "").AdminComment = "epplan:T" + strconv.Itoa(int(id))
		}
		w.now = w.now.Add(300 * time.Millisecond)
		rank(3, 2, 1)
		s := w.open(t)
		step(t, s)
		nice := s.NiceAtSubmit("gpu", 77, false)
		if with := s.NiceAtSubmit("gpu", 77, true); nice != 2 || ofPlan != (with == nice) || !ofPlan && with != 0 {
			t.Errorf("of a plan %v: a nice of %d, with a deadline %d", ofPlan, nice, with)
		}
		for id, comment := range map[slurm.JobID]string{4: "", 5: "epplan:deadline=+2h"} {
			j := w.job(id, 77, 1000, comment)
			j.AdminComment = slurm.TokenWithNice("epplan:N", nice)
			j.Submit, j.Eligible = w.now.Truncate(time.Second), w.now.Truncate(time.Second)
			w.setNice(id, nice)
		}
		want := []slurm.JobID{3, 2, 1, 4, 5}
		if !ofPlan { // its order doesn't count deadlines
			want = []slurm.JobID{5, 3, 2, 1, 4}
		}
		for range 2 {
			w.now = w.now.Add(2 * time.Second)
			step(t, s)
			if got := w.queue(); !slices.Equal(got, want) {
				t.Fatalf("of a plan %v: order %v, want %v; nices %v", ofPlan, got, want, w.nices())
			}
		}
		rank(3, 5, 2, 1) // 4 has no place
		w.now = w.now.Add(2 * time.Second)
		step(t, s)
		want = []slurm.JobID{3, 4, 5, 2, 1}
		if !ofPlan {
			want = []slurm.JobID{5, 3, 2, 1, 4}
		}
		if got := w.queue(); !slices.Equal(got, want) || ofPlan && w.jobs[4].Nice != 0 {
			t.Errorf("of a plan %v, placed: order %v, want %v; nices %v", ofPlan, got, want, w.nices())
		}
	}
}

// TestALongLineIsKeptInOrderByFewChanges, as jobs come anywhere in it and the first ones start: each is a
// command. It comes forward again, and everything is taken back.
func TestALongLineIsKeptInOrderByFewChanges(t *testing.T) {
	for _, n := range []int{20, 100, 400} {
		w := newWorld()
		w.settings.Live.Reorder = config.ReorderAll
		w.settings.Live.Plan.Mode = config.PlanEnforce
		rng := rand.New(rand.NewPCG(uint64(n), 2))
		var order []slurm.JobID
		next := slurm.JobID(1)
		add := func(nice int64) {
			w.job(next, 10, 100_000+rng.Int64N(3), "").AdminComment = slurm.TokenWithNice("epplan:T", nice)
			w.setNice(next, nice)
			order = slices.Insert(order, rng.IntN(len(order)+1), next)
			next++
		}
		for range n {
			add(0)
		}
		s := w.open(t)
		const rounds, each = 300, 2
		changed, most := 0, int64(0)
		for round := range rounds {
			w.rankAs("edl", order...)
			w.settings.Ranking.GPUModel = make(map[slurm.JobID]string)
			r := step(t, s)
			if got := w.queue(); !slices.Equal(got, order) {
				t.Fatalf("%d jobs, round %d: %v, want %v", n, round, got, order)
			}
			if round > 0 {
				changed += r.Set + r.Undone
			}
			most = max(most, s.NiceAtSubmit("gpu", 10, false))
			for range each {
				delete(w.jobs, order[0])
				order = order[1:]
				add(s.NiceAtSubmit("gpu", 10, false))
			}
		}
		t.Logf("%d jobs, %d come and %d start a step: %.1f changes, a nice of up to %d", n, each, each,
			float64(changed)/rounds, most)
		if mean := float64(changed) / rounds; mean > 10 || most > int64(n)*40 {
			t.Errorf("%d jobs: %.1f changes a step, a nice of up to %d", n, mean, most)
		}
		if _, err := s.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, j := range w.jobs {
			if j.Nice != 0 {
				t.Errorf("undone, and job %d has a nice of %d", id, j.Nice)
			}
		}
	}
}

// TestANewcomerHasItsOwnPlaceWhereOrdersAreOldOrUnseen: epd may be away, or Slurm say nothing of comments.
func TestANewcomerHasItsOwnPlaceWhereOrdersAreOldOrUnseen(t *testing.T) {
	for what, change := range map[string]func(w *world){
		"it stands":       func(*world) {},
		"old":             func(w *world) { w.now = w.now.Add(2 * time.Minute) },
		"no comments":     func(w *world) { w.jobs[1].AdminComment = "" },
		"advised only":    func(w *world) { w.settings.Live.Mode = live.Advise },
		"of another user": func(w *world) { w.settings.Live.Reorder = config.ReorderOwn },
	} {
		w := newWorld()
		w.settings.Live.Reorder = config.ReorderAll
		w.job(1, 10, 1000, "").AdminComment = "epplan:T"
		w.job(2, 10, 1000, "")
		w.rankAs("edl", 2, 1)
		s := w.open(t)
		if what != "old" {
			change(w)
		}
		step(t, s)
		if what == "old" {
			change(w)
		}
		if n := s.NiceAtSubmit("gpu", 20, false); n > 0 != (what == "it stands") {
			t.Errorf("%s: a nice of %d", what, n)
		}
	}
}

func TestWhatAPolicyDoesntNameStaysWhereItIs(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.job(1, 10, 1000, "")
	w.job(2, 10, 995, "") // without GPUs, or on several nodes
	w.job(3, 10, 990, "")
	w.rankAs("value", 3, 1)
	w.settings.Ranking.Without = 1
	s := w.open(t)
	step(t, s)
	if w.jobs[2].Nice != 0 || w.jobs[1].Nice != 11 {
		t.Errorf("nices %v", w.nices())
	}
	if st := s.Status(); len(st.Notes) != 1 || !strings.Contains(st.Notes[0], "1 jobs have no place") {
		t.Errorf("%+v", st.Notes)
	}
}

func TestInAdviseModeAPolicysOrderIsSaidOnly(t *testing.T) {
	w := newWorld()
	w.settings.Live.Mode = live.Advise
	w.job(1, 10, 1000, "")
	w.job(2, 10, 990, "")
	w.rankAs("easy", 2, 1)
	s := w.open(t)
	if r := step(t, s); r != (steer.StepReport{}) || w.jobs[1].Nice != 0 {
		t.Errorf("%+v, nices %v", r, w.nices())
	}
	st := s.Status()
	if len(st.Advice) != 1 || st.Advice[0].Text != "nice 11 instead of 0: policy easy starts job 2 before" ||
		!slices.Equal(st.Order, []slurm.JobID{2, 1}) {
		t.Errorf("%+v", st)
	}
	w.settings.Live.Reorder = config.ReorderAll
	step(t, s)
	if st := s.Status(); len(st.Advice) != 1 ||
		st.Advice[0].Text != "nice 11 instead of 0: policy easy starts others of partition gpu before" {
		t.Errorf("of other users: %+v", st.Advice)
	}
}

func TestAnOrderThatIsOutOfDateSaysNothing(t *testing.T) {
	w := newWorld()
	w.job(1, 10, 1000, "")
	w.job(2, 10, 990, "")
	w.rankAs("value", 2, 1)
	w.settings.Ranking.Trouble = "slurm doesn't answer"
	s := w.open(t)
	step(t, s)
	if st := s.Status(); w.jobs[1].Nice != 11 || len(st.Notes) != 1 ||
		!strings.Contains(st.Notes[0], "isn't renewed: slurm doesn't answer") {
		t.Errorf("%+v, nices %v", st, w.nices())
	}
	w.now = w.now.Add(2 * time.Hour)
	step(t, s)
	if st := s.Status(); w.jobs[1].Nice != 0 || len(st.Order) != 0 {
		t.Errorf("%+v, nices %v", st, w.nices())
	}
}

func TestAJobWhoseUserUndidItsNiceIsLeftOutOfAPolicysOrder(t *testing.T) {
	w := newWorld()
	for id := range slurm.JobID(3) {
		w.job(id+1, 10, 1000-int64(id), "")
	}
	w.rankAs("value", 3, 2, 1)
	s := w.open(t)
	step(t, s)
	w.setNice(1, 0)
	step(t, s)
	if w.jobs[1].Nice != 0 || w.jobs[2].Nice == 0 || !slices.Equal(s.Status().Left, []slurm.JobID{1}) {
		t.Errorf("nices %v, %+v", w.nices(), s.Status())
	}
	w.rankAs("value", 2, 3, 1)
	step(t, s)
	if w.jobs[1].Nice != 0 || w.jobs[2].Nice != 0 || w.jobs[3].Nice != 0 {
		t.Errorf("nices %v", w.nices())
	}
}

func TestAJobThatWaitsComesForwardUntilItsOwnPlace(t *testing.T) {
	w := newWorld()
	w.settings.Live.Pick.Ageing = 8 * 3600
	w.job(1, 10, 9000, "").Eligible = start
	w.job(2, 10, 1000, "").Eligible = start
	w.settings.Live.Pick.Policy = "value"
	s := w.open(t)
	for hour := range 10 {
		w.now = start.Add(time.Duration(hour)*time.Hour + time.Minute)
		w.rankAs("value", 2, 1)
		step(t, s)
		if want := int64(max(0, 8001*(8-hour)/8)); w.jobs[1].Nice != want || w.jobs[2].Nice != 0 {
			t.Errorf("after %d h: nices %v, want %d", hour, w.nices(), want)
		}
	}
	if st := s.Status(); st.Set != 8 || st.Undone != 1 {
		t.Errorf("%d set, %d undone: one change a step", st.Set, st.Undone)
	}
}

func TestAgeingMayBeByAJobsTimeLimit(t *testing.T) {
	w := newWorld()
	w.settings.Live.Pick.AgeingFactor = 2
	w.job(1, 10, 1000, "").TimeLimit = live.LimitOf(29 * time.Minute) // has waited for an hour
	w.job(2, 10, 1000, "").TimeLimit = live.LimitOf(10 * time.Hour)
	w.job(3, 10, 1000, "").TimeLimit = live.Unlimited()
	w.job(4, 10, 900, "")
	w.rankAs("value", 4, 3, 2, 1)
	s := w.open(t)
	step(t, s)
	if w.jobs[1].Nice != 0 || w.jobs[2].Nice < 100 || w.jobs[3].Nice < 100 {
		t.Errorf("nices %v", w.nices())
	}
}

// crowd returns a world with a queue in which nobody has waited for long, and the
// order that a policy wants.
func crowd(t *rapid.T) (w *world, wanted []slurm.JobID) {
	w = newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	for id := range slurm.JobID(rapid.Uint32Range(2, 12).Draw(t, "jobs")) {
		j := w.job(id+1, rapid.Uint32Range(10, 12).Draw(t, "user"),
			rapid.Int64Range(1000, 1030).Draw(t, "base"), "")
		j.Eligible = start.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "waited")) * time.Minute)
		if nice := rapid.IntRange(0, 3).Draw(t, "nice"); nice > 0 {
			w.setNice(j.ID, int64(nice))
		}
		wanted = append(wanted, j.ID)
	}
	return w, rapid.Permutation(wanted).Draw(t, "wanted")
}

func TestOffsetsGiveAPolicysOrderAndAreNeverBelowTheUsersOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, wanted := crowd(t)
		own, before := w.nices(), w.queue()
		w.rankAs("value", wanted...)
		s := w.steerer(t, rapid.IntRange(1, 4).Draw(t, "changes in a step"))
		for w.more(t, s) {
			if now := w.queue(); overtaken(before, now, wanted) {
				t.Fatalf("on the way a job falls behind another that it is to come before, and came: from "+
					"%v to %v, wanted %v", before, now, wanted)
			}
		}
		if got := w.queue(); !slices.Equal(got, wanted) {
			t.Fatalf("order %v, wanted %v, nices %v", got, wanted, w.nices())
		}
		for id, nice := range w.nices() {
			if nice < own[id] {
				t.Fatalf("job %s: nice %d below its user's own, %d", id, nice, own[id])
			}
		}
		if w.settings.Ranking = nil; rapid.Bool().Draw(t, "undo all") {
			if _, err := s.UndoAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for w.more(t, s) {
			continue
		}
		if !maps.Equal(w.nices(), own) {
			t.Fatalf("nices %v, want the users' own: %v", w.nices(), own)
		}
	})
}

// overtaken reports whether a job came before another, is to come before it, and
// doesn't now.
func overtaken(before, now, wanted []slurm.JobID) bool {
	for i, a := range wanted {
		for _, b := range wanted[i+1:] {
			if slices.Index(before, a) < slices.Index(before, b) &&
				slices.Index(now, a) > slices.Index(now, b) {
				return true
			}
		}
	}
	return false
}

// more makes a step and reports whether there is more to do.
func (w *world) more(t *rapid.T, s *steer.Steerer) bool {
	r, err := s.Step(t.Context())
	if err != nil || r.Failed > 0 {
		t.Fatal(r, err)
	}
	return r.Set+r.Undone+r.More > 0
}

func TestNoJobIsPutBehindOthersForLongerThanConfigured(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, wanted := crowd(t)
		limits := &w.settings.Live.Pick
		limits.Ageing = float64(rapid.IntRange(0, 20_000).Draw(t, "ageing"))
		limits.AgeingFactor = float64(rapid.IntRange(0, 3).Draw(t, "factor"))
		for _, id := range wanted {
			w.jobs[id].TimeLimit = live.LimitOf(time.Duration(rapid.IntRange(1, 100).Draw(t,
				"limit")) * time.Minute)
		}
		own := w.nices()
		s := w.steerer(t, 1000)
		for range 10 {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "pause")) * time.Minute)
			w.rankAs("value", rapid.Permutation(wanted).Draw(t, "wanted anew")...)
			for w.more(t, s) {
				continue
			}
			for _, id := range wanted {
				j := w.jobs[id]
				bound := limits.Ageing
				if limits.AgeingFactor > 0 {
					bound = min(bound, limits.AgeingFactor*j.TimeLimit.Seconds())
				}
				if waited := w.now.Sub(j.Eligible).Seconds(); waited >= bound+60 && j.Nice != own[id] {
					t.Fatalf("job %s waited for %v s of %v and has nice %d, its own is %d", id, waited, bound,
						j.Nice, own[id])
				}
			}
		}
	})
}

func BenchmarkAPolicysOrderOfALongQueue(b *testing.B) {
	w := newWorld()
	w.settings.Live.Reorder, w.settings.Live.Mode = config.ReorderAll, live.Advise
	const jobs = 10_000
	ids := make([]slurm.JobID, 0, jobs)
	for id := range slurm.JobID(jobs) {
		w.job(id+1, 10+uint32(id%50), 100_000-int64(id), "")
		ids = append(ids, id+1)
	}
	slices.Reverse(ids)
	w.rankAs("value", ids[:1000]...)
	snap, err := w.snapshot(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if p := steer.NewPlan(snap, &w.settings, &steer.OwnChanges{}); len(p.Order) != 1000 {
			b.Fatal(len(p.Order))
		}
	}
}

// TestAPlanMovesNoMoreThanItsModeSays: the job with the deadline goes first whatever the plan may do.
func TestAPlanMovesNoMoreThanItsModeSays(t *testing.T) {
	for mode, want := range map[config.PlanMode]struct {
		nices  []int64 // of jobs 1 to 4
		advice bool    // about job 1
		order  []slurm.JobID
	}{
		config.PlanOff:     {[]int64{101, 101, 101, 0}, false, []slurm.JobID{4}},
		config.PlanObserve: {[]int64{101, 101, 101, 0}, false, []slurm.JobID{4}},
		config.PlanAdvise:  {[]int64{101, 101, 101, 0}, true, []slurm.JobID{4, 3, 2, 1}},
		config.PlanEnforce: {[]int64{103, 102, 101, 0}, false, []slurm.JobID{4, 3, 2, 1}},
	} {
		w := newWorld()
		w.settings.Live.Plan.Modes = map[string]config.PlanMode{"gpu": mode, "other": config.PlanObserve}
		for id := range slurm.JobID(3) {
			w.job(id+1, 10, 1000, "")
		}
		w.job(4, 10, 900, "epplan:deadline=+5h")
		w.rankAs("edl", 3, 2, 1)
		s := w.open(t)
		step(t, s)
		step(t, s)
		nices := make([]int64, 0, len(w.jobs))
		for id := range slurm.JobID(4) {
			nices = append(nices, w.jobs[id+1].Nice)
		}
		advised := make(map[slurm.JobID]bool)
		for _, a := range s.Status().Advice {
			advised[a.Job] = true
		}
		if !slices.Equal(nices, want.nices) || !slices.Equal(s.Status().Order, want.order) {
			t.Errorf("%s: nices %v, want %v; order %v, want %v", mode, nices, want.nices, s.Status().Order, want.order)
		}
		if advised[1] != want.advice || !want.advice && len(advised) > 0 {
			t.Errorf("%s: advice about %v, about job 1: %v is wanted", mode, advised, want.advice)
		}
		if _, err := s.UndoAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, j := range w.jobs {
			if j.Nice != 0 {
				t.Errorf("%s: undone, and job %d has a nice of %d", mode, id, j.Nice)
			}
		}
	}
}

// TestAPlanThatCountsNoMoreHoldsNobodyBack: stale, gone with a restart, or of a queue that is empty by now.
func TestAPlanThatCountsNoMoreHoldsNobodyBack(t *testing.T) {
	for what, change := range map[string]func(w *world){
		"stale": func(w *world) {
			w.settings.Ranking.Until, w.settings.Ranking.Trouble = time.Time{}, "it doesn't know 3 of the 5 jobs"
		},
		"no plan after a restart": func(w *world) { w.settings.Ranking = nil },
		"turned off": func(w *world) {
			w.settings.Live.Plan.Mode, w.settings.Ranking = config.PlanOff, nil
		},
		"an empty plan": func(w *world) { w.rankAs("edl") },
	} {
		w := newWorld()
		w.settings.Live.Plan.Mode = config.PlanEnforce
		for id := range slurm.JobID(3) {
			w.job(id+1, 10, 1000, "")
		}
		w.rankAs("edl", 3, 2, 1)
		s := w.open(t)
		step(t, s)
		if w.jobs[1].Nice == 0 || w.jobs[2].Nice == 0 {
			t.Fatalf("nices %v", w.nices())
		}
		change(w)
		s = w.open(t) // another process goes on from the ledger
		w.now = w.now.Add(time.Minute)
		step(t, s)
		for id, j := range w.jobs {
			if j.Nice != 0 {
				t.Errorf("%s: job %d has a nice of %d", what, id, j.Nice)
			}
		}
		if what == "stale" && !slices.ContainsFunc(s.Status().Notes, func(note string) bool {
			return strings.Contains(note, "it doesn't know 3 of the 5 jobs")
		}) {
			t.Errorf("nothing says that it is stale: %+v", s.Status().Notes)
		}
	}
}

// A plan by a policy that doesn't look at deadlines has those go first, as a policy's order alone has them.
func TestAPlanThatDoesNotCountDeadlinesHasThemGoFirst(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.settings.Live.Plan.Mode = config.PlanEnforce
	w.job(1, 10, 1000, "").AdminComment = "epplan:T"
	w.job(2, 10, 990, "")
	w.job(3, 10, 980, deadline(2*time.Hour))
	w.rankAs("value", 2, 1, 3)
	w.settings.Ranking.GPUModel = make(map[slurm.JobID]string) // a plan's, not an order's
	s := w.open(t)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{3, 2, 1}) {
		t.Errorf("order %v, nices %v", got, w.nices())
	}
	if nice := s.NiceAtSubmit("gpu", 77, true); nice != 0 {
		t.Errorf("a newcomer with a deadline gets a nice of %d", nice)
	}
}

// A job that is released passes none of those that were put behind others, until it has its own place.
func TestAReleasedJobPassesNobodyInOrder(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.settings.Live.Plan.Mode = config.PlanEnforce
	for id := range slurm.JobID(3) {
		w.job(id+1, 10, 1000-10*int64(id), "").AdminComment = "epplan:T"
	}
	j := w.job(9, 77, 985, "")
	j.AdminComment, j.Priority, j.Reason = "epplan:T", 0, "JobHeldUser"
	w.rankAs("edl", 3, 2, 1)
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(time.Minute)
	j.Reason, j.Eligible = "Priority", w.now
	w.rank(j)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{3, 2, 1, 9}) {
		t.Errorf("order %v, nices %v", got, w.nices())
	}
	w.rankAs("edl", 3, 9, 2, 1)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{3, 9, 2, 1}) {
		t.Errorf("with a place: order %v, nices %v", got, w.nices())
	}
	if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[9].Nice != 0 {
		t.Errorf("undone: %v, nices %v", err, w.nices())
	}
}

// Where nobody was put behind others, a released job's Nice is left alone, and stays its user's own.
func TestAReleasedJobIsLeftAloneWhereNobodyIsBehind(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.settings.Live.Plan.Mode = config.PlanEnforce
	w.job(1, 10, 1000, "").AdminComment = "epplan:T"
	j := w.job(9, 77, 985, "")
	j.AdminComment, j.Priority, j.Reason = "epplan:T", 0, "JobHeldUser"
	w.rankAs("edl", 1)
	s := w.open(t)
	step(t, s)
	w.now = w.now.Add(time.Minute)
	j.Reason, j.Eligible = "Priority", w.now
	w.rank(j)
	if r := step(t, s); r.Set != 0 || s.Status().Nice != 0 {
		t.Errorf("%+v, %+v", r, s.Status())
	}
	w.setNice(9, 50) // by its user
	w.now = w.now.Add(time.Minute)
	w.job(2, 10, 990, "")
	w.rankAs("edl", 2, 1, 9)
	step(t, s)
	if got := w.queue(); !slices.Equal(got, []slurm.JobID{2, 1, 9}) || len(s.Status().Left) > 0 {
		t.Errorf("order %v, nices %v, left alone %v", got, w.nices(), s.Status().Left)
	}
}

// A newcomer that waits for its place comes forward like any other job that waits.
func TestANewcomersNiceAges(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder, w.settings.Live.Pick.Ageing = config.ReorderAll, 600
	for id := range slurm.JobID(3) {
		j := w.job(id+1, 10, 1000, "")
		j.AdminComment, j.Eligible = "epplan:T", w.now
	}
	w.rankAs("edl", 3, 2, 1)
	s := w.open(t)
	step(t, s)
	nice := s.NiceAtSubmit("gpu", 77, false)
	j := w.job(9, 77, 1000, "")
	j.AdminComment, j.Submit, j.Eligible = slurm.TokenWithNice("epplan:N", nice), w.now, w.now
	w.setNice(9, nice)
	step(t, s)
	if w.jobs[9].Nice != nice || nice == 0 {
		t.Errorf("a nice of %d, was %d", w.jobs[9].Nice, nice)
	}
	w.now = w.now.Add(11 * time.Minute)
	if step(t, s); w.jobs[9].Nice != 0 {
		t.Errorf("after eleven minutes: nices %v", w.nices())
	}
}

// What root submits is of one user, too.
func TestJobsOfRootArePutInOrderAmongThemselves(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderOwn
	w.job(1, 0, 1000, "").AdminComment = "epplan:T"
	w.job(2, 0, 500, deadline(5*time.Hour))
	s := w.open(t)
	step(t, s)
	mine, roots := s.NiceAtSubmit("gpu", 77, false), s.NiceAtSubmit("gpu", 0, false)
	if mine != 0 || roots == 0 {
		t.Errorf("another user's job gets a nice of %d, root's %d; nices %v", mine, roots, w.nices())
	}
}

// A job that failed and comes back into the queue still has our nice, which is taken back.
func TestANiceOfAJobThatEndedAndIsRequeuedIsTakenBack(t *testing.T) {
	w := newWorld()
	w.settings.Live.Reorder = config.ReorderAll
	w.job(1, 10, 1000, "")
	w.job(2, 10, 990, "")
	w.rankAs("edl", 2, 1)
	s := w.open(t)
	step(t, s)
	if w.jobs[1].Nice == 0 {
		t.Fatal(w.nices())
	}
	for _, state := range []slurm.JobState{
		{Base: slurm.Running}, {Base: slurm.Failed, Flags: []slurm.State{slurm.Completing}}, {Base: slurm.Failed},
	} {
		w.jobs[1].State = state
		step(t, s)
	}
	if now := s.Status(); now.Nice != 0 {
		t.Errorf("of a job that ended %d nices count", now.Nice)
	}
	w.jobs[1].State = slurm.JobState{Base: slurm.Pending}
	step(t, s)
	if _, err := s.UndoAll(t.Context()); err != nil || w.jobs[1].Nice != 0 {
		t.Errorf("%v, nices %v", err, w.nices())
	}
	w.jobs[1].State = slurm.JobState{Base: slurm.Completed}
	step(t, s)
	delete(w.jobs, 1)
	w.now = w.now.Add(time.Hour)
	step(t, s)
	if now := s.Status(); now.Nice != 0 {
		t.Errorf("%+v", now)
	}
}
