package joblog_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/trace/joblog"
)

// pastJob is what became of a drawn job in truth.
type pastJob struct {
	id                 string
	submit, start, end time.Time
	suspended          time.Duration
	gpus, nodes        int
	model              string // "" if the log can't say
	mixed              bool   // of two models
	joules             float64
	possible           bool // its GPUs can have drawn the energy
}

func (p *pastJob) runTime() time.Duration { return p.end.Sub(p.start) - p.suspended }

// oddLog writes drawn jobs in the columns, spellings and with the faults that logs of sites have.
type oddLog struct {
	r         *rand.Rand
	zone      *time.Location
	columns   []string
	delimiter string
	steps     bool
	faults    map[string]int
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func newOddLog(r *rand.Rand) *oddLog {
	zone, _ := time.LoadLocation(pick(r, "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"))
	l := &oddLog{r: r, zone: zone, delimiter: pick(r, "|", ";", "\t", "^^x9Zq^^"), steps: r.IntN(3) == 0}
	l.columns = []string{pick(r, "JobID", "JobIDRaw", "jobid"), "State", "Submit"}
	l.columns = append(l.columns, pick(r, []string{"Start", "End"}, []string{"Start", "End", "ElapsedRaw"},
		[]string{"Start", "End", "Elapsed"}, []string{"Start", "End", "ElapsedRaw", "Suspended"},
		[]string{"End", "ElapsedRaw", "Suspended"}, []string{"Start", "ElapsedRaw"},
		[]string{"Start", "End", "Suspended"}, []string{"Start", "End", "Elapsed", "ElapsedRaw", "Suspended"})...)
	l.columns = append(l.columns, pick(r,
		[]string{"AllocTRES"}, []string{"AllocTRES", "ReqTRES"}, []string{"ReqTRES"},
		[]string{"AllocGRES", "NNodes"}, []string{"AllocTRES", "AllocGRES", "NNodes"},
		[]string{"ReqGRES", "NNodes"},
		[]string{"AllocTRES", "AllocGRES", "ReqGRES", "ReqTRES", "NNodes"})...)
	l.columns = append(l.columns, pick(r, []string{}, []string{"ConsumedEnergyRaw"}, []string{"ConsumedEnergy"},
		[]string{"ConsumedEnergyRaw", "ConsumedEnergy"})...)
	if r.IntN(10) == 0 {
		l.columns = append(l.columns, l.columns[r.IntN(len(l.columns))]) // asked for twice
	}
	r.Shuffle(len(l.columns), func(i, j int) { l.columns[i], l.columns[j] = l.columns[j], l.columns[i] })
	return l
}

// draw returns a job; one in ten begins near a change of clocks.
func (l *oddLog) draw(n int) *pastJob {
	r := l.r
	p := &pastJob{id: strconv.Itoa(1000 + n), gpus: r.IntN(9), nodes: 1, possible: true}
	p.start = time.Date(2025, 1, 1, 0, 0, r.IntN(400*86400), 0, time.UTC)
	if r.IntN(10) == 0 {
		autumn := pick(r, time.Date(2025, 10, 26, 1, 0, 0, 0, time.UTC),
			time.Date(2025, 11, 2, 6, 0, 0, 0, time.UTC), time.Date(2025, 4, 5, 15, 0, 0, 0, time.UTC))
		p.start = autumn.Add(time.Duration(r.IntN(7200)-3600) * time.Second)
	}
	p.submit = p.start.Add(-time.Duration(r.IntN(7200)) * time.Second)
	run := time.Duration(60+r.IntN(20000)) * time.Second
	if r.IntN(5) == 0 && l.has("Elapsed", "ElapsedRaw", "Suspended") {
		p.suspended = time.Duration(60+r.IntN(7200)) * time.Second
	}
	p.end = p.start.Add(run + p.suspended)
	if p.gpus > 1 && p.gpus%2 == 0 && r.IntN(3) == 0 {
		p.nodes = 2
	}
	watts := 50 + 300*r.Float64()
	if r.IntN(20) == 0 {
		watts, p.possible = 100_000+1e6*r.Float64(), false
	}
	if p.gpus > 0 {
		p.joules = math.Round(watts * float64(p.gpus) * run.Seconds())
		p.model = pick(r, "", "a100", "v100", "h100")
		p.mixed = p.gpus > 1 && r.IntN(12) == 0
	}
	return p
}

// none returns one of the words by which Slurm says that it has nothing.
func (l *oddLog) none() string { return pick(l.r, "", "Unknown", "None", "N/A", "(null)") }

func (l *oddLog) tres(p *pastJob) string {
	parts := []string{"cpu=8", "mem=64G", "node=" + strconv.Itoa(p.nodes), "billing=12"}
	switch {
	case p.gpus == 0:
	case p.mixed:
		parts = append(parts, "gres/gpu:a100=1", fmt.Sprintf("gres/gpu:v100=%d", p.gpus-1),
			fmt.Sprintf("gres/gpu=%d", p.gpus))
	case p.model != "" && l.r.IntN(2) == 0:
		parts = append(parts, fmt.Sprintf("gres/gpu:%s=%d", p.model, p.gpus))
	case p.model != "":
		parts = append(parts, fmt.Sprintf("gres/gpu:%s=%d", p.model, p.gpus), fmt.Sprintf("gres/gpu=%d", p.gpus))
	default:
		parts = append(parts, fmt.Sprintf("gres/gpu=%d", p.gpus))
	}
	if l.r.IntN(4) == 0 {
		parts = append(parts, "energy=18446744073709551614")
	}
	l.r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, ",")
}

func (l *oddLog) gres(p *pastJob, count int) string {
	name := pick(l.r, "gpu", "gpu", "gres:gpu", "7696487")
	switch {
	case p.gpus == 0:
		return l.none()
	case p.mixed && count == p.gpus:
		return fmt.Sprintf("gpu:a100:1,gpu:v100:%d", p.gpus-1)
	case p.model != "" && !p.mixed:
		return fmt.Sprintf("%s:%s:%d", name, p.model, count)
	}
	return fmt.Sprintf("%s:%d", name, count)
}

func clock(d time.Duration) string {
	s := int(d.Seconds())
	text := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		text = fmt.Sprintf("%d-%s", days, text)
	}
	return text
}

// people returns an energy as sacct shortens it.
func people(joules float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "K"}} {
		if joules >= unit.size {
			return fmt.Sprintf("%.2f%s", joules/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f", joules)
}

func (l *oddLog) has(one ...string) bool {
	return slices.ContainsFunc(one, func(name string) bool { return slices.Contains(l.columns, name) })
}

// fault draws what is wrong with a job's lines; some other column must tell the truth.
func (l *oddLog) fault(p *pastJob) string {
	elapsed := l.has("Elapsed", "ElapsedRaw")
	faults := []string{"", "", ""}
	if elapsed && l.has("Start") {
		faults = append(faults, "late end")
	}
	if l.steps && p.joules > 0 {
		faults = append(faults, "steps in the job")
	}
	if l.has("AllocTRES") && l.has("AllocGRES", "ReqGRES", "ReqTRES") {
		faults = append(faults, "silent AllocTRES")
	}
	if elapsed && l.has("Start") && l.has("End") && (l.has("Suspended") || p.suspended == 0) {
		faults = append(faults, "unknown elapsed")
	}
	return pick(l.r, faults...)
}

// oddRow is what the log says of a job.
type oddRow struct {
	*oddLog
	*pastJob
	fault  string
	stated float64 // joules of the job's line
}

// lines writes a job, and its steps, with at most one fault.
func (l *oddLog) lines(p *pastJob) string {
	row := oddRow{oddLog: l, pastJob: p, fault: l.fault(p), stated: p.joules}
	if row.fault == "steps in the job" {
		row.stated *= 2
	}
	l.faults[row.fault]++
	late := time.Duration(0)
	if row.fault == "late end" {
		late = time.Duration(3600+l.r.IntN(90000)) * time.Second
	}
	var out strings.Builder
	for _, step := range []string{"", ".batch", ".extern", ".0"} {
		if step != "" && !l.steps {
			continue
		}
		cells := make([]string, len(l.columns))
		for i, column := range l.columns {
			switch column {
			case "End":
				cells[i] = p.end.Add(late).In(l.zone).Format("2006-01-02T15:04:05")
			case "ConsumedEnergyRaw", "ConsumedEnergy":
				cells[i] = row.energy(step, column)
			case "AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES", "NNodes":
				cells[i] = row.size(column)
			default:
				cells[i] = row.about(step, column)
			}
			if first := slices.Index(l.columns, column); first < i {
				cells[i] = cells[first]
			}
		}
		out.WriteString(strings.Join(cells, l.delimiter) + "\n")
	}
	return out.String()
}

func (o *oddRow) about(step, column string) string {
	const form = "2006-01-02T15:04:05"
	switch column {
	case "State":
		return pick(o.r, "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1000")
	case "Submit":
		return o.submit.In(o.zone).Format(form)
	case "Start":
		return o.start.In(o.zone).Format(form)
	case "Suspended":
		return clock(o.suspended)
	case "Elapsed", "ElapsedRaw":
		switch {
		case o.fault == "unknown elapsed":
			return pick(o.r, o.none(), "4294967294")
		case column == "Elapsed":
			return clock(o.runTime())
		}
		return strconv.Itoa(int(o.runTime().Seconds()))
	}
	return o.id + step
}

func (o *oddRow) size(column string) string {
	switch {
	case column == "NNodes":
		return strconv.Itoa(o.nodes)
	case column == "AllocTRES" && o.fault == "silent AllocTRES":
		return "cpu=8,node=" + strconv.Itoa(o.nodes)
	case column == "AllocGRES":
		return o.gres(o.pastJob, o.gpus)
	case column == "ReqGRES":
		return o.gres(o.pastJob, o.gpus/o.nodes)
	}
	return o.tres(o.pastJob)
}

func (o *oddRow) energy(step, column string) string {
	joules := map[string]float64{
		"": o.stated, ".extern": o.joules, ".0": o.joules * 0.98, ".batch": o.joules * 0.02,
	}[step]
	switch {
	case joules == 0:
		return pick(o.r, "0", "", "18446744073709551614")
	case column == "ConsumedEnergy":
		return people(joules)
	}
	return strconv.FormatFloat(math.Round(joules), 'f', 0, 64)
}

// wrongIn returns what of a job that was read isn't so in truth.
func (l *oddLog) wrongIn(p *pastJob, got *record.HistoryJob) (wrong []string) {
	if d := got.RunTime().Or(-1) - p.runTime().Seconds(); math.Abs(d) > 2 {
		wrong = append(wrong, fmt.Sprintf("run time %v s off", d))
	}
	if d := got.Submitted.Sub(p.submit); d != 0 {
		wrong = append(wrong, fmt.Sprintf("submitted %v off", d))
	}
	if got.GPUs.Or(0) != float64(p.gpus) {
		wrong = append(wrong, fmt.Sprintf("%v GPUs, %d", got.GPUs, p.gpus))
	}
	if model := got.GPUModel; model != "" && (model != p.model || p.mixed) {
		wrong = append(wrong, "model "+model)
	}
	if joules, ok := got.EnergyJ.Get(); ok && math.Abs(joules-p.joules) > 0.03*p.joules {
		wrong = append(wrong, fmt.Sprintf("%v J for %v", joules, p.joules))
	} else if ok && !p.possible {
		wrong = append(wrong, fmt.Sprintf("%v J can't be", joules))
	}
	return wrong
}

func TestNothingInAnOddLogIsWrongInSilence(t *testing.T) {
	const jobsInLog = 5 // so that all of a kind are named
	logs := 2000
	if testing.Short() {
		logs = 400
	}
	faults := map[string]int{}
	read, inWords, silent := 0, 0, 0
	for seed := range logs {
		r := rand.New(rand.NewPCG(uint64(seed), 37))
		l := newOddLog(r)
		l.faults = faults
		text := strings.Join(l.columns, l.delimiter) + "\n"
		drawn, byLine := map[string]*pastJob{}, map[string]string{}
		for n := range jobsInLog {
			p := l.draw(n)
			drawn[p.id] = p
			byLine[fmt.Sprintf("log:%d:", strings.Count(text, "\n")+1)] = p.id
			text += l.lines(p)
		}
		jobs, tally, err := readOdd(l, text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		said := map[string]bool{}
		for _, kind := range slices.Concat(tally.Skipped, tally.Noted) {
			for _, first := range kind.First {
				at, _, _ := strings.Cut(first, " ")
				said[byLine[at]] = true
			}
		}
		for i := range jobs {
			read++
			p := drawn[jobs[i].JobID]
			if wrong := l.wrongIn(p, &jobs[i]); len(wrong) > 0 && said[p.id] {
				inWords++
			} else if len(wrong) > 0 {
				if silent++; silent <= 10 {
					t.Errorf("seed %d, zone %s: job %s: %s\n%s%s", seed, l.zone, p.id, strings.Join(wrong, "; "),
						strings.Join(l.columns, l.delimiter)+"\n", l.lines(p))
				}
			}
		}
	}
	t.Logf("%d jobs read of %d, %d otherwise than they were and said so, %d in silence; faults %v", read,
		logs*jobsInLog, inWords, silent, faults)
	if read < logs*jobsInLog*9/10 || inWords > read/50 {
		t.Errorf("%d of %d jobs read, %d of them otherwise than they were", read, logs*jobsInLog, inWords)
	}
}

func readOdd(l *oddLog, text string) (jobs []record.HistoryJob, tally *joblog.Tally, err error) {
	tally, err = joblog.ReadSacct(strings.NewReader(text), "log", &joblog.Options{Zone: l.zone}, keep(&jobs))
	return jobs, tally, err
}
