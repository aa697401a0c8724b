package queue

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/spelling"
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
	"gputype":    colGPUModel, "gputypes": colGPUModel, "gpumodels": colGPUModel, "gpuname": colGPUModel,
	"gpushare": colShare,
	"cpu":      colCPUs, "ncpu": colCPUs, "ncpus": colCPUs, "numcpus": colCPUs, "cores": colCPUs,
	"ncores":  colCPUs,
	"reqcpus": colCPUs, "alloccpus": colCPUs,
	"mem": colMem, "memory": colMem, "ram": colMem, "reqmem": colMem, "memgb": colMem, "memorygb": colMem,
	"memorygib": colMem,
}

// Columns of sacct whose names have no unit: a time limit in minutes, a run time in seconds.
const (
	minutesRaw = "timelimitraw"
	secondsRaw = "elapsedraw"
)

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
	unit  float64 // what a number without a unit is multiplied by; 0: it is in that of the column
	loose bool    // the name doesn't say what a number without a unit is
	each  bool    // GPUs of each node
	kept  bool    // kept, and not used
}

// unitUnknown is the unit of a moment whose name has something in brackets that isn't a unit, such
// as a zone: it does for dates.
var unitUnknown = math.NaN()

// columnHeadingOf finds what a name in a native file stands for: a column's own name, or one
// of those above, whatever its letters and marks, with a unit or without.
func columnHeadingOf(name string) (h columnHeading, ok bool) {
	if isExtra(name) {
		return columnHeading{col: colExtra, extra: name}, true
	}
	if col, ok := nativeNames.find(name); ok {
		return columnHeading{col: col}, true
	}
	if h, ok := parseModelColumn(name); ok && h.unit == 0 {
		return h, true
	}
	folded := textfile.Fold(name)
	if folded == minutesRaw {
		return columnHeading{col: colLimit, unit: minute}, true
	}
	for c := range firstModelColumn {
		if folded == strings.ReplaceAll(nativeNames[c], "_", "") {
			return columnHeading{col: c}, true
		}
	}
	if col, ok := aliases[folded]; ok {
		return columnHeading{
			col: col, loose: timeColumns.has(col) && folded != secondsRaw ||
				col == colMem && !strings.HasSuffix(folded, "b"),
			each: slices.Contains(perNodeColumns, folded),
		}, true
	}
	for _, kept := range passThroughColumns {
		if folded == kept {
			return columnHeading{col: colExtra, extra: extraPrefix + kept, kept: true}, true
		}
	}
	for _, split := range textfile.UnitSplits(name) {
		if col, ok := aliases[split.Rest]; ok {
			if unit, ok := quantityOf(col).InUnit(split.Unit); ok {
				return columnHeading{col: col, unit: unit}, true
			}
		}
	}
	return parseModelColumn(name)
}

// perNode finds names of GPUs that are those of each node.
var perNode = regexp.MustCompile(`(?i)(?:per|pro|par|je|/)[ _.-]*(?:node|knoten|n(?:oe|œ)ud|host|server)`)

// givenHeading returns what a name stands for that the caller gave a column, with the unit that the
// caller or the name states.
func givenHeading(name, target string) (columnHeading, *FieldError) {
	column, unit := textfile.SplitTarget(target)
	if isExtra(column) {
		return columnHeading{col: colExtra, extra: column}, nil
	}
	if of, perModel := parseModelColumn(column); perModel && of.unit == 0 {
		if unit != "" {
			unit = "[" + unit + "]"
		}
		h, problem := givenHeading(name, nativeNames[of.of]+unit)
		h.col, h.of, h.extra = colOnModel, of.of, of.extra
		return h, problem
	}
	col, ok := nativeNames.find(column)
	if !ok {
		return columnHeading{}, newFieldError(colJob, "there is no column "+quoted(column)+" for "+
			quoted(name), "one of "+strings.Join(nativeNames.known(), ", "))
	}
	if own, known := columnHeadingOf(name); known && own.col == col && unit == "" {
		own.loose = false // the caller says what its numbers are
		return own, nil
	}
	h := columnHeading{col: col, each: col == colGPUs && perNode.MatchString(name)}
	quantity := quantityOf(col)
	factor, stated, doubt := quantity.StatedUnit(name)
	if unit == "" {
		h.unit = factor
		if doubt != "" && pointColumns.has(col) {
			h.unit, doubt = unitUnknown, ""
		}
		if doubt != "" {
			return h, newFieldError(colJob, doubt, "the unit stated as "+column+"[UNIT]: "+quantity.Units())
		}
		return h, nil
	}
	if h.unit, ok = quantity.InUnit(unit); !ok {
		return h, newFieldError(col, "can't be in "+quoted(unit), quantity.Units())
	}
	if stated && factor != h.unit {
		return h, newFieldError(colJob, quoted(name)+" is said to be in "+unit+", and its name says another unit",
			"one of both")
	}
	return h, nil
}

// quantityOf returns what the numbers of a column measure, by its name.
func quantityOf(col column) textfile.Quantity {
	name := nativeNames.name(col)
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "s":
		return textfile.Time
	case "w":
		return textfile.Power
	case "gib", "gb":
		return textfile.Memory
	case "pct":
		return textfile.Percent
	}
	return textfile.NoQuantity
}

// nearestColumn returns the known name that one in a file is probably a slip of; empty:
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

// unknownWant returns what a message about an unknown name suggests: the nearest
// known one, or all of them.
func unknownWant(name string, known []string) string {
	for _, split := range textfile.UnitSplits(name) {
		if col, ok := aliases[split.Rest]; ok && split.Brackets && quantityOf(col) != textfile.NoQuantity {
			return nativeNames[col] + " in " + quantityOf(col).Units() + ", and not in " + quoted(split.Unit)
		}
	}
	if best := nearestColumn(name, known); best != "" {
		return quoted(best) + " (or a name that begins with x_)"
	}
	return "one of " + strings.Join(known, ", ") + ", or a name that begins with x_"
}
