package livetest_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// The columns of a sample: of a process, and of what is kept. Of what is resident, own_kb isn't the program's
// file, of which more comes into memory the more of it has run; go_kb of that is Go's, the rest C's and threads'
// stacks; heap_kb is what Go's heap may grow to before it is collected, twice or less of what is in use.
var soakColumns = []string{
	"resident_kb", "own_kb", "heap_kb", "goroutines", "descriptors", "threads", "children", "spool", "journal",
	"records_kb", "log_kb", "go_kb",
}

// soakSample is what one epd had at a moment; what couldn't be told is NaN.
type soakSample struct {
	process string
	pid     int
	at      time.Duration
	ended   float64 // jobs, so far
	part    float64 // of the soak that is over
	values  []float64
}

// soakWatch samples all epds until it is stopped.
type soakWatch struct {
	*lab
	begin  time.Time
	scrape *http.Client // of metrics
	looker *http.Client // at the controller's pages

	mu      sync.Mutex
	ended   int     // jobs, so far
	part    float64 // of the soak that is over
	samples []soakSample
}

func newSoakWatch(l *lab) *soakWatch {
	const patient = 2 * time.Second
	return &soakWatch{
		lab: l, begin: time.Now(),
		scrape: &http.Client{Timeout: patient, Transport: &http.Transport{DisableKeepAlives: true}},
		looker: &http.Client{Timeout: patient, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", l.socket(controller))
			},
		}},
	}
}

func (w *soakWatch) processes() []string { return append([]string{controller}, w.names...) }

// watch samples every so often, until what it returns is called.
func (w *soakWatch) watch(every time.Duration) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			for _, name := range w.processes() {
				w.sample(name)
			}
			if i%5 == 0 { // somebody looks
				for _, path := range []string{"/", "/queue", "/jobs", "/workloads", "/v1/savings"} {
					_ = get(w.looker, "http://epd"+path)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(every):
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// get returns what is answered; nothing by who stands still.
func get(client *http.Client, url string) string {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return ""
	}
	response, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// reached notes how many jobs ended, and what part of the soak is over.
func (w *soakWatch) reached(ended int, part float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.part = ended, part
}

func (w *soakWatch) pid(name string) int {
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	if cmd := w.epds[name]; cmd != nil {
		return cmd.Process.Pid
	}
	return 0
}

// sample notes what an epd has now; none where it isn't there.
func (w *soakWatch) sample(name string) {
	pid := w.pid(name)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if pid == 0 || err != nil {
		return
	}
	metrics := get(w.scrape, "http://"+w.metricsAddress(name)+"/metrics")
	state := filepath.Join(w.dir, name)
	s := soakSample{
		process: name, pid: pid, at: time.Since(w.begin),
		values: []float64{
			numberAfter(string(status), "VmRSS:"), numberAfter(string(status), "RssAnon:"),
			numberAfter(metrics, "\ngo_memstats_next_gc_bytes ") / 1024,
			numberAfter(metrics, "\ngo_goroutines "), entries(fmt.Sprintf("/proc/%d/fd", pid), ""),
			numberAfter(string(status), "Threads:"), children(pid),
			entries(filepath.Join(state, "spool"), ".entry"), entries(filepath.Join(state, "journal"), ".json"),
			kilobytes(filepath.Join(state, "records.db")), kilobytes(filepath.Join(state, "records.db-wal")),
			(numberAfter(metrics, "\ngo_memstats_sys_bytes ") -
				numberAfter(metrics, "\ngo_memstats_heap_released_bytes ")) / 1024,
		},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.ended, s.part = float64(w.ended), w.part
	w.samples = append(w.samples, s)
}

// numberAfter returns the first number after some words of a text.
func numberAfter(text, words string) float64 {
	_, rest, found := strings.Cut(text, words)
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// entries counts the files of a folder whose names end in some way.
func entries(dir, suffix string) (count float64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return math.NaN()
	}
	for _, e := range list {
		if strings.HasSuffix(e.Name(), suffix) {
			count++
		}
	}
	return count
}

// children counts the processes that a process has.
func children(pid int) (count float64) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		return math.NaN()
	}
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		count += float64(len(bytes.Fields(text)))
	}
	return count
}

func kilobytes(file string) float64 {
	info, err := os.Stat(file)
	if err != nil {
		return math.NaN()
	}
	return float64(info.Size()) / 1024
}

// line says in short how things are.
func (w *soakWatch) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, name := range w.processes() {
		for _, s := range slices.Backward(w.samples) {
			if s.process == name {
				all = append(all, fmt.Sprintf("%s %.0f MB %.0f goroutines %.0f descriptors", name, s.values[0]/1024,
					s.values[3], s.values[4]))
				break
			}
		}
	}
	return strings.Join(all, ", ")
}

// write writes all samples to a file.
func (w *soakWatch) write(file string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	err := out.Write(append([]string{"second", "jobs_ended", "process", "pid"}, soakColumns...))
	for _, s := range w.samples {
		row := []string{
			fmt.Sprintf("%.1f", s.at.Seconds()), strconv.FormatFloat(s.ended, 'f', 0, 64), s.process,
			strconv.Itoa(s.pid),
		}
		for _, x := range s.values {
			cell := ""
			if !math.IsNaN(x) {
				cell = strconv.FormatFloat(x, 'f', 0, 64)
			}
			row = append(row, cell)
		}
		if err == nil {
			err = out.Write(row)
		}
	}
	if out.Flush(); err == nil {
		err = out.Error()
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o600)
}

// soakMeasure is one of what must stay level, and from which rise on its rise in half a soak says something:
// there is no half a goroutine, and what the allocator holds comes in steps.
type soakMeasure struct {
	name  string
	least float64
	unit  float64 // by which figures are divided to be shown
}

var soakMeasures = []soakMeasure{
	{"resident_kb", 1024, 1024},
	{"own_kb", 1024, 1024},
	{"heap_kb", 1024, 1024},
	{"goroutines", 1, 1},
	{"descriptors", 1, 1},
	{"children", 1, 1},
}

// soakSlope is how one measure of one process went in the second half of a soak.
type soakSlope struct {
	soakMeasure
	slope       // for 1,000 jobs
	process     string
	samples     int
	first, last float64 // of its blocks
	jobs        float64 // from the first to the last
}

// rises reports whether a measure rose, and by something.
func (s *soakSlope) rises() bool { return s.Low > 0 && s.Mid*s.jobs/1000 >= s.least }

// settled returns the samples of an epd in the second half of a soak, as far as it had been there for a
// sixth of it by then: what it remembers of jobs is bounded, and that many fill it. None where it was
// started again too late for a quarter to be left.
func (w *soakWatch) settled(name string) []soakSample {
	all := slices.DeleteFunc(slices.Clone(w.samples), func(s soakSample) bool { return s.process != name })
	if len(all) == 0 {
		return nil
	}
	pid := all[len(all)-1].pid
	first := slices.IndexFunc(all, func(s soakSample) bool { return s.pid == pid })
	const half, sixth, lastQuarter = 1.0 / 2, 1.0 / 6, 3.0 / 4
	from := max(half, all[first].part+sixth)
	if from > lastQuarter {
		return nil
	}
	return slices.DeleteFunc(all[first:], func(s soakSample) bool { return s.part < from })
}

// slopes returns those of the epds of which there are enough samples, by jobs that ended.
func (w *soakWatch) slopes() []soakSlope {
	const parts, fewest = 30, 12
	var all []soakSlope
	for _, name := range w.processes() {
		half := w.settled(name)
		for _, m := range soakMeasures {
			var xs, ys []float64
			for i := range half {
				if y := half[i].values[slices.Index(soakColumns, m.name)]; !math.IsNaN(y) {
					xs, ys = append(xs, half[i].ended/1000), append(ys, y)
				}
			}
			if len(xs) < fewest {
				continue
			}
			bx, by := blocks(xs, ys, parts)
			all = append(all, soakSlope{
				soakMeasure: m, slope: slopeOf(bx, by), process: name, samples: len(xs),
				first: by[0], last: by[len(by)-1], jobs: 1000 * (bx[len(bx)-1] - bx[0]),
			})
		}
	}
	return all
}

// bytesPerJob returns how many bytes the records grew by for each job that ended in the third quarter of a
// soak, and in the last one, and the most that the log of writes took.
func (w *soakWatch) bytesPerJob() (third, last, log float64) {
	size, wal := slices.Index(soakColumns, "records_kb"), slices.Index(soakColumns, "log_kb")
	grew := func(from, to float64) float64 {
		var xs, ys []float64
		for _, s := range w.samples {
			if s.process == controller && s.part >= from && s.part <= to &&
				!math.IsNaN(s.values[size]) {
				xs, ys = append(xs, s.ended), append(ys, 1024*s.values[size])
			}
		}
		if len(xs) < 2 || xs[len(xs)-1] == xs[0] {
			return math.NaN()
		}
		return (ys[len(ys)-1] - ys[0]) / (xs[len(xs)-1] - xs[0])
	}
	for _, s := range w.samples {
		if s.process == controller && s.values[wal] > log {
			log = s.values[wal]
		}
	}
	return grew(0.5, 0.75), grew(0.75, 1), log * 1024
}

// table shows slopes.
func soakTable(all []soakSlope) string {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "process\tmeasure\tsamples\tat first\tat last\tfor 1,000 jobs\t99 % interval\t")
	for i := range all {
		s, said := &all[i], "level"
		if s.rises() {
			said = "RISES"
		}
		name, u := strings.Replace(s.name, "_kb", ", MB", 1), s.unit
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%+.2f\t%+.2f to %+.2f\t%s\n", s.process, name, s.samples,
			s.first/u, s.last/u, s.Mid/u, s.Low/u, s.High/u, said)
	}
	_ = t.Flush()
	return text.String()
}

// counted shows how many there were of each kind.
func counted(of map[string]int) string {
	all := make([]string, 0, len(of))
	for _, what := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d %s", of[what], what))
	}
	return strings.Join(all, ", ")
}
