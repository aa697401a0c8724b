package joblog

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/queue"
)

// ReadBatch reads a batch as [queue.ReadWith] does, or what sacct --parsable2 prints with the columns that
// [ReadSacct] needs. Of the latter, steps are folded into their jobs. Jobs that ended run as long as they
// did, and jobs that wait as long as they may. Jobs without GPUs, those that never ran or still run, and
// lines that make no sense are passed over; a warning counts them.
func ReadBatch(
	r io.Reader, name string, format queue.Format, options *queue.TableOptions,
) (*queue.Batch, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	said := options.Columns != nil || options.Header != nil
	if format == queue.Auto && !said && isSacct(textfile.FirstLine(in)) {
		return readSacctBatch(in, name)
	}
	b, err := queue.ReadWith(in, name, format, options)
	if err != nil {
		return nil, err
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		if id, step, ok := strings.Cut(j.ID, "."); ok && (step == "batch" || step == "extern") {
			return nil, &queue.SyntaxError{
				Pos: j.Pos, Msg: "job " + textfile.Quoted(j.ID) + " is a step of job " + textfile.Quoted(id),
				Want: "the columns State, Start and End too, by which steps are folded into their jobs, or jobs alone, " +
					"as sacct -X prints them",
			}
		}
	}
	return b, nil
}

// isSacct reports whether the header of a table is one that [ReadSacct] reads, and not that of a batch
// with columns of its own. A table with commas is a spreadsheet's, which puts cells in quotes.
func isSacct(header string) bool {
	delimiter, columns, err := columnsOf([]byte(strings.TrimSpace(header)))
	ours := func(c string) bool { return c == "workload" || strings.Contains(c, "_") && queue.IsColumn(c) }
	return err == nil && string(delimiter) != "," && !slices.ContainsFunc(columns.Names(), ours)
}

func readSacctBatch(r io.Reader, name string) (*queue.Batch, error) {
	b := &batchReader{batch: &queue.Batch{Name: name}, ids: make(map[string]int)}
	tally, err := ReadSacct(r, name, &Options{Waiting: b.addWaiting}, b.add)
	if err == nil {
		err = tally.CheckBad(MaxBad)
	}
	if err != nil {
		return nil, err
	}
	b.warn(tally)
	if len(b.batch.Jobs) == 0 {
		return nil, fmt.Errorf("%s: %w, want jobs with GPUs that ran, or wait with a time limit (%s)",
			queue.Printable(name), queue.ErrEmpty, b.found)
	}
	b.setClock()
	if err := b.batch.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", queue.Printable(name), err)
	}
	return b.batch, nil
}

// batchReader makes jobs of past ones.
type batchReader struct {
	batch     *queue.Batch
	submitted []time.Time    // of each job
	ids       map[string]int // how often each came

	waiting                          int64
	withoutGPUs, withoutTime, uneven int
	found                            string // what became of the lines
}

func (b *batchReader) add(p *record.HistoryJob) error {
	b.addJob(p, p.RunTime().Or(0))
	return nil
}

// addWaiting adds a job that waits: it runs for as long as it may.
func (b *batchReader) addWaiting(p *record.HistoryJob) error {
	b.waiting++
	b.addJob(p, p.Limit.Seconds())
	return nil
}

// addJob adds a job that runs so many seconds.
func (b *batchReader) addJob(p *record.HistoryJob, span float64) {
	gpus, _ := p.GPUs.Get()
	switch {
	case gpus < 1:
		b.withoutGPUs++
		return
	case !(span > 0) || math.IsInf(span, 1):
		b.withoutTime++
		return
	}
	id := p.JobID
	if b.ids[p.JobID]++; b.ids[p.JobID] > 1 { // it was requeued
		id = fmt.Sprintf("%s#%d", p.JobID, b.ids[p.JobID])
	}
	job := queue.NewJob(id)
	job.Pos = queue.Position{File: b.batch.Name}
	job.User, job.Name = p.User, visibleText(string(p.Name))
	job.Runtime = span
	job.GPUs = []queue.GPUCount{{Model: p.GPUModel, Count: int(gpus)}}
	if limit := p.Limit.Seconds(); limit > 0 {
		job.Limit = max(limit, span) // Slurm lets jobs run a little longer
	}
	if nodes := int(p.Nodes.Or(1)); nodes > 1 {
		if int(gpus)%nodes == 0 {
			job.Nodes = nodes
		} else {
			b.uneven++
		}
	}
	b.batch.Jobs = append(b.batch.Jobs, job)
	b.submitted = append(b.submitted, p.Submitted)
}

// setClock lets the clock of the batch begin at the first submission.
func (b *batchReader) setClock() {
	first := slices.MinFunc(b.submitted, time.Time.Compare)
	for i := range b.batch.Jobs {
		b.batch.Jobs[i].Arrival = b.submitted[i].Sub(first).Seconds()
	}
}

// warn says what became of the lines.
func (b *batchReader) warn(t *Tally) {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{t.Steps, "steps folded into their jobs"},
		{b.waiting, "waiting jobs planned for as long as their limits"},
		{int64(b.withoutGPUs), "jobs without GPUs passed over"},
		{t.NeverRan, "jobs that never ran passed over"},
		{t.NotEnded - b.waiting, "jobs that run passed over"},
		{int64(b.withoutTime), "jobs without a run time or a limit passed over"},
		{t.Repeated, "repeated lines passed over"},
		{t.SkippedLines(), "lines that make no sense passed over"},
		{int64(b.uneven), "jobs with unequal GPUs on their nodes planned on as few as hold them"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", part.what, part.n))
		}
	}
	for _, k := range t.Noted {
		if k.IsGrave() {
			b.batch.Warnings = append(b.batch.Warnings,
				fmt.Errorf("%d of the jobs: %s, the first at %s", k.Count, k.Kind, k.First[0]))
		}
	}
	if b.found = strings.Join(parts, ", "); b.found != "" {
		b.batch.Warnings = append(b.batch.Warnings,
			fmt.Errorf("%s: read as what sacct prints: %s", queue.Printable(b.batch.Name), b.found))
	}
}
