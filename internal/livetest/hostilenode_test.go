package livetest_test

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/testkit/slurmlab"
)

// attempt is one thing that an intruder tries.
type attempt struct {
	what   string
	ask    request
	want   int    // the status
	kind   string // under which it is counted; empty: nothing was refused
	silent bool   // the log says nothing of it, or has said it already
}

// scene is what a hostile node may know of a lab: a job that runs on n1, one that waits, and one that ran
// on n2.
type scene struct {
	other, waits, own          int64
	otherRun, ownRun, workload string
}

// decide asks for the clocks of a job.
func decide(node string, job int64, run string) string {
	return fmt.Sprintf(`{"job_id":%d,"node":%q,"run_id":%q,"gpu_model":"V100-16GB","gpus":1,`+
		`"default":{"core_mhz":1380,"mem_mhz":877},"clocks":[{"mem_mhz":877,"core_mhz":[802,1087,1380]}],`+
		`"uid":65534,"comment_hex":"%x"}`, job, node, run, "epplan:fixed=802")
}

// outcome returns what a run came to, with further fields.
func outcome(node string, job int64, run, more string) string {
	now := time.Now().UTC()
	return fmt.Sprintf(`{"run_id":%q,"job_id":%d,"node":%q,"gpu_model":"V100-16GB","arm":"treated",`+
		`"gpus":["GPU-1"],"exit_state":"COMPLETED","setting":{"core_mhz":802,"mem_mhz":877},`+
		`"started":%q,"ended":%q%s}`, run, job, node, now.Add(-time.Second).Format(time.RFC3339),
		now.Format(time.RFC3339), more)
}

func report(node, more string) string {
	name, _ := json.Marshal(node) // a text always can be
	return fmt.Sprintf(`{"node":%s,"version":"1","at":%q%s}`, name, time.Now().UTC().Format(time.RFC3339), more)
}

// forOthers are attempts to speak for other nodes.
func (s *scene) forOthers(addrs []string) []attempt {
	return []attempt{
		{
			"a report of another node",
			request{path: epdapi.PathReport, body: report("n1", "")},
			403, "refused-caller", false,
		},
		{
			"a decision for another node",
			request{path: epdapi.PathDecide, body: decide("n1", s.other, "forged-1")},
			403, "refused-caller", false,
		},
		{
			"an outcome of another node",
			request{path: epdapi.PathOutcome, body: outcome("n1", s.other, s.otherRun, "")},
			403, "refused-caller", false,
		},
		{
			"an outlook of another node's run", request{
				path: epdapi.PathOutlook,
				body: fmt.Sprintf(`{"job_id":%d,"node":"n1","run_id":%q}`, s.other, s.otherRun),
			}, 403, "refused-caller", false,
		},
		{
			"a report of another node, from an address that nobody knows",
			request{from: addrs[1], path: epdapi.PathReport, body: report("n1", "")},
			403, "refused-caller", false,
		},
		{
			"a decision for another node, from an address that nobody knows",
			request{from: addrs[2], path: epdapi.PathDecide, body: decide("n1", s.other, "forged-2")},
			403, "refused-caller", false,
		},
		{
			"a report of a node that there isn't",
			request{from: addrs[3], path: epdapi.PathReport, body: report("n99", "")},
			403, "refused-caller", false,
		},
		{
			"a report of a node whose name is a path",
			request{path: epdapi.PathReport, body: report("../../../etc/passwd", "")},
			403, "refused-caller", true,
		},
		{
			"a report of a node whose name is two lines",
			request{path: epdapi.PathReport, body: report("n1\r\nX-Epplan: 1\x1b[2J\u202e<script>", "")},
			403, "refused-caller", true,
		},
		{
			"a report of no node", request{path: epdapi.PathReport, body: report("", "")}, 403, "refused-caller", true,
		},
	}
}

// ofOthersJobs are attempts to say something of jobs that aren't on the node.
func (s *scene) ofOthersJobs() []attempt {
	return []attempt{
		{
			"a decision for a job on another node",
			request{path: epdapi.PathDecide, body: decide("n2", s.other, "forged-3")},
			200, "elsewhere", false,
		},
		{
			"a decision for a job that waits",
			request{path: epdapi.PathDecide, body: decide("n2", s.waits, "forged-4")},
			200, "elsewhere", true,
		},
		{
			"a decision for a job that there isn't yet",
			request{path: epdapi.PathDecide, body: decide("n2", s.waits+100, "forged-5")},
			200, "unknown_job", true,
		},
		{
			"a decision for no run",
			request{path: epdapi.PathDecide, body: decide("n2", s.waits, "")},
			400,
			"bad-request bad_request refused-message", false,
		},
		{
			"a decision for no job",
			request{path: epdapi.PathDecide, body: decide("n2", -1, "forged-6")},
			400,
			"refused-message", false,
		},
		{
			"a decision for a run that is a path",
			request{path: epdapi.PathDecide, body: decide("n2", s.waits, "../../journal/x")},
			400,
			"bad-request bad_request refused-message", false,
		},
		{
			"an outcome of a job that waits",
			request{path: epdapi.PathOutcome, body: outcome("n2", s.waits, "forged-7", "")},
			425, "", true,
		},
		{
			"an outlook of another node's run", request{
				path: epdapi.PathOutlook,
				body: fmt.Sprintf(`{"job_id":%d,"node":"n2","run_id":%q}`, s.other, s.otherRun),
			}, 200, "", true,
		},
	}
}

// changes are attempts to do what administrators do.
func (s *scene) changes(slurmUser uint32) []attempt {
	all := slices.Concat([]attempt{
		{
			"new settings, by Slurm's user",
			request{path: epdapi.PathReload, body: "{}", uid: slurmUser},
			403, "refused-caller", false,
		},
		{
			"a decision by a user",
			request{path: epdapi.PathDecide, body: decide("n2", s.own, "forged-8"), uid: nobody},
			403, "refused-caller", false,
		},
		{
			"an outcome by a user",
			request{path: epdapi.PathOutcome, body: outcome("n2", s.own, "forged-9", ""), uid: nobody},
			403, "refused-caller", false,
		},
		{
			"a job of somebody else, as a user who has none",
			request{method: http.MethodGet, path: fmt.Sprintf("%s/%d", epdapi.PathJobs, s.other), uid: 65533},
			404, "", true,
		},
	})
	for what, path := range map[string]string{
		"new settings": epdapi.PathReload, "another model": epdapi.PathModelsUse, "a history": epdapi.PathHistory,
		"a power event": epdapi.PathPower, "runs forgotten": epdapi.PathForget,
		"runs remembered": epdapi.PathRemember,
		"a submission":    epdapi.PathSubmit, "levers undone": epdapi.PathLeversUndo,
	} {
		all = append(all, attempt{what, request{path: path, body: "{}"}, 403, "refused-caller", false})
	}
	all = append(all, attempt{
		"all runs as recorded",
		request{method: http.MethodGet, path: epdapi.PathRuns},
		403, "refused-caller", false,
	})
	for what, path := range map[string]string{
		"a Prolog": epdapi.PathProlog, "an Epilog": epdapi.PathEpilog, "clocks restored": epdapi.PathRestore,
		"the pages' levers": "/admin/levers", "a backup": "/v1/backup",
		"the records by a path": "/v1/%2e%2e%2frecords.db",
	} {
		all = append(all, attempt{what, request{path: path, body: "{}"}, 404, "", true})
	}
	return all
}

// proofs are attempts with credentials that count for nothing.
func (s *scene) proofs() []attempt {
	report := report("n2", "")
	of := func(q request) string { q.path = epdapi.PathReport; q.method = http.MethodPost; return q.statement() }
	other := of(request{body: "{}"})
	path := request{method: http.MethodPost, path: epdapi.PathDecide, body: report}
	version := strings.Replace(of(request{body: report}), "epplan/1 ", "epplan/2 ", 1)
	answer := strings.Replace(of(request{body: report}), " request ", " reply ", 1)
	longer := of(request{body: report}) + " more"
	base := request{path: epdapi.PathReport, body: report}
	with := func(change func(q *request)) request { q := base; change(&q); return q }
	return []attempt{
		{"no credential", with(func(q *request) { q.credentials = -1 }), 401, "refused-request", false},
		{"two credentials", with(func(q *request) { q.credentials = 2 }), 401, "refused-request", false},
		{
			"a credential of another cluster's key",
			with(func(q *request) { q.key = []byte("another key") }),
			401, "refused-request", false,
		},
		{
			"a credential of another body",
			with(func(q *request) { q.claims = other }),
			401, "refused-request", false,
		},
		{
			"a credential of another path",
			with(func(q *request) { q.claims = path.statement() }),
			401, "refused-request", false,
		},
		{
			"a credential of another version",
			with(func(q *request) { q.claims = version }),
			401, "refused-request", false,
		},
		{"a credential of an answer", with(func(q *request) { q.claims = answer }), 401, "refused-request", false},
		{
			"a credential that says more",
			with(func(q *request) { q.claims = longer }),
			401, "refused-request", false,
		},
		{"a credential of nothing", with(func(q *request) { q.claims = " " }), 401, "refused-request", true},
		{
			"an old credential",
			with(func(q *request) { q.made = time.Now().Add(-10 * time.Minute) }),
			401, "refused-request", false,
		},
		{
			"a credential of the future",
			with(func(q *request) { q.made = time.Now().Add(10 * time.Minute) }),
			401, "refused-request", false,
		},
		{"another method", with(func(q *request) { q.method = http.MethodPut }), 405, "refused-request", false},
	}
}

// messages are attempts with what can't be read, or isn't possible.
func (s *scene) messages() []attempt {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(bytes.Repeat([]byte("[[[["), 16<<20)) // never fails
	_ = z.Close()
	decide := func(more string) request {
		return request{
			path: epdapi.PathDecide,
			body: fmt.Sprintf(`{"job_id":%d,"node":"n2","run_id":"forged-10",%s}`, s.own, more),
		}
	}
	of := func(more string) request {
		return request{path: epdapi.PathReport, body: report("n2", more)}
	}
	ended := func(more string) request {
		return request{path: epdapi.PathOutcome, body: outcome("n2", s.own, "forged-11", more)}
	}
	return append(s.endless(of, ended), []attempt{
		{
			"a body of two megabytes",
			request{path: epdapi.PathReport, body: strings.Repeat(" ", 2<<20)},
			413, "refused-request", false,
		},
		{
			"a report of half a megabyte",
			request{path: epdapi.PathReport, body: report("n2", "") + strings.Repeat(" ", 512<<10)},
			413, "refused-message", false,
		},
		{
			"a gzip bomb",
			request{
				path: epdapi.PathReport, body: bomb.String(),
				header: map[string]string{"Content-Encoding": "gzip"},
			},
			400, "refused-message", false,
		},
		{
			"brackets without end",
			request{path: epdapi.PathReport, body: strings.Repeat("[", 200<<10)},
			400, "refused-message", false,
		},
		{
			"two values",
			request{path: epdapi.PathReport, body: report("n2", "") + report("n1", "")},
			400, "refused-message", false,
		},
		{
			"what isn't UTF-8",
			request{path: epdapi.PathReport, body: report("n2", ",\"version\":\"\xff\"")},
			400, "refused-message", true,
		},
		{"no number", of(`,"gpus":[{"power_w":NaN}]`), 400, "refused-message", false},
		{"a GPU of a gigawatt", of(`,"gpus":[{"uuid":"GPU-x","power_w":1e9}]`), 400, "refused-message", false},
		{
			"a power profile of two lines",
			of(`,"gpus":[{"uuid":"GPU-x","power_profiles":["a\nb"]}]`),
			400, "refused-message", true,
		},
		{
			"a decision of negative clocks",
			decide(`"default":{"core_mhz":-1,"mem_mhz":877}`),
			400, "bad-request bad_request refused-message", false,
		},
		{
			"a decision of a GPU model of two lines",
			decide(`"gpu_model":"V100\r\nSet-Cookie: a=b"`),
			400, "bad-request bad_request refused-message", false,
		},
		{"an outcome of a negative clock", ended(`,"setting":{"core_mhz":-1}`), 400, "refused-message", false},
		{
			"an outcome of a made-up arm",
			ended(`,"arm":"'; DROP TABLE outcomes; --"`),
			400, "refused-message", false,
		},
		{"an outcome of infinite energy", ended(`,"gpu_energy_j":1e999`), 400, "refused-message", false},
	}...)
}

// endless are attempts with more than there can be of something, in reports and outcomes.
func (s *scene) endless(of, ended func(more string) request) []attempt {
	list := func(one string, count int) string { return "[" + strings.Repeat(one+",", count-1) + one + "]" }
	return []attempt{
		{"GPUs without end", of(`,"gpus":` + list("{}", 65)), 400, "refused-message", false},
		{"runs without end", of(`,"runs":` + list("{}", 129)), 400, "refused-message", false},
		{"troubles without end", of(`,"troubles":` + list("{}", 9)), 400, "refused-message", false},
		{"an outcome of a thousand GPUs", ended(`,"gpus":` + list(`"GPU-x"`, 1000)), 400, "refused-message", false},
		{
			"an outcome of a UUID of a kilobyte",
			ended(`,"gpus":["` + strings.Repeat("x", 1000) + `"]`),
			400, "refused-message", false,
		},
		{
			"an outcome of a node of a kilobyte",
			request{path: epdapi.PathOutcome, body: outcome(strings.Repeat("n", 1000), s.own, "forged-12", "")},
			403, "refused-caller", true,
		},
	}
}

// outcomes are attempts with outcomes that are taken, and count for nothing.
func (s *scene) outcomes() []attempt {
	ended := func(job int64, run, more string) request {
		return request{path: epdapi.PathOutcome, body: outcome("n2", job, run, more)}
	}
	return []attempt{
		{"an outcome of its own run, doubled", ended(s.own, s.ownRun, `,"time_s":1`), 200, "outcome-again", false},
		{
			"an outcome of its own job, of another run",
			ended(s.own, "forged-13", `,"time_s":2`),
			200, "outcome-again", true,
		},
		{
			"an outcome of negative energy",
			ended(s.own, "forged-14", `,"time_s":59,"gpu_energy_j":-1e300`),
			200, "outcome-again", true, // the one before was longer than the job
		},
		{
			"an outcome of all the energy that there is",
			ended(s.own, "forged-15", `,"time_s":59,"gpu_energy_j":1e300`),
			200, "outcome-again", true,
		},
		{
			"an outcome of the last century",
			ended(s.own, "forged-16", `,"started":"1970-01-01T00:00:00Z","ended":"1970-01-01T00:01:00Z","time_s":60`),
			200, "outcome-again", true,
		},
		{
			"an outcome of the far future",
			ended(s.own, "forged-17", `,"started":"9000-01-01T00:00:00Z","ended":"9000-01-01T00:01:00Z","time_s":60`),
			200, "outcome-again", true,
		},
		{
			"an outcome of the other node's workload",
			ended(s.own, "forged-18", fmt.Sprintf(`,"time_s":59,"workload":%q`, s.workload)),
			200, "outcome-again", true,
		},
	}
}

// TestAHostileNodeHasNoEffectBeyondItself: whatever root of a node sends who has munge's key, other nodes,
// their jobs and what is known of them stay as they are; it is counted, and the log says it once.
func TestAHostileNodeHasNoEffectBeyondItself(t *testing.T) {
	slurmlab.AnySlurm(t, "ip", "nsenter")
	l := newLab(t, setup{config: enforce, roles: true, apart: "n2"})
	n := &intruder{lab: l, key: []byte(l.read(munge + "/key")), metrics: slurmlab.Address(t)}
	l.stopEPD(controller, os.Interrupt)
	l.startEPD(controller, "--metrics", n.metrics)
	l.eventually("the controller hears of both nodes", func() bool {
		nodes, err := epdapi.New(l.socket(controller)).Nodes(t.Context())
		return err == nil && len(nodes.Nodes) == 2 && nodes.Nodes[0].Report != nil && nodes.Nodes[1].Report != nil
	})
	s := l.set()
	before := l.beyond("n2")
	tried := 0
	for _, group := range [][]attempt{
		s.forOthers(l.machine.addrs), s.ofOthersJobs(), s.changes(l.slurmUser()), s.proofs(), s.messages(),
		s.outcomes(),
	} {
		for i := range group {
			n.try(&group[i])
			tried++
		}
	}
	tried += n.wrongHTTP() + n.slow() + n.replay() + n.flood()
	t.Logf("%d attempts", tried)
	if after := l.beyond("n2"); after != before {
		t.Errorf("beyond n2 there was\n%s\nand is\n%s", before, after)
	}
	l.slurm("scancel", name(s.waits))
	n.texts()
	l.completes(s.other)
	l.eventually("its outcome is recorded", func() bool {
		return l.says("n1").Unrecorded == 0 && len(l.runs("n1")) == 0
	})
	l.free("n1")
	n.crowd()
	l.undrained()
	l.stopEPD(controller, os.Interrupt)
	l.once("n1", s.other, "COMPLETED")
}

// slurmUser returns the uid of Slurm's user.
func (l *lab) slurmUser() uint32 {
	l.Helper()
	u, err := user.Lookup("slurm")
	if err != nil {
		l.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		l.Fatal(err)
	}
	return uint32(uid)
}

// set has jobs run and wait.
func (l *lab) set() *scene {
	l.Helper()
	s := new(scene)
	s.own = l.lock("n2", 1)
	s.ownRun = l.runFile("n2", s.own).ID
	l.completes(s.own)
	l.recordedBy("n2", 1)
	known := l.lock("n1", 1)
	l.completes(known)
	l.recordedBy("n1", 1)
	s.workload = strings.TrimSpace(l.rows("SELECT workload FROM outcomes WHERE node = 'n1' LIMIT 1"))
	s.other = l.lock("n1", 4)
	s.otherRun = l.runFile("n1", s.other).ID
	l.eventually("n1 reports the run", func() bool {
		nodes, err := epdapi.New(l.socket(controller)).Nodes(l.Context())
		return err == nil && len(nodes.Nodes) == 2 && nodes.Nodes[0].Report != nil &&
			len(nodes.Nodes[0].Report.Runs) == 1 && nodes.Nodes[0].Report.Runs[0].ID == s.otherRun
	})
	submitted := func() int { return strings.Count(l.rows("SELECT 'one' FROM decisions WHERE job_id = 0"), "one") }
	before := submitted()
	s.waits = l.submit("sleep 1", "--gres=gpu:1", "-w", "n1", fixed)
	l.eventually("its submission is on record", func() bool { return submitted() > before })
	return s
}

// try makes an attempt twice, and looks at what became of it.
func (n *intruder) try(a *attempt) {
	n.Helper()
	var before map[string]int
	var status, log int
	var body string
	var kinds string
	for range tries { // munge may be late on a busy machine
		before, log = n.counted(), len(n.said())
		status, body = n.send(a.ask)
		if kinds = more(before, n.counted()); a.kind == "elsewhere" && kinds == "" {
			// And so may Slurm, without which nothing says where the job is: another run is asked for.
			a.ask.body = strings.Replace(a.ask.body, "forged-", "forged-again-", 1)
			continue
		}
		if status != 0 && status != http.StatusServiceUnavailable {
			break
		}
	}
	n.Logf("%s: %d, counted as %q: %.200s", a.what, status, kinds, strings.TrimSpace(body))
	if status != a.want || kinds != a.kind {
		n.Errorf("%s: %d, counted as %q, want %d and %q: %s", a.what, status, kinds, a.want, a.kind, body)
	}
	first := n.said()[log:]
	if len(first) > 1 || len(first) == 0 && !a.silent {
		n.Errorf("%s: the log says %q, want one line", a.what, first)
	}
	again := 0
	for range tries {
		if again, _ = n.send(a.ask); again != 0 && again != http.StatusServiceUnavailable {
			break
		}
	}
	if next := n.said()[log+len(first):]; again != status || len(next) > 0 {
		n.Errorf("%s, again: %d, and the log says %q", a.what, again, next)
	}
}

// said returns the warnings in the controller's log about the node and its machine.
func (n *intruder) said() (lines []string) {
	n.Helper()
	for line := range strings.Lines(n.read(controller + ".log")) {
		isOf := strings.Contains(line, "level=WARN") &&
			(strings.Contains(line, "node=n2") || strings.Contains(line, "from="+n.machine.network))
		if isOf && !strings.Contains(line, "was used before") && // told once, of what is sent again
			!strings.Contains(line, "munged doesn't answer") {
			lines = append(lines, line)
		}
	}
	return lines
}

// rows returns what the controller's records answer, a line each.
func (l *lab) rows(query string) string {
	l.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(l.dir, controller, "records.db")+"?mode=ro")
	if err != nil {
		l.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	rows, err := db.QueryContext(l.Context(), query)
	if err != nil {
		l.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // only read
	columns, err := rows.Columns()
	if err != nil {
		l.Fatal(err)
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var b strings.Builder
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			l.Fatal(err)
		}
		_, _ = fmt.Fprintln(&b, values...)
	}
	if err := rows.Err(); err != nil {
		l.Fatal(err)
	}
	return b.String()
}

// beyond is everything that a controller knows and Slurm has of other nodes than one.
func (l *lab) beyond(node string) string {
	l.Helper()
	var b strings.Builder
	for _, query := range []string{
		"SELECT cluster, job_id, token, user, workload FROM jobs ORDER BY seq",
		"SELECT job_id, node, run_id, workload, core_mhz, reason FROM decisions WHERE node != '" + node +
			"' ORDER BY decision_id",
		"SELECT job_id, node, run_id, workload, core_mhz, unmatched FROM outcomes WHERE node != '" + node +
			"' OR NOT unmatched ORDER BY outcome_id",
	} {
		b.WriteString(l.rows(query))
	}
	client := epdapi.New(l.socket(controller))
	status, err := client.Status(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	nodes, err := client.Nodes(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	_, _ = fmt.Fprintf(&b, "configuration %s, %d models\n", status.Controller.ConfigVersion,
		status.Controller.Models)
	for i := range nodes.Nodes {
		if v := &nodes.Nodes[i]; v.Name != node {
			_, _ = fmt.Fprintf(&b, "%s: version %s, %d GPUs, runs", v.Name, v.Report.Version, v.GPUs)
			for k := range v.Report.Runs {
				_, _ = fmt.Fprintf(&b, " %s", v.Report.Runs[k].ID)
			}
			b.WriteByte('\n')
		}
	}
	_, _ = fmt.Fprintf(&b, "n1 at %v\n%s\n%s\n", l.hardware("n1"),
		l.slurm("squeue", "-h", "-t", "all", "-o", "%A %T %N %y %k"),
		l.slurm("sinfo", "-h", "-N", "-o", "%N %T %w %E"))
	return b.String()
}
