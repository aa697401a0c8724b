package slurm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/live"
)

// accountingColumn identifies a column of sacct.
type accountingColumn uint8

const (
	foreignColumn  accountingColumn = iota // not one of sacct's
	unreadColumn                           // sacct's, and nothing here is read from it
	freeTextColumn                         // the same, and a user may have written it
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
	suspendedColumn
	limitColumn
	rawLimitColumn
	nodeListColumn
	nodesColumn
	cpusColumn
	allocatedColumn
	requestedColumn
	gresColumn
	requestedGresColumn
	energyColumn
	rawEnergyColumn
	usageColumn
	restartsColumn
	commentColumn
	adminCommentColumn
)

// columnsByName lists the columns that are read, and those in which users write, by their names in small
// letters.
var columnsByName = map[string]accountingColumn{
	"jobid": jobIDColumn, "jobidraw": rawIDColumn, "cluster": clusterColumn, "user": userColumn,
	"account": accountColumn, "partition": partitionColumn, "qos": qosColumn, "jobname": nameColumn,
	"state": stateColumn, "exitcode": exitColumn,
	"submit": submitColumn, "eligible": eligibleColumn, "start": startColumn, "end": endColumn,
	"elapsed": elapsedColumn, "elapsedraw": rawElapsedColumn, "suspended": suspendedColumn,
	"timelimit": limitColumn, "timelimitraw": rawLimitColumn,
	"nodelist": nodeListColumn, "nnodes": nodesColumn, "allocnodes": nodesColumn,
	"alloccpus": cpusColumn, "ncpus": cpusColumn,
	"alloctres": allocatedColumn, "reqtres": requestedColumn,
	"allocgres": gresColumn, "reqgres": requestedGresColumn,
	"consumedenergy": energyColumn, "consumedenergyraw": rawEnergyColumn,
	"tresusageinave": usageColumn, "tresusageintot": usageColumn,
	"restarts": restartsColumn, "comment": commentColumn, "admincomment": adminCommentColumn,
	"systemcomment": freeTextColumn, "workdir": freeTextColumn, "submitline": freeTextColumn,
	"extra": freeTextColumn, "wckey": freeTextColumn, "container": freeTextColumn,
	"reservation": freeTextColumn, "constraints": freeTextColumn,
	"stdout": freeTextColumn, "stderr": freeTextColumn, "stdin": freeTextColumn,
}

// unreadColumns names the other columns that some release of sacct prints (sacct --helpformat).
const unreadColumns = " associd avecpu avecpufreq avediskread avediskwrite avepages " +
	"averss avevmsize blockid cputime cputimeraw dboindex dbindex derivedexitcode " +
	"failednode flags gid group layout licenses maxdiskread maxdiskreadnode maxdiskreadtask maxdiskwrite " +
	"maxdiskwritenode maxdiskwritetask maxpages maxpagesnode maxpagestask maxrss maxrssnode maxrsstask " +
	"maxvmsize maxvmsizenode maxvmsizetask mcslabel mincpu mincpunode mincputask ntasks planned plannedcpu " +
	"plannedcpuraw priority qosraw qosreq reason reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin reqcpus " +
	"reqmem reqnodes reqreservation reserved resvcpu resvcpuraw reservationid resrvcpu segmentsize sluid " +
	"systemcpu totalcpu tresusageinmax tresusageinmaxnode tresusageinmaxtask tresusageinmin " +
	"tresusageinminnode tresusageinmintask tresusageoutave tresusageoutmax tresusageoutmaxnode " +
	"tresusageoutmaxtask tresusageoutmin tresusageoutminnode tresusageoutmintask tresusageouttot uid usercpu " +
	"wckeyid "

// isFreeText reports whether a user may have written what stands in the column.
func (c accountingColumn) isFreeText() bool {
	return c == freeTextColumn || c == nameColumn || c == accountColumn ||
		c == commentColumn || c == adminCommentColumn
}

// AccountingHeader holds the columns of what sacct -P printed, in order.
type AccountingHeader struct {
	names   []string
	columns []accountingColumn
	first   []int // the column of the same name that comes first, or its own place
}

// NewAccountingHeader takes the names of columns, in any case. One of them must name the job.
func NewAccountingHeader(names []string) (AccountingHeader, error) {
	h := AccountingHeader{
		names: slices.Clone(names), columns: make([]accountingColumn, len(names)), first: make([]int, len(names)),
	}
	for i, name := range names {
		folded := strings.ToLower(strings.TrimSpace(name))
		h.names[i] = folded
		h.first[i] = slices.Index(h.names[:i+1], folded)
		if folded == "" {
			h.first[i] = i // behind the last delimiter
		}
		column, known := columnsByName[folded]
		if !known && folded == "" || !known && strings.Contains(unreadColumns, " "+folded+" ") {
			column = unreadColumn
		}
		h.columns[i] = column
	}
	if len(names) < 2 || !h.has(jobIDColumn, rawIDColumn) {
		return AccountingHeader{}, errors.New("want a header with JobID or JobIDRaw")
	}
	return h, nil
}

// Len returns the number of columns.
func (h *AccountingHeader) Len() int { return len(h.columns) }

// Names returns the names of the columns, in small letters.
func (h *AccountingHeader) Names() []string { return slices.Clone(h.names) }

// Has reports whether the header has one of some columns.
func (h *AccountingHeader) Has(names ...string) bool {
	return slices.ContainsFunc(names,
		func(name string) bool { return slices.Contains(h.names, strings.ToLower(name)) })
}

func (h *AccountingHeader) has(one ...accountingColumn) bool {
	return slices.ContainsFunc(one, func(c accountingColumn) bool { return slices.Contains(h.columns, c) })
}

// Foreign returns the names that aren't sacct's, in small letters.
func (h *AccountingHeader) Foreign() []string {
	var out []string
	for i, c := range h.columns {
		if c == foreignColumn && h.names[i] != "" {
			out = append(out, h.names[i])
		}
	}
	return out
}

// IsFreeText reports whether a user may have written what stands in a column.
func (h *AccountingHeader) IsFreeText(column int) bool { return h.columns[column].isFreeText() }

// FreeText returns the names of the columns that users write, in small letters.
func (h *AccountingHeader) FreeText() []string {
	var out []string
	for i, c := range h.columns {
		if c.isFreeText() {
			out = append(out, h.names[i])
		}
	}
	return out
}

// IsFramed reports whether the job is named before and behind all that users write.
func (h *AccountingHeader) IsFramed() bool {
	id := func(c accountingColumn) bool { return c == jobIDColumn || c == rawIDColumn }
	c := h.columns
	first := slices.IndexFunc(c, accountingColumn.isFreeText)
	return first >= 0 && slices.ContainsFunc(c[:first], id) && slices.ContainsFunc(c[first:], id) &&
		!c[len(c)-1].isFreeText()
}

// AccountingRow holds what one record of accounting states, of a job or of a step. Several columns say the
// same thing in other words; [AccountingRow.Record] settles what they disagree on.
type AccountingRow struct {
	AccountingRecord // as the columns of one meaning state it

	elapsed, suspended   duration
	shownElapsed         duration // Elapsed, where ElapsedRaw stands beside it
	gres, requestedGres  []Gres
	energy, shownEnergy  live.Number // ConsumedEnergyRaw; ConsumedEnergy, with a suffix
	oddEnergy            string      // an energy that is no number
	usage                TRES        // TRESUsageInAve
	hasNodeList, hasTRES bool        // NodeList and AllocTRES are among the columns
	steps                stepUsage
}

// duration is a time that may be unknown.
type duration struct {
	time.Duration
	known bool
}

// SetElapsed states for how long the job ran.
func (r *AccountingRow) SetElapsed(d time.Duration) { r.elapsed = duration{d, true} }

// maxCell bounds what a message shows of a cell.
const maxCell = 60

// Row reads the cells of a record, with the times of sacct in a zone. Errors are [CellError].
func (h *AccountingHeader) Row(cells []string, zone *time.Location) (*AccountingRow, error) {
	r := &AccountingRow{hasNodeList: h.has(nodeListColumn), hasTRES: h.has(allocatedColumn)}
	var raw, printed JobRef
	for i, text := range cells {
		if first := h.first[i]; first < i {
			if cells[first] != text {
				return r, &CellError{
					CellTwice, h.names[i],
					fmt.Errorf("%s and %s", quoted(cells[first]), quoted(text)),
				}
			}
			continue
		}
		var kind CellKind
		var err error
		switch c := h.columns[i]; c {
		case jobIDColumn:
			kind = CellID
			printed, err = ParseJobRef(text)
		case rawIDColumn:
			kind = CellID
			raw, err = ParseJobRef(text)
		default:
			kind, err = r.setCell(c, text, zone)
		}
		if err != nil {
			return r, &CellError{kind, h.names[i], err}
		}
	}
	if err := r.setID(printed, raw); err != nil {
		return r, &CellError{Kind: CellID, Err: err}
	}
	return r, nil
}

// quoted returns a cell for a message, short and on one line.
func quoted(text string) string { return strconv.Quote(Printable(text, maxCell)) }

// setID takes JobID and JobIDRaw, of which one may be missing. They differ in the number for tasks of an
// array and parts of a heterogeneous job alone.
func (r *AccountingRow) setID(printed, raw JobRef) error {
	r.Ref, r.ID = printed, raw.Job
	switch {
	case printed.Job == 0 && raw.Job == 0:
		return errors.New("no job id")
	case printed.Job == 0:
		r.Ref = raw
	case raw.Job == 0:
		r.ID = printed.Job
	case printed.Step != raw.Step:
		return fmt.Errorf("JobID and JobIDRaw name different steps, %q and %q", printed.Step, raw.Step)
	case !printed.Array && !printed.Het && printed.Job != raw.Job:
		return fmt.Errorf("JobID and JobIDRaw name different jobs, %s and %s", printed.Job, raw.Job)
	}
	r.Step = r.Ref.Step
	return nil
}

// setCell takes a cell of any column but those of ids.
func (r *AccountingRow) setCell(c accountingColumn, text string, zone *time.Location) (CellKind, error) {
	switch c {
	case submitColumn, eligibleColumn, startColumn, endColumn:
		at, err := ParseTime(text, zone)
		if at.Unix() <= 0 || at.Unix() == NoVal || at.Unix() == Infinite {
			at = time.Time{} // no time: 0 and the numbers for none, as a date
		}
		switch c {
		case submitColumn:
			r.Submit = at
		case eligibleColumn:
			r.Eligible = at
		case startColumn:
			r.Start = at
		default:
			r.End = at
		}
		return timeKind(text), err
	case elapsedColumn, rawElapsedColumn, suspendedColumn, limitColumn, rawLimitColumn:
		if isUnset(text) || isNoNumber(text) || text == "INVALID" {
			return "", nil
		}
		return timeKind(text), r.setDuration(c, strings.TrimSpace(text))
	case nodesColumn, cpusColumn, exitColumn, restartsColumn:
		return CellNumber, r.setNumber(c, text)
	case energyColumn, rawEnergyColumn:
		r.setEnergy(c, text)
	case allocatedColumn, requestedColumn, gresColumn, requestedGresColumn, usageColumn:
		return CellNumber, r.setResources(c, text)
	case nodeListColumn:
		r.NodeList = unlessUnset(text)
		var err error
		r.Nodes, err = ExpandHostlist(r.NodeList)
		return CellNumber, err
	default:
		r.setText(c, text)
	}
	return "", nil
}

// timeKind tells a time below 0 from another one that can't be read.
func timeKind(text string) CellKind {
	if strings.HasPrefix(text, "-") {
		return CellNegative
	}
	return CellTime
}

// unlessUnset returns a text, or nothing for one of Slurm's words for nothing.
func unlessUnset(text string) string {
	if isUnset(text) {
		return ""
	}
	return text
}

// isNoNumber reports whether a text is one of the numbers by which Slurm says that it has none.
func isNoNumber(text string) bool {
	switch strings.TrimSpace(text) {
	case "4294967294", "4294967295", "18446744073709551614", "18446744073709551615":
		return true
	}
	return false
}

func (r *AccountingRow) setText(c accountingColumn, text string) {
	switch c {
	case clusterColumn:
		r.Cluster = unlessUnset(text)
	case userColumn:
		r.User = unlessUnset(text)
	case accountColumn:
		r.Account = unlessUnset(text)
	case partitionColumn:
		r.Partition = unlessUnset(text)
	case qosColumn:
		r.QOS = unlessUnset(text)
	case nameColumn:
		r.Name = text
	case stateColumn:
		r.State = ParseJobState(text)
	case commentColumn:
		r.Comment = text
	case adminCommentColumn:
		r.AdminComment = text
	default:
	}
}

// setDuration takes a time that passed, or may pass.
func (r *AccountingRow) setDuration(c accountingColumn, text string) error {
	switch c {
	case rawElapsedColumn:
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds < 0 || seconds > maxDays*86400 {
			return fmt.Errorf("%s, want seconds", quoted(text))
		}
		r.SetElapsed(time.Duration(seconds) * time.Second)
	case elapsedColumn, suspendedColumn:
		if !strings.Contains(text, ":") {
			return fmt.Errorf("%s, want days-hours:minutes:seconds", quoted(text))
		}
		if strings.Count(text, ":") == 1 && !strings.Contains(text, "-") {
			text = "00:" + text // hours aren't left out
		}
		text, _, _ = strings.Cut(text, ".") // of steps, with milliseconds
		d, err := ParseDuration(text)
		if c == suspendedColumn {
			r.suspended = duration{d, err == nil}
		} else {
			r.shownElapsed = duration{d, err == nil}
		}
		return err
	default:
		if r.TimeLimit.IsSet() {
			return nil
		}
		var err error
		r.TimeLimit, err = ParseLimit(text)
		return err
	}
	return nil
}

func (r *AccountingRow) setNumber(c accountingColumn, text string) error {
	text = strings.TrimSpace(text)
	if isUnset(text) || isNoNumber(text) {
		return nil
	}
	if c == exitColumn {
		if code, _, _ := strings.Cut(text, ":"); isNoNumber(code) {
			return nil
		}
		exit, err := ParseExit(text)
		r.Exit, r.ExitKnown = exit, err == nil
		return err
	}
	n, err := tresCount(text, false) // sacct shortens counts, too: 1.50K
	if err != nil || n > math.MaxInt32 {
		return fmt.Errorf("%s, want a number of 0 or more", quoted(text))
	}
	switch c {
	case nodesColumn:
		r.NodeCount = live.Known(n)
	case cpusColumn:
		r.CPUs = live.Known(n)
	default:
		r.Restarts = int(n)
	}
	return nil
}

// setEnergy takes ConsumedEnergy or ConsumedEnergyRaw. A text that is no energy says nothing of the rest of
// the record, which is kept.
func (r *AccountingRow) setEnergy(c accountingColumn, text string) {
	text = strings.TrimSpace(text)
	if isUnset(text) || isNoNumber(text) {
		return
	}
	number, scale := text, 1.0
	if i := strings.IndexByte("KMGTPE", text[len(text)-1]); i >= 0 && c == energyColumn {
		number, scale = strings.TrimSpace(text[:len(text)-1]), math.Pow(1000, float64(i+1))
	}
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(v >= 0) || math.IsInf(v, 0):
		r.oddEnergy = text
	case isNoJoules(v) || v == 0: // 0 isn't measured
	case c == energyColumn:
		r.shownEnergy = live.Known(v * scale)
	default:
		r.energy = live.Known(v)
	}
}

// isNoJoules reports whether a number of joules is one of those by which Slurm says that it has none.
func isNoJoules(v float64) bool { return v == NoVal || v == Infinite || v >= math.MaxInt64 }

// setResources takes what a job asked for, or was given.
func (r *AccountingRow) setResources(c accountingColumn, text string) (err error) {
	switch c {
	case allocatedColumn:
		r.Allocated, err = ParseTRES(text)
	case requestedColumn:
		r.Requested, err = ParseTRES(text)
	case gresColumn:
		r.gres = r.parseGres(text)
	case requestedGresColumn:
		r.requestedGres = r.parseGres(strings.ReplaceAll(text, "PER_NODE:", ""))
	default:
		if r.usage == nil { // of two, the mean comes first or is the same
			r.usage, err = gpuUtilisation(text)
		}
	}
	return err
}

// parseGres reads generic resources. A text that can't be read says nothing of the rest of the record.
func (r *AccountingRow) parseGres(text string) []Gres {
	list, err := ParseGres(text)
	if err != nil {
		r.Doubts = append(r.Doubts, Doubt{DoubtGPUs, err.Error()})
	}
	return list
}

// gpuUtilisation returns how busy the GPUs of a step were, in percent, from a list in which some values are
// times and no counts; nil: it isn't there.
func gpuUtilisation(text string) (TRES, error) {
	const name = "gres/gpuutil="
	i := strings.Index(text, name)
	if i < 0 || i > 0 && text[i-1] != ',' {
		return nil, nil
	}
	count, _, _ := strings.Cut(text[i:], ",")
	return ParseTRES(count)
}
