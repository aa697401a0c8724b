package queue

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/textfile"
)

// jobDraft is a job while its fields are being read.
type jobDraft struct {
	job    Job
	model  dvfsmodel.Params
	given  columnSet
	dated  [2]dateForm // how arrival and deadline are written
	each   bool        // the GPUs are those of each node
	pinned string      // GPU models that it may run on; "": any
	nodes  int         // that a list of trackable resources has; 0: none

	bare [colRuntime + 1]string // times that are numbers without a unit; "": they aren't
}

func (d *jobDraft) reset() { *d = jobDraft{job: defaultJob()} }

// set parses the text of a field into the draft. Where it is found says what a
// number without a unit means.
func (d *jobDraft) set(c column, text string, at *columnHeading) *FieldError {
	d.given = d.given.with(c)
	switch c {
	case colID:
		d.job.ID = text
	case colName:
		d.job.Name = text
	case colUser:
		d.job.User = text
	case colWorkload:
		d.job.Workload = text
	case colRuntimeModel:
		d.job.RuntimeModel = text
	case colGPUModel:
		d.pinned = text
	case colGPUs:
		gpus, problem := parseGPUs(text)
		d.job.GPUs = gpus
		d.each, d.nodes = at.each && !strings.Contains(text, "="), nodesOf(text)
		return problem
	case colNodes:
		nodes, problem := parseCount(c, text, maxNodes)
		if problem == nil && nodes < 1 {
			problem = newFieldError(c, "is "+strconv.Itoa(nodes), "1 to "+strconv.Itoa(maxNodes))
		}
		d.job.Nodes = nodes
		return problem
	case colUtil:
		series, problem := parseSeries(c, text)
		d.ensureProfile().UtilPct = series
		return problem
	case colArrival, colDeadline, colLimit, colRuntime:
		value, how, problem := parseTime(c, text, at.unit)
		d.noteBare(c, text, at)
		*d.field(c) = value
		if pointColumns.has(c) && !math.IsInf(value, 1) {
			d.dated[c-colArrival] = how
		}
		return problem
	case colMem:
		value, problem := parseMemory(text, at)
		d.job.MemGiB = value
		return problem
	default:
		value, problem := parseNumber(c, text)
		*d.field(c) = textfile.Scaled(text, value, at.unit)
		return problem
	}
	return nil
}

// noteBare notes a time whose unit nobody states. 0 and infinity are the same in all units.
func (d *jobDraft) noteBare(c column, text string, at *columnHeading) {
	if at.loose && isBare(text) {
		if value, err := strconv.ParseFloat(text, 64); err == nil && value != 0 && !math.IsInf(value, 0) {
			d.bare[c] = text
		}
	}
}

// setOn parses the run time or power on one GPU model.
func (d *jobDraft) setOn(c column, model, text string, at *columnHeading) *FieldError {
	var value float64
	var problem *FieldError
	if c == colRuntime {
		value, _, problem = parseTime(c, text, at.unit)
		d.noteBare(c, text, at)
	} else if value, problem = parseNumber(c, text); problem == nil {
		value = textfile.Scaled(text, value, at.unit)
	}
	if problem != nil {
		return problem
	}
	if !inRange(value) || value == 0 {
		return newFieldError(c, "on "+model+" is "+formatNumber(value), "a number above 0, up to 1e15")
	}
	d.given = d.given.with(c)
	i := slices.IndexFunc(d.job.Measured, func(m Measured) bool { return m.Model == model })
	if i < 0 {
		i = len(d.job.Measured)
		d.job.Measured = append(d.job.Measured, Measured{Model: model})
	}
	place := d.job.Measured[i].field(c)
	if *place > 0 {
		return newFieldError(c, "is there twice for GPU model "+quoted(model), "once each")
	}
	*place = value
	return nil
}

// field returns where a run time or power on one GPU model lives.
func (m *Measured) field(c column) *float64 {
	if c == colRuntime {
		return &m.Runtime
	}
	return &m.Power
}

// field returns where a numeric column of the draft lives.
func (d *jobDraft) field(c column) *float64 {
	if c >= firstModelColumn {
		return coefficient(&d.model, c)
	}
	if profileColumns.has(c) {
		return d.ensureProfile().field(c)
	}
	return d.job.field(c)
}

// field returns where a numeric column of the job lives, the model's apart.
func (j *Job) field(c column) *float64 {
	switch c {
	case colArrival:
		return &j.Arrival
	case colDeadline:
		return &j.Deadline
	case colLimit:
		return &j.Limit
	case colRuntime:
		return &j.Runtime
	case colPower:
		return &j.Power
	case colShare:
		return &j.Share
	case colCPUs:
		return &j.CPUs
	default:
		return &j.MemGiB
	}
}

// isText reports whether a column holds words and not a number.
func isText(c column) bool { return c <= colWorkload || c == colRuntimeModel || c == colGPUModel }

// ensureProfile returns the draft's profile, made when it is first asked for.
func (d *jobDraft) ensureProfile() *GPUProfile {
	if d.job.Profile == nil {
		d.job.Profile = &GPUProfile{}
	}
	return d.job.Profile
}
