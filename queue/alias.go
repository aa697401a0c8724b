package queue

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/epplan/epplan/internal/spelling"
)

// aliases are further names of columns, as sacct, squeue, sbatch and people write
// them: in small letters, without what isn't a letter or a digit.
var aliases = map[string]column{
	"job": colID, "jobid": colID, "jobidraw": colID,
	"jobname": colName, "username": colUser, "owner": colUser,
	"application": colWorkload, "app": colWorkload,

	"arrival": colArrival, "arrivaltime": colArrival, "submit": colArrival, "submittime": colArrival,
	"submitted": colArrival, "submission": colArrival, "submissiontime": colArrival,
	"deadline": colDeadline, "due": colDeadline, "duetime": colDeadline, "duedate": colDeadline,
	"limit": colLimit, "timelimit": colLimit, "walltime": colLimit, "walltimelimit": colLimit,
	"wallclock": colLimit, "wallclocklimit": colLimit, "maxtime": colLimit, "maxruntime": colLimit,
	"runtime": colRuntime, "elapsed": colRuntime, "elapsedtime": colRuntime, "elapsedraw": colRuntime,
	"duration": colRuntime, "exectime": colRuntime, "executiontime": colRuntime,

	"power": colPower, "watts": colPower, "gpupower": colPower, "meanpower": colPower, "avgpower": colPower,
	"gpu": colGPUs, "ngpu": colGPUs, "ngpus": colGPUs, "numgpus": colGPUs, "gpucount": colGPUs,
	"gres": colGPUs, "reqgres": colGPUs, "tres": colGPUs, "reqtres": colGPUs, "alloctres": colGPUs,
	"gpuspernode": colGPUs, "gpupernode": colGPUs, "trespernode": colGPUs,
	"nnodes": colNodes, "numnodes": colNodes, "nodecount": colNodes, "reqnodes": colNodes,
	"allocnodes": colNodes,
	"gpushare":   colShare,
	"cpu":        colCPUs, "ncpu": colCPUs, "ncpus": colCPUs, "numcpus": colCPUs, "cores": colCPUs,
	"ncores":  colCPUs,
	"reqcpus": colCPUs, "alloccpus": colCPUs,
	"mem": colMem, "memory": colMem, "ram": colMem, "reqmem": colMem, "memgb": colMem, "memorygb": colMem,
	"memorygib": colMem,
}

// minutesRaw is sacct's time limit in minutes, which has no unit in its name.
const minutesRaw = "timelimitraw"

// perNodeColumns are the names by which GPUs are those of each node, as Slurm means them.
var perNodeColumns = []string{"gres", "reqgres", "gpuspernode", "gpupernode", "trespernode"}

// passThroughColumns are those of Slurm's that are kept with a job and not used.
var passThroughColumns = []string{
	"partition", "account", "qos", "state", "comment", "project", "group", "cluster",
}

// columnHeading is what a name in a file stands for.
type columnHeading struct {
	col   column
	extra string  // the name of an x_ column, or the GPU model of colOnModel
	of    column  // what colOnModel says of that model
	unit  float64 // seconds of a number without a unit; 0: that of the column
	loose bool    // the name doesn't say what a number without a unit is
	each  bool    // GPUs of each node
	kept  bool    // kept, and not used
}

// columnHeadingOf finds what a name in a native file stands for: a column's own name, one
// that the caller gave it, or one of those above, whatever its letters and marks.
func columnHeadingOf(name string, given map[string]string) (h columnHeading, ok bool) {
	if own := given[name]; own != "" {
		name = own
	}
	if isExtra(name) {
		return columnHeading{col: colExtra, extra: name}, true
	}
	if col, ok := nativeNames.find(name); ok {
		return columnHeading{col: col}, true
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	folded := strings.Join(words, "")
	if folded == minutesRaw {
		return columnHeading{col: colLimit, unit: minute}, true
	}
	for c := range firstModelColumn {
		if folded != "" && folded == strings.ReplaceAll(nativeNames[c], "_", "") {
			return columnHeading{col: c}, true
		}
	}
	if col, ok := aliases[folded]; ok {
		return columnHeading{
			col: col, loose: col == colLimit || col == colMem && !strings.HasSuffix(folded, "b"),
			each: slices.Contains(perNodeColumns, folded),
		}, true
	}
	for _, kept := range passThroughColumns {
		if folded == kept {
			return columnHeading{col: colExtra, extra: extraPrefix + kept, kept: true}, true
		}
	}
	if len(words) < 2 {
		return columnHeading{}, false
	}
	unit, known := timeUnits[words[len(words)-1]]
	col, ok := aliases[strings.Join(words[:len(words)-1], "")]
	if !known || !ok || !timeColumns.has(col) {
		return columnHeading{}, false
	}
	return columnHeading{col: col, unit: unit}, true
}

// nearestColumn is the known name that one in a file is probably a slip of; empty:
// none is near.
func nearestColumn(name string, known []string) string {
	if best := spelling.Nearest(name, known); best != "" {
		return best
	}
	if best := spelling.Nearest(name, slices.Sorted(maps.Keys(aliases))); best != "" {
		return nativeNames[aliases[best]]
	}
	return ""
}

// unknownWant is what a message about an unknown name suggests: the nearest
// known one, or all of them.
func unknownWant(name string, known []string) string {
	if best := nearestColumn(name, known); best != "" {
		return quoted(best) + " (or a name that begins with x_)"
	}
	return "one of " + strings.Join(known, ", ") + ", or a name that begins with x_"
}
