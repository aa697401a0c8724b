package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/epplan/epplan/internal/textfile"
)

// UtilisationLog is what GPUs or jobs used of GPUs, in slots of equal length
// over one window.
type UtilisationLog struct {
	UtilisationSkips
	SlotS  float64 // length of a slot, seconds
	Series []Utilisation
}

// UtilisationSkips is what was left out of a log.
type UtilisationSkips struct {
	Jobs        bool // series are jobs, not GPUs
	Unusable    int  // samples without a utilisation
	Idle        int  // samples of GPUs without a job, where the log names jobs
	Headers     int  // headers among the samples, as of a log that was appended to
	LastLineCut bool // the last line has no end and no sense
}

// Utilisation is a job, or what ran on a GPU, in a [UtilisationLog].
type Utilisation struct {
	ID      string
	GPUs    int       // that it was on
	MemGB   float64   // the most that it took on one of them, GiB
	UtilPct []float64 // by slot, the mean over its GPUs, percent
	Held    int       // slots of a GPU between others that have no sample: as the one before
	Absent  int       // slots of a GPU before its first and after its last sample: nothing was used
}

// What a log of utilisation may have at most.
const (
	maxLogSlots = 1 << 20
	maxLogCells = 1 << 26 // slots times GPUs of jobs
)

// logNames are the names of hosts, jobs and GPUs in a log, the one to prefer first: many logs have
// several of a GPU.
var logNames = struct{ job, gpu, host []string }{ //nolint:gochecknoglobals // constant
	job:  []string{"job", "job_id"},
	gpu:  []string{"gpu", "gpu_id", "index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"},
	host: []string{"host", "hostname", "node"},
}

// The columns of a log that have units: those of nvidia-smi --query-gpu and of DCGM's fields are known.
const (
	logTime = iota
	logUtil
	logMem
)

var logColumns = []textfile.Column{ //nolint:gochecknoglobals // constant
	logTime: {
		Name: "time_s", Further: map[string]float64{"timestamp": 1}, Quantity: textfile.Time,
		Aliases: []string{"time", "datetime"}, Bare: true,
	},
	logUtil: {
		Name: "util_pct", Further: map[string]float64{"DCGM_FI_DEV_GPU_UTIL": 1}, Quantity: textfile.Percent,
		Aliases: []string{
			"utilizationgpu", "utilisationgpu", "gpuutil", "gpuutilization", "gpuutilisation", "util",
		},
		Bare: true,
	},
	logMem: {
		Name: "mem_gb", Further: map[string]float64{"DCGM_FI_DEV_FB_USED": 1.0 / 1024}, Quantity: textfile.Memory,
		Aliases: []string{"memoryused", "mem", "memused", "gpumem", "gpumemory", "gpumemoryused"},
	},
}

// ReadUtilisation reads a log of GPU utilisation as CSV: a header, then a
// sample a line, sorted by time for each GPU. Columns, in any order, others are
// ignored: the time (time_s in seconds, or timestamp as nvidia-smi or RFC 3339
// have it), gpu or job or both, host where GPUs are numbered by host, util_pct,
// and mem_gb. Where there is a job, a series is a job, else a GPU.
//
// A slot is the mean of its samples. An empty utilisation, NaN, ERR! or a word in
// brackets such as [N/A] is no sample. The header may come again, and a last line without
// its end that makes no sense is left out. A slot without samples between others is held
// at the one before; what lies before the first sample and after the last is 0. Every
// error but those of the reader itself is a [queue.SyntaxError].
func ReadUtilisation(r io.Reader, name string, slotS float64) (*UtilisationLog, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	l := &utilisationReader{
		table: t, slotS: slotS, index: make(map[string]int),
	}
	if err := l.locate(); err != nil {
		return nil, err
	}
	if l.columns[logMem].At < 0 {
		return nil, l.table.errorAt(-1,
			"no column of memory, want mem_gb, memory.used [MiB] or DCGM_FI_DEV_FB_USED")
	}
	err = l.eachRecord(func() error {
		s, ok, err := l.sample()
		if err == nil && ok {
			err = l.addSample(&s)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l.log()
}

// eachRecord goes through the records that aren't headers. What is wrong with a last
// line without its end is no error.
func (l *utilisationReader) eachRecord(record func() error) error {
	for {
		err := l.table.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch {
		case err != nil:
		case l.isRepeatedHeader():
			l.Headers++
		default:
			err = record()
		}
		if _, wrong := errors.AsType[*textfile.SyntaxError](err); wrong && l.table.in.Unterminated() {
			l.LastLineCut = true
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isRepeatedHeader reports whether the current record is the header again.
func (l *utilisationReader) isRepeatedHeader() bool {
	for i, column := range l.table.in.Header {
		if l.table.field(i) != column {
			return false
		}
	}
	return true
}

type utilisationReader struct {
	UtilisationSkips
	table *csvTable

	slotS          float64
	columns        []textfile.Found // as logColumns
	job, gpu, host int              // columns; -1: none
	index          map[string]int
	pieces         []gpuSeries
}

type gpuSeries struct {
	id    string // of the series
	memGB float64
	cells []slotSum // by slot, ascending
}

type slotSum struct {
	slot int64
	sum  float64
	n    float64
}

// locate finds the columns.
func (l *utilisationReader) locate() (err error) {
	if l.columns, _, err = l.table.in.Arrange(logColumns, &textfile.Options{Ignore: true}); err != nil {
		return err
	}
	firstOf := func(names []string) int {
		for _, name := range names {
			if at := l.table.in.Index(name); at >= 0 {
				return at
			}
		}
		return -1
	}
	l.job, l.gpu, l.host = firstOf(logNames.job), firstOf(logNames.gpu), firstOf(logNames.host)
	l.Jobs = l.job >= 0
	switch {
	case l.columns[logTime].At < 0:
		return l.table.errorAt(-1, "no column of times, want time_s or timestamp")
	case l.columns[logUtil].At < 0:
		return l.table.errorAt(-1,
			"no column of utilisation, want util_pct, utilization.gpu [%%] or DCGM_FI_DEV_GPU_UTIL")
	case l.job < 0 && l.gpu < 0:
		return l.table.errorAt(-1, "no column of jobs or GPUs, want one of %s",
			strings.Join(slices.Concat(logNames.job, logNames.gpu), ", "))
	}
	return nil
}

type logSample struct {
	piece *gpuSeries
	slot  int64
	util  float64
}

// sample returns the current record; ok is false where it has nothing to count.
func (l *utilisationReader) sample() (s logSample, ok bool, err error) {
	if s.piece, err = l.currentSeries(); err != nil || s.piece == nil {
		return s, false, err
	}
	seconds, err := l.sampleTime()
	if err != nil {
		return s, false, err
	}
	if err := l.addMemory(s.piece); err != nil {
		return s, false, err
	}
	if s.util, ok, err = l.number(logUtil, 100); err == nil && !ok {
		l.Unusable++
	}
	s.slot = int64(math.Floor(seconds / l.slotS))
	return s, ok, err
}

func (l *utilisationReader) addSample(s *logSample) error {
	p := s.piece
	last := len(p.cells) - 1
	switch {
	case last < 0 || s.slot > p.cells[last].slot:
		p.cells = append(p.cells, slotSum{s.slot, s.util, 1})
	case s.slot == p.cells[last].slot:
		p.cells[last].sum += s.util
		p.cells[last].n++
	default:
		return l.table.errorAt(l.columns[logTime].At,
			"time of %.40q goes back, want the samples of each GPU sorted by time", p.id)
	}
	return nil
}

// currentSeries returns the series of the current record on its GPU; nil: it belongs to no
// job.
func (l *utilisationReader) currentSeries() (*gpuSeries, error) {
	gpu := strings.Trim(l.table.text(l.host)+"/"+l.table.text(l.gpu), "/")
	id := gpu
	if l.job >= 0 {
		if id = l.table.text(l.job); id == "" {
			l.Idle++
			return nil, nil //nolint:nilnil // documented
		}
	}
	if id == "" {
		return nil, l.table.errorAt(l.gpu, "no GPU, want its number or its name")
	}
	key := id + "\x00" + gpu
	i, known := l.index[key]
	if !known {
		i = len(l.pieces)
		l.index[key] = i
		l.pieces = append(l.pieces, gpuSeries{id: id, memGB: math.NaN()})
	}
	return &l.pieces[i], nil
}

// sampleTime returns the time of the current record, seconds.
func (l *utilisationReader) sampleTime() (float64, error) {
	const most = 1e12
	at := l.columns[logTime]
	field := l.table.in.Cell(at.At)
	if !strings.Contains(field, ":") {
		number, err := l.table.in.Number(at.At)
		if err != nil {
			return 0, err
		}
		if x, err := strconv.ParseFloat(number, 64); err == nil && math.Abs(x) <= most {
			return textfile.Scaled(number, x, at.Factor), nil
		}
	}
	if at, _, ok := textfile.Moment(field); ok {
		return float64(at.Unix()) + float64(at.Nanosecond())/1e9, nil
	}
	return 0, l.table.errorAt(at.At, "time is %.40q, want seconds, or such as 2026-11-22T01:20:00Z", field)
}

// addMemory takes over how much memory is used.
func (l *utilisationReader) addMemory(p *gpuSeries) error {
	const mostGB = 1e6
	if l.columns[logMem].At < 0 {
		return nil
	}
	mem, ok, err := l.number(logMem, mostGB)
	if err == nil && ok && !(mem <= p.memGB) { // the first one is more than NaN
		p.memGB = mem
	}
	return err
}

// number returns a field with a number from 0 on, with or without its unit; false where it says that
// there is none.
func (l *utilisationReader) number(column int, most float64) (x float64, ok bool, err error) {
	at := l.columns[column]
	field := l.table.field(at.At)
	if field == "" || strings.EqualFold(field, "nan") || strings.HasPrefix(field, "[") || field == "ERR!" {
		return 0, false, nil
	}
	text, err := l.table.in.Number(at.At)
	if err != nil {
		return 0, false, err
	}
	x, ok = logColumns[column].Quantity.Parse(text, at.Factor)
	if !ok || !(x >= 0 && x <= most) {
		return 0, false, l.table.errorAt(at.At, "%s is %.40q, want 0 to %g, or nothing", l.table.in.Header[at.At],
			field, most/at.Factor)
	}
	return x, true, nil
}

// log returns all that was read, in equal slots.
func (l *utilisationReader) log() (*UtilisationLog, error) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range l.pieces {
		if cells := l.pieces[i].cells; len(cells) > 0 {
			first, last = min(first, cells[0].slot), max(last, cells[len(cells)-1].slot)
		}
	}
	if first > last {
		return nil, l.table.errorAt(-1, "no samples, want lines with a utilisation")
	}
	if slots := last - first + 1; slots > maxLogSlots || slots*int64(len(l.pieces)) > maxLogCells {
		return nil, l.table.errorAt(-1, "%d slots of %d series, want fewer: longer slots, or a shorter log", slots,
			len(l.pieces))
	}
	log := &UtilisationLog{UtilisationSkips: l.UtilisationSkips, SlotS: l.slotS}
	at := make(map[string]int)
	for i := range l.pieces {
		p := &l.pieces[i]
		if len(p.cells) == 0 {
			continue
		}
		if math.IsNaN(p.memGB) {
			return nil, fmt.Errorf("%s: no sample of %.40q says how much memory it takes", l.table.name, p.id)
		}
		k, known := at[p.id]
		if !known {
			k = len(log.Series)
			at[p.id] = k
			log.Series = append(log.Series, Utilisation{
				ID: p.id, UtilPct: make([]float64, last-first+1),
			})
		}
		log.Series[k].add(p, first)
	}
	for i := range log.Series {
		s := &log.Series[i]
		for slot := range s.UtilPct {
			s.UtilPct[slot] /= float64(s.GPUs)
		}
	}
	return log, nil
}

// add adds up a piece's slots.
func (s *Utilisation) add(p *gpuSeries, first int64) {
	s.GPUs++
	s.MemGB = max(s.MemGB, p.memGB)
	s.Absent += len(s.UtilPct) - int(p.cells[len(p.cells)-1].slot-p.cells[0].slot+1)
	for i, c := range p.cells {
		until := c.slot + 1
		if i+1 < len(p.cells) {
			until = p.cells[i+1].slot
		}
		s.Held += int(until - c.slot - 1)
		for slot := c.slot; slot < until; slot++ {
			s.UtilPct[slot-first] += c.sum / c.n
		}
	}
}
