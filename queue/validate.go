package queue

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/dvfsmodel"
)

// Bounds of what a valid job holds. They keep sums finite and messages short,
// and make every valid job fit one record of a file.
const (
	maxNumber     = 1e15
	maxGPUs       = 1024
	maxNodes      = maxGPUs
	maxGPUModels  = 64
	maxText       = 256  // bytes of an id, user, workload or GPU model
	maxLongText   = 4096 // bytes of a name or an x_ value
	maxExtraNames = 64   // x_ columns in a batch
)

// Validate reports what is wrong with the job as a [FieldError], or nil.
func (j *Job) Validate() error {
	if problem := j.check(); problem != nil {
		problem.ID, problem.Field = j.ID, nativeNames.name(problem.col)
		return problem
	}
	return nil
}

// Validate reports the first invalid job, two jobs with one id, or a batch
// without jobs ([ErrEmpty]).
func (b *Batch) Validate() error {
	if len(b.Jobs) == 0 {
		return ErrEmpty
	}
	ids := make(map[string]int, len(b.Jobs))
	extras := map[string]bool{}
	profiled := firstProfile(b.Jobs)
	for i := range b.Jobs {
		job := &b.Jobs[i]
		if err := job.Validate(); err != nil {
			return err
		}
		if first, ok := ids[job.ID]; ok {
			return fmt.Errorf("job %s: the id is used by jobs number %d and %d", quoted(job.ID), first+1, i+1)
		}
		ids[job.ID] = i
		if job.Profile != nil {
			if problem := job.Profile.difference(profiled); problem != nil {
				problem.ID, problem.Field = job.ID, nativeNames.name(problem.col)
				return problem
			}
		}
		for _, f := range job.Extra {
			extras[f.Name] = true
		}
		if len(extras) > maxExtraNames {
			return fmt.Errorf("job %s: more than %d different x_ columns in the batch", quoted(job.ID),
				maxExtraNames)
		}
	}
	return nil
}

// check is Validate without names for job and field.
func (j *Job) check() *FieldError {
	for _, step := range [...]func(*Job) *FieldError{
		(*Job).checkTexts, (*Job).checkNumbers, (*Job).checkGPUs, (*Job).checkMeasured,
		(*Job).checkModel, (*Job).checkProfile, (*Job).checkExtras, (*Job).checkTogether,
	} {
		if problem := step(j); problem != nil {
			return problem
		}
	}
	return nil
}

func (j *Job) checkTexts() *FieldError {
	if j.ID == "" {
		return newFieldError(colID, "is empty", "a unique name for the job")
	}
	for _, t := range [...]struct {
		col  column
		text string
	}{{colID, j.ID}, {colUser, j.User}, {colWorkload, j.Workload}} {
		if msg, want := textFault(t.text, maxText, false); msg != "" {
			return newFieldError(t.col, msg, want)
		}
	}
	if msg, want := textFault(j.Name, maxLongText, true); msg != "" {
		return newFieldError(colName, msg, want)
	}
	return nil
}

// textFault says what is wrong with a text, if anything.
func textFault(s string, limit int, multiline bool) (msg, want string) {
	if len(s) > limit {
		return "is " + strconv.Itoa(len(s)) + " bytes long", "at most " + strconv.Itoa(limit)
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8", "text"
	}
	for _, r := range s {
		if unicode.IsControl(r) && (!multiline || r != '\n' && r != '\t') {
			return quoted(s) + " has a control character", "printable text"
		}
	}
	if strings.TrimSpace(s) != s {
		return quoted(s) + " begins or ends with a space", "text without"
	}
	return "", ""
}

func (j *Job) checkNumbers() *FieldError {
	for _, n := range [...]struct {
		col   column
		value float64
	}{
		{colArrival, j.Arrival},
		{colRuntime, j.Runtime},
		{colPower, j.Power},
		{colCPUs, j.CPUs},
		{colMem, j.MemGiB},
	} {
		if !inRange(n.value) {
			return newFieldError(n.col, "is "+formatNumber(n.value), "a number from 0 to 1e15")
		}
	}
	if !inRange(j.Deadline) && !math.IsInf(j.Deadline, 1) {
		return newFieldError(colDeadline, "is "+formatNumber(j.Deadline),
			"a number from 0 to 1e15, or inf for none")
	}
	if !(inRange(j.Limit) && j.Limit > 0) && !math.IsInf(j.Limit, 1) {
		return newFieldError(colLimit, "is "+formatNumber(j.Limit),
			"a number above 0, up to 1e15, or inf for none")
	}
	if !(j.Share > 0 && j.Share <= 1) {
		return newFieldError(colShare, "is "+formatNumber(j.Share), "a number above 0, up to 1")
	}
	return nil
}

func (j *Job) checkGPUs() *FieldError {
	if n := len(j.GPUs); n == 0 || n > maxGPUModels {
		return newFieldError(colGPUs, "lists "+strconv.Itoa(n)+" GPU models",
			"1 to "+strconv.Itoa(maxGPUModels))
	}
	if j.Nodes < 0 || j.Nodes > maxNodes {
		return newFieldError(colNodes, "is "+strconv.Itoa(j.Nodes), "1 to "+strconv.Itoa(maxNodes))
	}
	for i, g := range j.GPUs {
		if g.Count < 1 || g.Count > maxGPUs {
			return newFieldError(colGPUs, "is "+strconv.Itoa(g.Count), "1 to "+strconv.Itoa(maxGPUs))
		}
		if msg, want := gpuModelFault(g.Model); msg != "" {
			return newFieldError(colGPUs, "model "+msg, want)
		}
		if j.Nodes > 1 && g.Count%j.Nodes != 0 {
			return newFieldError(colNodes, "is "+strconv.Itoa(j.Nodes)+" for a job of "+strconv.Itoa(g.Count)+
				" GPUs", "as many GPUs on each node")
		}
		for _, earlier := range j.GPUs[:i] {
			if earlier.Model == g.Model {
				return newFieldError(colGPUs, "names GPU model "+quoted(gpuModelText(g.Model))+" twice",
					"each once")
			}
		}
	}
	return nil
}

func gpuModelFault(model string) (msg, want string) {
	if strings.ContainsAny(model, ":;*") {
		return quoted(model) + " has one of : ; *", "a name without"
	}
	if slurmGPUs.MatchString(model) {
		return quoted(model) + " is Slurm's word for GPUs of any model", "a model's name"
	}
	return textFault(model, maxText, false)
}

// checkMeasured looks at run times and powers on GPU models.
func (j *Job) checkMeasured() *FieldError {
	if j.RuntimeModel != "" && j.RuntimeModel != AnyModel {
		if msg, want := gpuModelFault(j.RuntimeModel); msg != "" {
			return newFieldError(colRuntimeModel, msg, want+", or * for every GPU model alike")
		}
	}
	if len(j.Measured) > maxGPUModels {
		return newFieldError(colRuntime, "is there for "+strconv.Itoa(len(j.Measured))+" GPU models",
			"at most "+strconv.Itoa(maxGPUModels))
	}
	for i := range j.Measured {
		m := &j.Measured[i]
		if problem := modelColumnFault(colRuntime, m.Model); problem != nil {
			return problem
		}
		if i > 0 && j.Measured[i-1].Model >= m.Model {
			return newFieldError(colRuntime,
				"on "+quoted(m.Model)+" comes after "+quoted(j.Measured[i-1].Model),
				"GPU models by name, each once")
		}
		if m.Runtime == 0 && m.Power == 0 {
			return newFieldError(colRuntime, "on "+quoted(m.Model)+" is 0, and so is the power",
				"one of both above 0")
		}
		for _, c := range [...]column{colRuntime, colPower} {
			if value := *m.field(c); !inRange(value) {
				return newFieldError(c, "on "+quoted(m.Model)+" is "+formatNumber(value),
					"a number from 0 to 1e15")
			}
			if m.Model == j.RuntimeModel && *m.field(c) > 0 && *j.field(c) > 0 {
				return newFieldError(c, "on "+quoted(m.Model)+" is there twice: "+nativeNames[c]+
					" is of that GPU model, too", "it once")
			}
		}
	}
	return nil
}

// modelColumnFault says what is wrong with the GPU model of a column such as
// runtime_s.V100.
func modelColumnFault(of column, model string) *FieldError {
	if model == "" {
		return newFieldError(of, "has no GPU model after the dot", "one such as "+nativeNames[of]+".V100")
	}
	if msg, want := gpuModelFault(model); msg != "" {
		return newFieldError(of, "on GPU model "+msg, want)
	}
	return nil
}

// HasRunTime reports whether the job states a run time, on whichever GPU model.
func (j *Job) HasRunTime() bool {
	return j.Runtime > 0 || slices.ContainsFunc(j.Measured, func(m Measured) bool { return m.Runtime > 0 })
}

func (j *Job) checkModel() *FieldError {
	if j.Model == nil {
		return nil
	}
	for c := firstModelColumn; c < numColumns; c++ {
		v, most := *coefficient(j.Model, c), coefficients[c-firstModelColumn].Max
		if !inRange(v) {
			return newFieldError(c, "is "+formatNumber(v), "a number from 0 to 1e15")
		}
		if v > most {
			return newFieldError(c, "is "+formatNumber(v), "a number from 0 to "+formatNumber(most))
		}
	}
	if j.Model.DefaultTime() <= 0 {
		return newFieldError(firstModelColumn+dvfsmodel.IndexOfD, "is 0 and the constant time is 0 too",
			"a positive run time")
	}
	return nil
}

func (j *Job) checkExtras() *FieldError {
	if len(j.Extra) > maxExtraNames {
		return newFieldError(colExtra, "job has "+strconv.Itoa(len(j.Extra))+" x_ columns",
			"at most "+strconv.Itoa(maxExtraNames))
	}
	for i, f := range j.Extra {
		if msg, want := extraNameFault(f.Name); msg != "" {
			return newFieldError(colExtra, "column name "+msg, want)
		}
		if msg, want := extraValueFault(f.Value); msg != "" {
			return newFieldError(colExtra, f.Name+" "+msg, want)
		}
		if i > 0 && j.Extra[i-1].Name >= f.Name {
			return newFieldError(colExtra, "column "+quoted(f.Name)+" comes after "+quoted(j.Extra[i-1].Name),
				"x_ columns by name, each once")
		}
	}
	return nil
}

func extraNameFault(name string) (msg, want string) {
	if !isExtra(name) {
		return quoted(name), "one that begins with x_"
	}
	return textFault(name, maxText, false)
}

// extraValueFault allows spaces at the ends, unlike other texts.
func extraValueFault(value string) (msg, want string) {
	if value == "" {
		return "is empty", "a value, or no such column"
	}
	trimmed := strings.Trim(value, " \t\n")
	if len(value) <= maxLongText && trimmed == strings.TrimSpace(trimmed) {
		value = trimmed
	}
	return textFault(value, maxLongText, true)
}

func (j *Job) checkTogether() *FieldError {
	if j.Model == nil && j.Workload == "" && !j.HasRunTime() {
		return newFieldError(colJob, "nothing says how long job "+quoted(j.ID)+" runs",
			"a run time, a workload or a model")
	}
	if j.Deadline < j.Arrival {
		return newFieldError(colDeadline,
			"is "+formatNumber(j.Deadline)+", before the arrival at "+formatNumber(j.Arrival), "a later one")
	}
	if j.Nodes > 1 && j.Profile != nil {
		return newFieldError(colNodes, "is "+strconv.Itoa(j.Nodes)+" for a job with a profile",
			"1 for a job that may share GPUs")
	}
	for _, g := range j.GPUs {
		if j.Share < 1 && g.Count > 1 {
			return newFieldError(colShare, "is "+formatNumber(j.Share)+" for a job of "+strconv.Itoa(g.Count)+
				" GPUs", "a share of one GPU, or whole GPUs")
		}
	}
	return nil
}

// slurmResources finds a list of trackable resources.
var slurmResources = regexp.MustCompile(`^[a-z_/]+=[^,;*]*(?:,[a-z_/:]+=[^,;*]*)+$`)

// slurmGPUs finds GPUs as Slurm writes them.
var slurmGPUs = regexp.MustCompile(`^[^;*]*(?:^|[,/:])gpu(?:[:=(,][^;*]*)?$`)

func gpuModelText(model string) string {
	if model == "" {
		return AnyModel
	}
	return model
}
