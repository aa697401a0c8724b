package joblog

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/dvfsmodel"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// tableColumns are those of a job table as it is written. submit_s is in
// seconds since 1970, or since a log began that doesn't say when.
var tableColumns = []string{
	"job_id", "submit_s", "user", "account", "partition", "qos", "job_name", "gpus", "cpus", "nodes",
	"requested_s", "wait_s",
	"runtime_s", "state", "energy_kwh", "power_per_gpu_w", "gpu_model", "gpu_utilisation",
	"exit_code", "cluster",
}

// TableWriter writes jobs as a job table.
type TableWriter struct {
	out *csv.Writer
	row []string

	limits *PowerLimits
	// Hash replaces the names of users, accounts and jobs; nil: they are in clear.
	Hash func(name string) string
}

// NewTableWriter writes the header.
func NewTableWriter(w io.Writer) (*TableWriter, error) {
	t := &TableWriter{out: csv.NewWriter(w), limits: NewPowerLimits(nil)}
	return t, t.out.Write(tableColumns)
}

// Write writes a job.
func (t *TableWriter) Write(p *record.HistoryJob) error {
	user, account, name := visibleText(p.User), visibleText(p.Account), visibleText(string(p.Name))
	if t.Hash != nil {
		user, account, name = t.Hash(user), t.Hash(account), t.Hash(name)
	}
	for _, text := range []*string{&user, &account, &name} {
		*text = textfile.EscapeFormula(*text)
	}
	wait, limit := "", ""
	if !p.Started.IsZero() {
		wait = secondsCell(p.Started.Sub(p.Submitted))
	}
	if d, ok := p.Limit.Duration(); ok {
		limit = secondsCell(d)
	}
	runTime := ""
	if _, ran := p.RunTime().Get(); ran {
		runTime = secondsCell(p.Ended.Sub(p.Started))
	}
	t.row = append(t.row[:0], safeCell(p.JobID), microsText(p.Submitted.UnixMicro()), user, account,
		safeCell(p.Partition), safeCell(p.QOS), name,
		numberCell(p.GPUs), numberCell(p.CPUs), numberCell(p.Nodes), limit, wait, runTime, safeCell(p.State),
		kWhCell(p.EnergyJ), numberCell(t.limits.PerGPU(p)),
		safeCell(p.GPUModel), numberCell(p.Utilisation), numberCell(p.ExitCode), safeCell(p.Cluster))
	return t.out.Write(t.row)
}

// Flush writes what is buffered.
func (t *TableWriter) Flush() error {
	t.out.Flush()
	return t.out.Error()
}

// safeCell returns a text as a cell, in which nothing acts on a terminal or in a
// spreadsheet.
func safeCell(text string) string { return textfile.EscapeFormula(visibleText(text)) }

// visibleText returns a text in which nothing acts on a terminal, as on one line.
func visibleText(text string) string {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return slurm.Printable(strings.ReplaceAll(text, "\n", `\x0a`), maxVisible)
		}
	}
	return text // as nearly all
}

// maxVisible is more than any text has when nothing in it can be printed.
const maxVisible = 4*maxName + 1

// numberCell returns a number as a cell; "" if it isn't known.
func numberCell(n live.Number) string {
	v, ok := n.Get()
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func kWhCell(joules live.Number) string {
	v, ok := joules.Get()
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v/dvfsmodel.JoulesPerKWh, 'f', -1, 64)
}

func secondsCell(d time.Duration) string { return microsText(d.Microseconds()) }

// microsText are microseconds as seconds, without digits that say nothing.
func microsText(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	text := strconv.FormatInt(n/1e6, 10)
	if rest := n % 1e6; rest != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", rest), "0")
	}
	return sign + text
}

// ReadTable reads a job table with the columns job_id, submit_s, runtime_s and
// what is known besides; the names of columns are those that epplan predict
// knows. What can't be read as CSV at all ends the reading.
func ReadTable(r io.Reader, name string, o *Options, visit Visit) (*Tally, error) {
	t := newTally(name, o)
	in, err := textfile.OpenTable(r, name, "job_id, submit_s and runtime_s", textfile.AnyButZero)
	if err != nil {
		return t, err
	}
	in.Ragged = true // a line of another length is left out
	for _, column := range []string{"job_id", "submit_s", "runtime_s"} {
		if !in.Has(column) {
			return t, fmt.Errorf("%s:1: no column %s", name, column)
		}
	}
	table := &tableReader{Table: in, tally: t, sink: newJobSink(t, o, visit)}
	return t, in.Each(func() error {
		t.Lines++
		return table.read(in.Line())
	})
}

// ReadAny reads a job table, as [ReadTable] does, if the first line names its column submit_s, else what
// sacct prints.
func ReadAny(r io.Reader, name string, o *Options, visit Visit) (*Tally, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	switch first := textfile.FirstLine(in); {
	case strings.Contains(first, "submit_s"):
		return ReadTable(in, name, o, visit)
	case strings.HasPrefix(first, ";"), len(strings.Fields(first)) == swfFields:
		return newTally(
				name,
				o,
			), fmt.Errorf(
				"%s: is in the Standard Workload Format, want the job table that epplan "+
					"import swf --out FILE makes of it, with the jobs' GPUs filled in",
				name,
			)
	}
	return ReadSacct(in, name, o, visit)
}

type tableReader struct {
	*textfile.Table
	tally *Tally
	sink  *jobSink
	wrong error
}

// text returns the first cell of some columns that isn't empty.
func (t *tableReader) text(columns ...string) string {
	for _, c := range columns {
		if text := t.Text(c); text != "" {
			return text
		}
	}
	return ""
}

// number returns the first cell's of some columns that isn't empty, if there is one.
func (t *tableReader) number(columns ...string) live.Number {
	for _, c := range columns {
		if strings.TrimSpace(t.Text(c)) == "" {
			continue
		}
		text, err := t.Number(t.Index(c))
		if err != nil {
			t.wrong = err
			return live.Number{}
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v > 1e15 {
			t.wrong = fmt.Errorf("column %s is %s, want a number of 0 or more", columns[0], printable(text))
		}
		return live.Known(v)
	}
	return live.Number{}
}

func (t *tableReader) read(line int) error {
	if n, want := len(t.Row), len(t.Header); n != want {
		kind := kindTruncated
		if n > want {
			kind = kindExcess
		}
		return t.tally.skipLine(line, kind, fmt.Errorf("%d columns, want %d", n, want))
	}
	t.wrong = nil
	p := &record.HistoryJob{
		JobID: t.text("job_id"), User: t.text("user", "vc", "task"), Account: t.text("account"),
		Partition: t.text("partition"),
		QOS:       t.text("qos"), GPUs: t.number("gpus"), CPUs: t.number("cpus"), Nodes: t.number("nodes"),
		GPUModel: t.text("gpu_model"),
		Limit:    limitOf(t.number("requested_s", "deadline_s").Or(0)), State: t.text("state"),
		ExitCode:    t.number("exit_code"),
		Utilisation: t.number("gpu_utilisation"), Cluster: t.text("cluster"),
	}
	if name := t.text("job_name", "model"); name != "" {
		p.Name = []byte(name)
	}
	submit, submitted := t.number("submit_s").Get()
	runTime, ran := t.number("runtime_s").Get()
	p.Submitted = time.UnixMicro(int64(math.Round(min(submit, maxUnix) * 1e6))).UTC()
	if ran {
		p.Started = p.Submitted.Add(secondsOf(t.number("wait_s").Or(0)))
		p.Ended = p.Started.Add(secondsOf(runTime))
	}
	t.energy(p)
	switch {
	case p.JobID == "":
		return t.tally.skipLine(line, kindID, errors.New("job_id is empty"))
	case t.wrong != nil:
		return t.tally.skipLine(line, kindNumber, t.wrong)
	case !submitted:
		return t.tally.skipLine(line, kindTime, errors.New("submit_s is empty"))
	}
	if !t.Has("state") {
		p.State = record.Completed // as epplan predict takes it
	}
	return t.sink.add(p, line)
}

// energy is what the job used: stated, or by its power.
func (t *tableReader) energy(p *record.HistoryJob) {
	const milli = 1000 // as kilowatt-hours don't hold whole joules
	if energy, ok := t.number("energy_kwh").Get(); ok {
		p.EnergyJ = live.Known(math.Round(energy*dvfsmodel.JoulesPerKWh*milli) / milli)
		return
	}
	power, ok := t.number("power_per_gpu_w").Get()
	if !ok {
		return
	}
	runTime, ran := p.RunTime().Get()
	if gpus, counted := p.GPUs.Get(); counted && ran {
		p.EnergyJ = live.Known(power * gpus * runTime)
	}
}
