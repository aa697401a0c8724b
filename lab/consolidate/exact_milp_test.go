package consolidate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/internal/testkit/sharingtest"
	"github.com/epplan/epplan/planner/share"
	"github.com/epplan/epplan/planner/sharing"
)

// linear writes an instance's problem in its linear form, in the language of
// CPLEX: x task on GPU, y GPU at level, z server, o overload by slot.
type linear struct {
	in       *sharing.Instance
	problem  share.Problem
	levels   []dvfsmodel.MHz
	terms    strings.Builder // rows
	binaries []string
	rows     int
}

func (l *linear) row(format string, args ...any) {
	l.rows++
	fmt.Fprintf(&l.terms, " r%d: "+format+"\n", append([]any{l.rows}, args...)...)
}

// levelSum returns a sum over levels of a GPU.
func (l *linear) levelSum(gpu int, of func(mhz dvfsmodel.MHz) float64) string {
	var sum strings.Builder
	for k, mhz := range l.levels {
		fmt.Fprintf(&sum, " %+.12g y%d_%d", of(mhz), gpu, k)
	}
	return sum.String()
}

func (l *linear) write() string {
	var goal strings.Builder
	for s := range l.in.Servers {
		fmt.Fprintf(&goal, " %+.12g z%d", l.in.Servers[s].HostW(), s)
		l.binaries = append(l.binaries, fmt.Sprintf("z%d", s))
	}
	for t := range l.in.Tasks {
		var sum strings.Builder
		for g := range l.in.GPUs() {
			fmt.Fprintf(&sum, " + x%d_%d", t, g)
			l.binaries = append(l.binaries, fmt.Sprintf("x%d_%d", t, g))
		}
		l.row("%s = %d", sum.String(), l.in.Tasks[t].GPUs)
	}
	for g, gpu := range l.in.GPUs() {
		goal.WriteString(l.levelSum(g, l.in.Physics.PowerAt))
		l.gpu(g, gpu)
	}
	return "Minimize\n" + goal.String() + "\nSubject To\n" + l.terms.String() +
		"Binary\n " + strings.Join(l.binaries, "\n ") + "\nEnd\n"
}

// gpu writes what holds for a GPU.
func (l *linear) gpu(g int, gpu sharing.GPU) {
	one := func(dvfsmodel.MHz) float64 { return 1 }
	for k := range l.levels {
		l.binaries = append(l.binaries, fmt.Sprintf("y%d_%d", g, k))
	}
	l.row("%s - z%d <= 0", l.levelSum(g, one), gpu.Server)
	var mem strings.Builder
	for t := range l.in.Tasks {
		fmt.Fprintf(&mem, " + %.12g x%d_%d", l.in.Tasks[t].MemGB, t, g)
		l.row("x%d_%d %s <= 0", t, g, l.levelSum(g, func(dvfsmodel.MHz) float64 { return -1 }))
	}
	l.row("%s <= %.12g", mem.String(), gpu.MemGB)
	if gpus := l.in.GPUs(); g > 0 && gpus[g-1] == gpu { // of equals the first wakes first
		l.row("%s %s <= 0", l.levelSum(g, one), l.levelSum(g-1, func(dvfsmodel.MHz) float64 { return -1 }))
	}
	overload := ""
	if l.problem == share.Safe {
		overload = l.overload(g)
	}
	for t := range l.in.Tasks {
		kappa := l.in.Tasks[t].Kappa
		speed := l.levelSum(g, func(mhz dvfsmodel.MHz) float64 { return -kappa / l.in.Physics.Stretch(mhz) })
		const big = 20
		if l.problem == share.Safe {
			l.row("%s %s + %d x%d_%d <= %d", overload, speed, big, t, g, big)
		} else {
			l.row("x%d_%d %s <= 0", t, g, speed)
		}
	}
}

// overload writes the overload of a GPU by slot; it is the sum for the mean.
func (l *linear) overload(g int) string {
	slots := l.in.Slots()
	var sum strings.Builder
	for s := range slots {
		var load strings.Builder
		for t := range l.in.Tasks {
			if u := l.in.Tasks[t].UtilPct[s]; u > 0 {
				fmt.Fprintf(&load, " - %.12g x%d_%d", u/100, t, g)
			}
		}
		l.row("o%d_%d %s >= 0", g, s, load.String())
		l.row("o%d_%d %s >= 0", g, s, l.levelSum(g, func(dvfsmodel.MHz) float64 { return -1 }))
		fmt.Fprintf(&sum, " + %.12g o%d_%d", 1/float64(slots), g, s)
	}
	return sum.String()
}

var optimum = regexp.MustCompile(`Status: +INTEGER OPTIMAL\nObjective: +\S+ = (\S+)`)

// solveLinear returns what GLPK says that the best answer takes.
func solveLinear(t *testing.T, in *sharing.Instance, problem share.Problem) float64 {
	t.Helper()
	l := linear{in: in, problem: problem}
	for _, mhz := range in.Physics.LevelsMHz {
		for i := range in.Tasks {
			if in.Physics.Stretch(mhz) <= in.Tasks[i].Kappa {
				l.levels = append(l.levels, mhz)
				break
			}
		}
	}
	dir := t.TempDir()
	model, answer := filepath.Join(dir, "model.lp"), filepath.Join(dir, "answer")
	if err := os.WriteFile(model, []byte(l.write()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "glpsol", "--lp", model, "-o", answer,
		"--cuts").CombinedOutput()
	if err != nil {
		t.Fatalf("glpsol: %v\n%s", err, out)
	}
	text, err := os.ReadFile(answer)
	if err != nil {
		t.Fatal(err)
	}
	found := optimum.FindSubmatch(text)
	if found == nil {
		t.Fatalf("glpsol has no optimum:\n%s", out)
	}
	watts, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return watts
}

func TestExactMeetsAMixedIntegerSolver(t *testing.T) {
	_, err := exec.LookPath("glpsol")
	shareddata.Need(t, err == nil, "glpsol isn't installed: run scripts/test-packages.sh")
	compared := 0
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 11))
		mixes := []string{
			"paperlike", "light", "medium", "antiphase", "membound", "mixed", "gang", "mixedkappa",
		}
		in := sharingtest.Draw(r, mixes[seed%8], 2+r.IntN(3)+4*int(seed/16))
		in.Servers = in.Servers[:max(1, min(len(in.Servers), 3))]
		for i := range in.Tasks { // fewer slots
			in.Tasks[i].UtilPct = in.Tasks[i].UtilPct[:6]
		}
		problems := []share.Problem{share.Safe, share.AsPrinted}
		if len(in.Tasks) > 4 {
			problems = problems[1:] // the solver takes too long for the other
		}
		for _, problem := range problems {
			got := Exact(context.Background(), in, problem, ExactOptions{})
			if math.IsInf(got.PowerW, 1) {
				continue
			}
			compared++
			if want := solveLinear(t, in, problem); !got.Proven || math.Abs(got.PowerW-want) > 1e-6*want {
				t.Errorf("seed %d, %d tasks, %s: %.6f W, proven %t; glpsol %.6f", seed, len(in.Tasks),
					problem, got.PowerW, got.Proven, want)
			}
		}
	}
	if compared < 25 {
		t.Errorf("%d instances had an answer, too few to tell", compared)
	}
}
