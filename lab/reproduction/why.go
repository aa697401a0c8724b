// Package reproduction puts numbers of the papers, computed anew, beside the papers', by the figures and
// tables that have them: as text, table and page with pictures, and with the reasons why they differ.
package reproduction

import (
	"slices"
	"strings"
)

// Reasons that several figures share. InWords is that of figures that need the trace's lists.
const (
	whyDrawnSets = "task sets are drawn like the paper's; it publishes neither them nor its " +
		"applications' parameters, but ranges"
	whyIdle = "not reproduced: by the readings of lab/docs/papers/edl.md servers of 16 pairs idle less " +
		"than the paper says"
	whySleep = "not reproduced: the paper's idle energy is about that of servers that never sleep, " +
		"ours go off after ρ slots; see lab/docs/papers/edl.md"
	whySynthetic = "a synthetic trace stands for Alibaba's; with its lists (--pwr-data) the streams are " +
		"those of the paper's simulator"
	InWords        = "the paper states it in words, rounded"
	whyDrawnQueues = "queues are drawn: the paper publishes neither its queues nor how many jobs they have"
	whyFrugal      = "not reproduced: the value rule takes the frugal, slower type of GPU, so " +
		"running time rises"
	whyWeights = "not reproduced: tuned weights trade waiting for energy; in the paper all three save " +
		"the same 44 to 46 %"
	whyOptimum = "the paper's optimum is two GPUs at 1159 MHz: its equations allow one, its SLA with " +
		"contention needs four"
	whyPrinted = "not reproduced: three readings of algorithm 1, none of which has the paper's 2.4 " +
		"GPUs on (lab/docs/papers/cats.md)"
	whyFitted = "the run time of the testbed's tasks, which the paper doesn't give, is chosen so " +
		"that this row fits"
	whyFittedToo    = "by the run time at which HotCloud's row fits"
	whyOtherMachine = "times of this machine; the paper's machine isn't named"
	whyOtherSolver  = "times of this machine and of another solver, for drawn instances"
	whyOwnUnit      = "1 by definition"
	whyDrawnStream  = "not comparable: the stream is drawn, the paper's isn't public; its MW are taken for kW"
)

// differenceReasons say why figures differ from the paper's; the first that fits counts.
var differenceReasons = []differenceReason{ //nolint:gochecknoglobals // constant
	{
		"edl", "single", "",
		"the paper publishes ranges of its applications' parameters only; ours are spread over them",
	},
	{"edl", "table3", "J1 (δ 0, deadline 50) power", "the exact optimum is 125.00 W, at fc 0.5 and fm 1.2"},
	{"edl", "offline", "idle", whyIdle},
	{"edl", "offline", "without DVFS", whyIdle},
	{"edl", "offline", "", whyDrawnSets},
	{"edl", "online", "run energy", whyDrawnSets},
	{"edl", "online", "edl-bin", whyDrawnSets},
	{"edl", "online", "l 16", whySleep},
	{"pwr", "", "synthetic", whySynthetic},
	{"pwr", "", "", InWords},
	{"predict", "table1", "value: total running time saved", whyFrugal},
	{"predict", "table2", "energy: total running time saved", whyFrugal},
	{"predict", "table2", "simple", whyDrawnQueues},
	{"predict", "table2", ": energy", whyWeights},
	{"predict", "", "", whyDrawnQueues},
	{"cats", "testbed", "optimum", whyOptimum},
	{"cats", "testbed", "hotcloud", whyFitted},
	{"cats", "testbed", "first", whyFittedToo},
	{"cats", "testbed", "cats", whyPrinted},
	{"cats", "table1", "", whyOtherSolver},
	{"cats", "table2", "", whyOtherMachine},
	{"cats", "", "cats: completion time", whyOwnUnit},
	{"cats", "", "", whyDrawnStream},
}

// differenceReason is why some figures of a paper differ: those of a section, whose name
// has that part.
type differenceReason struct{ paper, section, part, why string }

// incomparable are reasons by which a figure says nothing of how well the paper
// was met, for better or worse.
var incomparable = []string{whyFitted, whyOtherMachine, whyOtherSolver, whyOwnUnit, whyDrawnStream} //nolint:gochecknoglobals // constant

// isIncomparable reports whether a reason says that the figure can't be compared.
func isIncomparable(why string) bool { return slices.Contains(incomparable, why) }

// Reasons returns every reason.
func Reasons() []string {
	all := make([]string, len(differenceReasons))
	for i, w := range differenceReasons {
		all[i] = w.why
	}
	return all
}

// Why returns why a figure of a section differs from the paper's, or "" if there is nothing to say.
func Why(paper, section, what string) string {
	for _, w := range differenceReasons {
		if w.paper == paper && (w.section == "" || w.section == section) && strings.Contains(what, w.part) {
			return w.why
		}
	}
	return ""
}
