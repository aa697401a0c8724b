package livetest_test

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timed has the module be called for jobs alone whose name ends in _on, and
// log how long each call took.
func timed(text string) string {
	return strings.Replace(text, "\nreturn M\n", `
local submit, now = M.submit, require("socket").gettime
function M.submit(jd, uid)
  if not tostring(jd.name):find("_on$") then return end
  local begin = now()
  submit(jd, uid)
  slurm.log_info("epplan-took %.0f at %.3f", (now() - begin) * 1e6, begin)
end
return M
`, 1)
}

// quantile of sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// spread reports median and 99th percentile.
func spread(b *testing.B, what string, millis []float64) {
	b.Helper()
	sorted := slices.Sorted(slices.Values(millis))
	b.Logf("%s: n %d, median %.3f ms, p99 %.3f ms, max %.3f ms", what, len(sorted), quantile(sorted, 0.5),
		quantile(sorted, 0.99), sorted[len(sorted)-1])
	b.ReportMetric(quantile(sorted, 0.5), what+"-median-ms")
	b.ReportMetric(quantile(sorted, 0.99), what+"-p99-ms")
}

// submitHeld submits a script that never runs and returns how long sbatch took.
func (l *lab) submitHeld(script, jobName string) time.Duration {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "sbatch", "--parsable", "-H", "-D", "/tmp", "--gres=gpu:1", "-w",
		"n1", fixed, "-J", jobName)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+l.conf)
	cmd.Stdin = strings.NewReader(script)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	if err != nil {
		l.Fatalf("%v: %s", err, out)
	}
	return took
}

// call is what a call of the module took, and when it was.
type call struct{ millis, at float64 }

var tookLine = regexp.MustCompile(`epplan-took (\d+) at ([0-9.]+)`)

// calls returns the module's calls, of slurmctld's log.
func (l *lab) calls() []call {
	lines := tookLine.FindAllStringSubmatch(l.read("slurm/log/slurmctld.log"), -1)
	all := make([]call, 0, len(lines))
	for _, m := range lines {
		micros, err := strconv.ParseFloat(m[1], 64)
		at, err2 := strconv.ParseFloat(m[2], 64)
		if err != nil || err2 != nil {
			l.Fatal(m)
		}
		all = append(all, call{micros / 1e3, at})
	}
	return all
}

// BenchmarkSubmitHook says what a submission costs with and without the hook,
// by turns, and what the hook costs while its controller hangs. Run it alone,
// with -benchtime 1x.
func BenchmarkSubmitHook(b *testing.B) {
	const pairs, hung = 400, 30 * time.Second
	l := newLab(b, setup{config: enforce, lua: timed, waits: true, conf: []string{"MaxJobCount=20000"}})
	script := "#!/bin/sh\n" +
		strings.Repeat("# a line of a script of the usual length, about three kilobytes\n", 48) + "exit 0\n"
	for range 20 {
		l.submitHeld(script, "warm_on")
		l.submitHeld(script, "warm_off")
	}
	warm := len(l.calls())
	took := map[bool][]float64{}
	differences := make([]float64, 0, pairs)
	for i := range pairs {
		var pair [2]float64
		for _, on := range []bool{i%2 == 0, i%2 != 0} {
			d := l.submitHeld(script, map[bool]string{true: "b_on", false: "b_off"}[on])
			millis := d.Seconds() * 1e3
			took[on] = append(took[on], millis)
			pair[map[bool]int{true: 1}[on]] = millis
		}
		differences = append(differences, pair[1]-pair[0])
	}
	spread(b, "sbatch-with", took[true])
	spread(b, "sbatch-without", took[false])
	slices.Sort(differences)
	// The rank interval of a median of n values is about n/2 ± √n.
	half, width := pairs/2, int(math.Sqrt(pairs))
	b.Logf("difference of pairs: median %.3f ms, 95 %% interval %.3f to %.3f ms", differences[half],
		differences[half-width], differences[half+width])
	b.ReportMetric(differences[half], "sbatch-difference-median-ms")
	inLua := l.calls()[warm:]
	if len(inLua) != pairs {
		b.Fatalf("%d calls of the module, want %d", len(inLua), pairs)
	}
	millis := make([]float64, 0, len(inLua))
	for _, c := range inLua {
		millis = append(millis, c.millis)
	}
	spread(b, "hook", millis)

	before := len(l.calls())
	l.signal("n1", syscall.SIGSTOP)
	var whileHung []float64
	begin := time.Now()
	for time.Since(begin) < hung {
		d := l.submitHeld(script, "hung_on")
		whileHung = append(whileHung, d.Seconds()*1e3)
	}
	l.signal("n1", syscall.SIGCONT)
	spread(b, "sbatch-hung", whileHung)
	l.costOfHang(b, l.calls()[before:])
}

// costOfHang reports what the calls while the controller hung took.
func (l *lab) costOfHang(b *testing.B, calls []call) {
	b.Helper()
	sum, worst := 0.0, 0.0
	for i, c := range calls {
		sum += c.millis
		in := 0.0
		for _, d := range calls[i:] {
			if d.at < c.at+5 {
				in += d.millis
			}
		}
		worst = max(worst, in)
	}
	b.Logf("hung controller: %d calls in %.1f s took %.1f ms, at most %.1f ms of any 5 s", len(calls),
		calls[len(calls)-1].at-calls[0].at, sum, worst)
	b.ReportMetric(worst, "hung-worst-5s-ms")
}

// BenchmarkProlog says how long slurmd waits for Prologs and Epilogs of jobs that
// run one after another on one node, a process for each hook included: of jobs
// that waited, so that epd knows them, and of jobs that it has to ask Slurm about.
// The last one is on two nodes, which share this machine's processors.
func BenchmarkProlog(b *testing.B) {
	b.Run("known jobs", func(b *testing.B) { prologs(b, true, "n1") })
	b.Run("new jobs", func(b *testing.B) { prologs(b, false, "n1") })
	b.Run("known jobs on two nodes", func(b *testing.B) { prologs(b, true, "n1", "n2") })
}

func prologs(b *testing.B, known bool, nodes ...string) {
	b.Helper()
	const jobs = 240
	each := jobs / len(nodes)
	l := newLab(b, setup{config: enforce, waits: true})
	took := func(kind string) []float64 {
		fields := strings.Fields(l.read(kind + ".took"))
		millis := make([]float64, 0, len(fields))
		for _, field := range fields {
			nanos, err := strconv.ParseFloat(field, 64)
			if err != nil {
				b.Fatal(err)
			}
			millis = append(millis, nanos/1e6)
		}
		return millis
	}
	if known { // the sync comes every 10 s
		for _, node := range nodes {
			l.submit("sleep 30", "--gres=gpu:4", "-w", node)
		}
	}
	for range each {
		for _, node := range nodes {
			l.submit("true", "--gres=gpu:4", "-w", node, fixed)
		}
	}
	l.within(5*time.Minute, "all jobs ended", func() bool { return len(took("epilog")) >= jobs })
	warm := 10 * len(nodes)
	spread(b, "prolog", took("prolog")[warm:])
	spread(b, "epilog", took("epilog")[warm:])
	if n := strings.Count(l.read("prolog.log"), "enforce: the user fixed core 1087 MHz"); n < jobs*9/10 {
		b.Errorf("%d Prologs locked clocks, of %d", n, jobs)
	}
}
