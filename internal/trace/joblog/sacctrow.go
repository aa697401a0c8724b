package joblog

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// sacctColumnID is what stands in a column of sacct's.
type sacctColumnID int

// The columns that are read; freeTextColumn can hold anything and isn't needed.
const (
	otherColumn sacctColumnID = iota
	freeTextColumn
	jobIDColumn
	rawIDColumn
	clusterColumn
	userColumn
	accountColumn
	partitionColumn
	qosColumn
	nameColumn
	stateColumn
	exitColumn
	submitColumn
	eligibleColumn
	startColumn
	endColumn
	elapsedColumn
	rawElapsedColumn
	limitColumn
	rawLimitColumn
	nodeListColumn
	nodesColumn
	cpusColumn
	allocatedColumn
	requestedColumn
	gresColumn
	energyColumn
	usageColumn
)

var columnNames = map[string]sacctColumnID{
	"jobid": jobIDColumn, "jobidraw": rawIDColumn, "cluster": clusterColumn, "user": userColumn,
	"account":   accountColumn,
	"partition": partitionColumn, "qos": qosColumn, "jobname": nameColumn, "state": stateColumn,
	"exitcode": exitColumn,
	"submit":   submitColumn, "eligible": eligibleColumn, "start": startColumn, "end": endColumn,
	"elapsed":    elapsedColumn,
	"elapsedraw": rawElapsedColumn, "timelimit": limitColumn, "timelimitraw": rawLimitColumn,
	"nodelist": nodeListColumn,
	"nnodes":   nodesColumn, "allocnodes": nodesColumn, "alloccpus": cpusColumn, "ncpus": cpusColumn,
	"alloctres": allocatedColumn, "reqtres": requestedColumn, "allocgres": gresColumn, "reqgres": gresColumn,
	"consumedenergyraw": energyColumn, "tresusageinave": usageColumn, "tresusageintot": usageColumn,
	"comment": freeTextColumn, "admincomment": freeTextColumn, "systemcomment": freeTextColumn,
	"workdir": freeTextColumn, "submitline": freeTextColumn,
	"extra": freeTextColumn, "wckey": freeTextColumn, "container": freeTextColumn,
	"reservation": freeTextColumn, "constraints": freeTextColumn,
	"derivedexitcode": otherColumn, "stdout": freeTextColumn, "stderr": freeTextColumn,
	"stdin": freeTextColumn,
}

// isFreeText reports whether a user may have written what stands there.
func (c sacctColumnID) isFreeText() bool {
	return c == freeTextColumn || c == nameColumn || c == accountColumn
}

// sacctColumns are those of a log, in order.
type sacctColumns []sacctColumnID

// isFramed reports whether the job is named before and behind all that users write.
func (c sacctColumns) isFramed() bool {
	id := func(c sacctColumnID) bool { return c == jobIDColumn || c == rawIDColumn }
	first := slices.IndexFunc(c, sacctColumnID.isFreeText)
	return first >= 0 && slices.ContainsFunc(c[:first], id) && slices.ContainsFunc(c[first:], id) &&
		!c[len(c)-1].isFreeText()
}

func newColumns(names []string) (sacctColumns, error) {
	all := make(sacctColumns, len(names))
	for i, name := range names {
		all[i] = columnNames[strings.ToLower(name)]
	}
	has := func(one ...sacctColumnID) bool {
		return slices.ContainsFunc(one, func(c sacctColumnID) bool { return slices.Contains(all, c) })
	}
	switch {
	case !has(jobIDColumn, rawIDColumn):
		return nil, errors.New("want a header with JobID or JobIDRaw")
	case !has(stateColumn):
		return nil, errors.New("no column State")
	case !has(endColumn) || !has(startColumn, elapsedColumn, rawElapsedColumn):
		return nil, errors.New("no columns Start and End")
	}
	return all, nil
}

// sacctRow is a line on its way to a job.
type sacctRow struct {
	past     record.HistoryJob
	reader   *sacctReader
	ref      slurm.JobRef
	eligible time.Time
	limit    live.Limit
	elapsed  time.Duration
	timed    bool // elapsed is known
	nodeless bool // no node was assigned
	usage    slurm.TRES

	allocated, requested, gres string // as they stand there; of jobs alone they are needed

	kind string // of err
	err  error  // what is wrong with the line
}

// parseRow reads a line's cells.
func (s *sacctReader) parseRow(cells []string) *sacctRow {
	r := &sacctRow{reader: s}
	for i, cell := range cells {
		if kind, err := r.readCell(s.columns[i], cell); err != nil && r.err == nil {
			r.kind, r.err = kind, err
		}
	}
	if r.ref.Job == 0 && r.err == nil {
		r.kind, r.err = kindID, errors.New("no job id")
	}
	if r.err == nil && r.ref.Step == "" {
		r.kind, r.err = kindNumber, r.finish()
	}
	return r
}

func (r *sacctRow) readCell(c sacctColumnID, text string) (kind string, err error) {
	p := &r.past
	switch c {
	case jobIDColumn, rawIDColumn:
		return kindID, r.setID(c, text)
	case stateColumn:
		p.State = string(slurm.ParseJobState(text).Base)
	case submitColumn:
		p.Submitted, err = r.time(text)
	case eligibleColumn:
		r.eligible, err = r.time(text)
	case startColumn:
		p.Started, err = r.time(text)
	case endColumn:
		p.Ended, err = r.time(text)
	case elapsedColumn, rawElapsedColumn, limitColumn, rawLimitColumn:
		return r.setDuration(c, text)
	case exitColumn, nodesColumn, cpusColumn, energyColumn:
		return kindNumber, r.setNumber(c, text)
	case allocatedColumn, requestedColumn, gresColumn, usageColumn:
		return kindNumber, r.setResources(c, text)
	default:
		r.setText(c, text)
	}
	if strings.HasPrefix(text, "-") {
		return kindNegative, err
	}
	return kindTime, err
}

// setText takes a text as it is.
func (r *sacctRow) setText(c sacctColumnID, text string) {
	p := &r.past
	switch c {
	case clusterColumn:
		p.Cluster = text
	case userColumn:
		p.User = text
	case accountColumn:
		p.Account = orEmpty(text)
	case partitionColumn:
		p.Partition = text
	case qosColumn:
		p.QOS = orEmpty(text)
	case nameColumn:
		p.Name = []byte(text[:min(len(text), maxName)])
	case nodeListColumn:
		r.nodeless = orEmpty(text) == ""
	default:
	}
}

// maxName is how long a job's name may be (Slurm's bound), bytes.
const maxName = 1024

// orEmpty is a text, or nothing for Slurm's words for nothing.
func orEmpty(text string) string {
	switch text {
	case "(null)", "N/A", "None", "None assigned", "Unknown", "NONE":
		return ""
	}
	return text
}

// setID takes a job's id, which JobID and JobIDRaw both say; only of an array's task
// and of a part of a heterogeneous job it differs.
func (r *sacctRow) setID(c sacctColumnID, text string) error {
	ref, err := slurm.ParseJobRef(text)
	if err != nil {
		return err
	}
	before := r.ref
	if c == jobIDColumn || before.Job == 0 {
		r.ref = ref
	}
	switch {
	case before.Job == 0:
		return nil
	case before.Step != ref.Step:
		return fmt.Errorf("JobID and JobIDRaw name different steps, one of them %s", printable(text))
	case !r.ref.Array && !r.ref.Het && before.Job != ref.Job:
		return fmt.Errorf("JobID and JobIDRaw name different jobs, %s and %s", before.Job, ref.Job)
	}
	return nil
}

func (r *sacctRow) time(text string) (time.Time, error) { return slurm.ParseTime(text, r.reader.zone) }

// setDuration reads times that passed or may pass.
func (r *sacctRow) setDuration(c sacctColumnID, text string) (kind string, err error) {
	if strings.HasPrefix(text, "-") {
		return kindNegative, fmt.Errorf("%s, want 0 or more", printable(text))
	}
	switch c {
	case rawElapsedColumn:
		if text == "" {
			return "", nil
		}
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > maxSeconds {
			return kindTime, fmt.Errorf("column ElapsedRaw is %s, want seconds", printable(text))
		}
		r.elapsed, r.timed = time.Duration(seconds)*time.Second, true
	case elapsedColumn:
		if text == "" || r.timed {
			return "", nil
		}
		if !strings.Contains(text, ":") {
			return kindTime, fmt.Errorf("column Elapsed is %s, want days-hours:minutes:seconds",
				printable(text))
		}
		if strings.Count(text, ":") == 1 {
			text = "00:" + text // hours aren't left out
		}
		r.elapsed, err = slurm.ParseDuration(text)
		r.timed = err == nil
	default:
		var limit live.Limit
		if limit, err = slurm.ParseLimit(text); err == nil && !r.limit.IsSet() {
			r.limit = limit
		}
	}
	return kindTime, err
}

func (r *sacctRow) setNumber(c sacctColumnID, text string) error {
	if text = orEmpty(text); text == "" {
		return nil
	}
	p := &r.past
	if c == exitColumn {
		exit, err := slurm.ParseExit(text)
		p.ExitCode = live.Known(float64(exit.Code))
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || math.IsInf(v, 0) {
		return fmt.Errorf("%s, want a number of 0 or more", printable(text))
	}
	switch c {
	case nodesColumn:
		p.Nodes = live.Known(v)
	case cpusColumn:
		p.CPUs = live.Known(v)
	default:
		if v < slurm.NoVal { // else not measured
			p.EnergyJ = measuredOrUnknown(v)
		}
	}
	return nil
}

// setResources takes what a job was given.
func (r *sacctRow) setResources(c sacctColumnID, text string) (err error) {
	switch {
	case c == allocatedColumn:
		r.allocated = text
	case c == requestedColumn:
		r.requested = text
	case c == gresColumn:
		r.gres = max(r.gres, text) // one of what was given and asked for
	case r.usage == nil: // of two, the mean comes first or is the same
		r.usage, err = utilisation(text)
	}
	return err
}

// utilisation is how busy the GPUs of a step were, in percent, among what else
// it used, of which some are times and no counts; nil: it isn't there.
func utilisation(text string) (slurm.TRES, error) {
	const name = "gres/gpuutil="
	i := strings.Index(text, name)
	if i < 0 || i > 0 && text[i-1] != ',' {
		return nil, nil
	}
	count, _, _ := strings.Cut(text[i:], ",")
	return slurm.ParseTRES(count)
}

func (r *sacctRow) finish() error {
	p := &r.past
	p.JobID = refText(&r.ref)
	if !slices.Contains(r.reader.columns, startColumn) && r.timed && r.elapsed > 0 && !p.Ended.IsZero() {
		p.Started = p.Ended.Add(-r.elapsed)
	}
	if r.nodeless || r.allocated == "" && slices.Contains(r.reader.columns, allocatedColumn) &&
		!p.Started.Before(p.Ended) {
		p.Started = time.Time{} // sacct prints the end as the start of a job that never ran
	}
	tres, err := slurm.ParseTRES(cmp.Or(orEmpty(r.allocated), r.requested))
	if err != nil {
		return err
	}
	useTRES(p, tres)
	if _, stated := p.GPUs.Get(); stated || r.gres == "" {
		return nil
	}
	gres, err := slurm.ParseGres(r.gres)
	gpus := 0.0
	for _, g := range gres {
		if g.Name == "gpu" {
			gpus += float64(g.Count)
			p.GPUModel = g.Type
		}
	}
	p.GPUs = live.Known(gpus)
	return err
}

// useTRES takes what a job was given, or asked for where it wasn't given
// anything.
func useTRES(p *record.HistoryJob, tres slurm.TRES) {
	if len(tres) == 0 {
		return
	}
	p.GPUs = live.Known(float64(tres.GPUs()))
	for name := range tres {
		if model, ok := strings.CutPrefix(name, "gres/gpu:"); ok {
			p.GPUModel = max(p.GPUModel, model) // one, whatever the order
		}
	}
	fill := func(n *live.Number, name string) {
		if _, known := n.Get(); known {
			return
		}
		if v, ok := tres[name]; ok {
			*n = live.Known(v)
		}
	}
	fill(&p.CPUs, "cpu")
	fill(&p.Nodes, "node")
	if _, known := p.EnergyJ.Get(); !known && tres["energy"] < slurm.NoVal {
		p.EnergyJ = measuredOrUnknown(tres["energy"])
	}
}

// isOver reports whether a job in a state won't run on under this record.
func isOver(s slurm.State) bool { return s.Ended() || s == slurm.Requeued }

// underwayStates are the states of jobs that aren't over.
var underwayStates = []slurm.State{
	slurm.Pending, slurm.Running, slurm.Suspended, slurm.Completing, slurm.Configuring, "RESIZING",
	"STAGE_OUT", "SIGNALING",
	"STOPPED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "REQUEUE_FED", "REQUEUE_HOLD", "POWER_UP_NODE", "UPDATE_DB",
	"EXPEDITING", "RECONFIG_FAIL",
}

func isUnderway(s slurm.State) bool { return slices.Contains(underwayStates, s) }

// printable is a text for a message, short and on one line.
func printable(text string) string { return strconv.Quote(slurm.Printable(text, 60)) }
