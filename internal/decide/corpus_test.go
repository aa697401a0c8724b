package decide

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/learn"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

var update = flag.Bool("update", false, "write the corpus of decisions anew")

// corpus is the decisions that were made for drawn jobs, a line each. A change of the
// choice that wasn't meant shows here, with all that it changes.
const corpus = "testdata/decisions.txt"

func TestDecisionsAreThoseOfTheCorpus(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 4))
	from := newPool(t, rng, 8)
	var got bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&got, "%03d %s\n", i, drawnDecision(t, rng, from.draw(rng)))
	}
	if *update {
		if err := os.WriteFile(corpus, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	a, b := bytes.Split(got.Bytes(), []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(a) != len(b) {
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			t.Errorf("%s\nwant (-update writes it anew)\n%s", a[i], b[i])
		}
	}
}

// drawnDecision returns the decision for a job, what it is made by before the arrow.
func drawnDecision(t *testing.T, rng *rand.Rand, a *alike) string {
	t.Helper()
	mode := []string{"enforce", "enforce", "enforce", "enforce", "advise", "observe"}[rng.IntN(6)]
	constant := ""
	if rng.IntN(4) == 0 {
		a.minCore, a.maxCore, a.minMem, a.maxMem = 0.1, 2, 0.1, 2
		pair := drawPair(rng, a.profile.Pairs())
		constant = fmt.Sprintf("constant_arm = 0.3\nconstant_clocks = { %q = [%v, %v] }\n", a.profile.Name,
			float64(pair.Core), float64(pair.Mem))
	}
	text := fmt.Sprintf("[safety]\nlimit_margin = %v\ndeadline_margin_s = %v\n[objective]\n"+
		"name = %q\ntime_weight = %v\n"+
		"[live]\nmode = %q\nhold_out = 0.1\nexplore = 0.2\nmin_gain = 0\n"+
		"max_slowdown = %v\ntime_margin = %v\nmin_core = %v\nmax_core = %v\n"+
		"min_mem = %v\nmax_mem = %v\n",
		a.limitMargin, a.deadlineMargin, a.objective, a.timeWeight, mode, a.stretch, a.timeMargin, a.minCore,
		a.maxCore, a.minMem, a.maxMem) + constant
	if rng.IntN(5) == 0 {
		text += "[live.adapt]\nmode = \"on\"\n"
	}
	ch := a.chooser(t, text)
	var wishes slurm.Wishes
	wishes.Deadline = ch.decision.Wish.Deadline
	asked := "-"
	switch rng.IntN(12) {
	case 0:
		wishes.Off, asked = true, "off"
	case 1:
		pairs := a.profile.Pairs()
		pair := pairs[rng.IntN(len(pairs))]
		wishes.CoreMHz, wishes.MemoryMHz, asked = int(pair.Core)+rng.IntN(2), int(pair.Mem), "fixed"
	case 2:
		ch.job.Limit, asked = live.Limit{}, "limit unknown"
	case 3:
		ch.request.Shared, asked = true, "shared"
	case 4:
		_, known := newDecider(t, 0, func() time.Time { return start })
		known.Observe([]slurm.Job{{
			ID: 1, State: slurm.JobState{Base: slurm.Running}, Partition: "p", NodeCount: 1,
			Allocated: slurm.TRES{"gres/gpu": 1}, TimeLimit: ch.job.Limit,
			Deadline: start.Add(time.Duration(60*rng.IntN(200)) * time.Second),
		}})
		ch.job, asked = known.Get(1), "Slurm deadline"
	}
	ch.explores = rng.IntN(3) == 0
	ch.model.Candidates = []learn.Candidate{
		{At: drawPair(rng, ch.table.Pairs), Gain: 0.1}, {At: drawPair(rng, ch.table.Pairs), Gain: 0.05},
	}
	lot := rng.Float64()
	ch.choose(&wishes)
	before := *ch.decision
	p := ch.settings.armShares(a.profile.Name)
	ch.drawArm(&p, lot)
	d := ch.decision
	return fmt.Sprintf("%v, %s, %s, explores %v, lot %.2f -> %v/%v %v %v, %v W %v J %v s at most %v s, "+
		"adapted %v, before the lot %v/%v: %s", a, mode, asked, ch.explores, lot,
		float64(d.Core), float64(d.Mem), d.Apply, d.Arm, six(d.PowerW), six(d.EnergyJ), six(d.Predicted),
		six(d.Upper), d.Adapt != nil, float64(before.Core), float64(before.Mem), d.Reason)
}

func drawPair(rng *rand.Rand, pairs []dvfsmodel.Setting) dvfsmodel.Setting {
	return pairs[rng.IntN(len(pairs))]
}

func six(n live.Number) string { return fmt.Sprintf("%.6g", n.Or(-1)) }
