package slurm_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/internal/testkit/shareddata"
	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// sample reads a file recorded from Slurm 22.05.8. Its INDEX.txt names the job ids by case.
func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(shareddata.Path(tb, "../slurm-lab/samples/"+name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func jobByID(tb testing.TB, jobs []slurm.Job, id slurm.JobID) slurm.Job {
	tb.Helper()
	for _, j := range jobs {
		if j.ID == id {
			return j
		}
	}
	tb.Fatalf("no job %d", id)
	return slurm.Job{}
}

func jobsIn(tb testing.TB, data []byte) []slurm.Job {
	tb.Helper()
	jobs, meta, err := parseJobs("squeue --json", data)
	if err != nil {
		tb.Fatal(err)
	}
	if meta.Version.String() != "22.05.8" || len(meta.Errors) != 0 {
		tb.Errorf("meta %+v", meta)
	}
	return jobs
}

func TestRecordedSqueueGivesTheJobsAsTheyWereSubmitted(t *testing.T) {
	jobs := jobsIn(t, sample(t, "squeue.json"))
	array := jobByID(t, jobs, 16)
	if array.ArrayJob != 16 || array.ArrayTask != -1 || array.ArrayTasks != "2-4%2" ||
		array.State.Base != slurm.Pending {
		t.Errorf("array %+v", array)
	}
	task := jobByID(t, jobs, 32)
	if task.ArrayJob != 16 || task.ArrayTask != 0 {
		t.Errorf("array task %+v", task)
	}
	het := jobByID(t, jobs, 18)
	if het.HetJob != 17 || het.HetOffset != 1 || len(het.Gres) != 1 || het.Gres[0].Node != "n2" {
		t.Fatalf("het component %+v", het)
	}
	if g := het.Gres[0].Gres[0]; g.Name != "gpu" || g.Type != "h200" || g.Count != 2 || len(g.Index) != 2 ||
		g.Index[0] != 1 || g.Index[1] != 2 {
		t.Errorf("devices of the het component: %+v", g)
	}
	shard := jobByID(t, jobs, 13)
	if g := shard.Gres[0].Gres[0]; g.Name != "shard" || g.Count != 2 || len(g.Index) != 1 || g.Index[0] != 2 {
		t.Errorf("shard %+v", g)
	}
	pending := jobByID(t, jobs, 25)
	if pending.TimeLimit != live.LimitOf(51*time.Hour+5*time.Minute) || pending.Start.Unix() != 1795337723 ||
		pending.Reason != "BeginTime" || pending.Requested.GPUs() != 1 {
		t.Errorf("pending %+v", pending)
	}
	if held := jobByID(t, jobs, 26); !held.Held() {
		t.Errorf("job 26 is held: %+v", held)
	}
	if j := jobByID(t, jobs, 11); j.User != "nobody" || j.UID != 65534 || j.Partition != "main" ||
		j.Nice != 0 || !j.Requeue || j.NodeCount != 1 {
		t.Errorf("job 11 %+v", j)
	}
}

func TestRecordedEndStatesAndExitCodesAreRead(t *testing.T) {
	jobs := jobsIn(t, sample(t, "squeue-all-states.json"))
	for _, c := range []struct {
		id    slurm.JobID
		state slurm.State
		exit  slurm.ExitStatus
	}{
		{4, slurm.Cancelled, slurm.ExitStatus{Code: 143}},
		{5, slurm.Failed, slurm.ExitStatus{Code: 3}},
		{29, slurm.Failed, slurm.ExitStatus{Code: 7}},
		{30, slurm.Failed, slurm.ExitStatus{Signal: 9}},
		{11, slurm.Timeout, slurm.ExitStatus{Signal: 15}},
		{14, slurm.NodeFail, slurm.ExitStatus{}},
		{27, slurm.Cancelled, slurm.ExitStatus{}},
	} {
		j := jobByID(t, jobs, c.id)
		if j.State.Base != c.state || !j.State.Ended() || j.Exit.Code != c.exit.Code && c.exit.Code != 0 ||
			j.Exit.Signal != c.exit.Signal && c.exit.Signal != 0 {
			t.Errorf("job %d: %+v %+v, want %s %+v", c.id, j.State, j.Exit, c.state, c.exit)
		}
	}
}

func TestHostileTextStaysInItsFieldInJSON(t *testing.T) {
	jobs := jobsIn(t, sample(t, "squeue-all-states.json"))
	for id, want := range map[slurm.JobID][2]string{
		19: {"semi;colon,comma|pipe=eq", "a|b;c=d e;ep=popen"},
		20: {"Größe 日本 🙂", "ünï;ep=popen"},
		21: {"line1\nline2\ttab", "c1\nJobId=999 fake=1;ep=popen"},
		22: {`"quoted" 'single' \back`, `it's "x";ep=popen`},
		23: {strings.Repeat("x", 300), "ep=popen"},
		24: {"US\x1funit", "ep=popen"},
	} {
		j := jobByID(t, jobs, id)
		if j.Name != want[0] || j.Comment != want[1] || j.UID != 65534 {
			t.Errorf("job %d: name %q comment %q uid %d", id, j.Name, j.Comment, j.UID)
		}
	}
	for _, j := range jobs {
		if j.ID == 999 {
			t.Error("a comment forged job 999")
		}
	}
}

func TestBytesThatAreNotUTF8AreKeptAndTheListIsNotDropped(t *testing.T) {
	jobs := jobsIn(t, sample(t, "squeue-not-utf8.json"))
	if j := jobByID(t, jobs, 37); j.Name != `bad\xff\xfeutf8` || !j.Held() {
		t.Errorf("job 37: name %q", j.Name)
	}
	if len(jobs) < 30 {
		t.Errorf("%d jobs", len(jobs))
	}
}

func TestRecordedScontrolGivesNodesAndSettings(t *testing.T) {
	nodes, _, err := slurm.ParseNodeText("scontrol show node", sample(t, "scontrol-show-node.txt"), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	n := nodes[1]
	if len(nodes) != 2 || n.Name != "n2" || n.State.Base != "MIXED" || n.Weight != 1 || n.CPUs != 16 ||
		n.CPUsInUse != 3 || n.MemoryMB != 64000 || n.Version != "22.05.8" ||
		n.Address != "127.0.0.1" || n.HostName != "vm" {
		t.Errorf("%+v", n)
	}
	if len(n.GresUsed) != 2 || n.GresUsed[1].Name != "shard" || n.GresUsed[1].Count != 0 ||
		n.GresUsed[1].Index != nil {
		t.Errorf("gres in use %+v", n.GresUsed)
	}
	conf := slurm.ParseConfigText(sample(t, "scontrol-show-config.txt"))
	if conf["SlurmUser"] != "slurm(64030)" || conf["SuspendProgram"] != "" || conf["PrologFlags"] != "Alloc" {
		t.Errorf("config: %q %q", conf["SlurmUser"], conf["SuspendProgram"])
	}
}

func TestRecordedScontrolJobsAgreeWithJSON(t *testing.T) {
	for file, id := range map[string]slurm.JobID{
		"array": 16, "het": 18, "shard": 13, "pending": 25,
		"timelimit": 11,
	} {
		text, err := slurm.ParseJobText("scontrol show job", sample(t, "scontrol-show-job-"+file+".txt"),
			id, time.UTC)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := jobByID(t, jobsIn(t, sample(t, "squeue.json")), id)
		if text.UID != want.UID || text.State.Base != want.State.Base || text.Priority != want.Priority ||
			text.TimeLimit != want.TimeLimit ||
			!text.Submit.Equal(want.Submit) || text.NodeList != want.NodeList ||
			text.ArrayJob != want.ArrayJob || text.ArrayTasks != want.ArrayTasks ||
			text.HetJob != want.HetJob || text.HetOffset != want.HetOffset ||
			text.Features != want.Features || text.Requested["cpu"] != want.Requested["cpu"] {
			t.Errorf("%s: text %+v\njson %+v", file, text, want)
		}
		if len(want.Gres) > 0 && (len(text.Gres) != 1 || text.Gres[0].Node != want.Gres[0].Node ||
			len(text.Gres[0].Gres[0].Index) != len(want.Gres[0].Gres[0].Index)) {
			t.Errorf("%s: devices %+v, want %+v", file, text.Gres, want.Gres)
		}
	}
}

func TestRecordedAccountingIsReadAndTornLinesAreNamed(t *testing.T) {
	rows, rejected, err := slurm.ParseAccounting("sacct", sample(t, "sacct-us-delimited.txt"),
		"\x1f", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[slurm.JobID]slurm.AccountingRecord{}
	for _, r := range rows {
		if r.User != "" && r.User != "nobody" || r.ID == 999 {
			t.Errorf("shifted or forged: %+v", r)
		}
		if r.Step == "" {
			byID[r.ID] = r
		}
	}
	if j := byID[18]; !j.Ref.Het || j.Ref.Job != 17 || j.Ref.HetOffset != 1 || j.Allocated.GPUs() != 2 ||
		j.Elapsed != 7*time.Second {
		t.Errorf("het %+v", j)
	}
	if j := byID[33]; !j.Ref.Array || j.Ref.Job != 16 || j.Ref.Task != 1 || j.Name != "arr%A_%a" ||
		j.AdminComment != "array 0-4%2" {
		t.Errorf("array task %+v", j)
	}
	if j := byID[12]; j.State.Base != slurm.Cancelled || !j.State.HasCancelled || j.State.CancelledBy != 0 {
		t.Errorf("cancelled %+v", j.State)
	}
	if j := byID[34]; len(j.Nodes) != 0 || !j.Start.IsZero() {
		t.Errorf("never ran: %+v", j)
	}
	if j := byID[19]; j.Name != "semi;colon,comma|pipe=eq" || j.Comment != "a|b;c=d e;ep=popen" {
		t.Errorf("separators %+v", j)
	}
	// A newline, and the delimiter, in a name that is not the last column.
	for _, id := range []slurm.JobID{21, 24} {
		if _, ok := byID[id]; ok {
			t.Errorf("job %d was read although its columns are torn", id)
		}
	}
	if len(rejected) == 0 || len(rejected) > 5 {
		t.Errorf("rejected %+v", rejected)
	}
}

func TestRecordedAccountingWithoutFreeTextIsReadWhole(t *testing.T) {
	rows, rejected, err := slurm.ParseAccounting("sacct", sample(t, "sacct-allocations.txt"), "|", time.UTC)
	if err != nil || len(rejected) != 0 || len(rows) < 30 {
		t.Fatalf("%d rows, rejected %v, %v", len(rows), rejected, err)
	}
	if r := rows[2]; r.ID != 4 || r.State.Base != slurm.Cancelled || r.State.CancelledBy != 65534 {
		t.Errorf("%+v", r)
	}
	plain, rejected, err := slurm.ParseAccounting("sacct", sample(t, "sacct-default.txt"), "|", time.UTC)
	if err != nil || len(plain) < 50 || len(rejected) > 6 {
		t.Fatalf("%d rows, rejected %+v, %v", len(plain), rejected, err)
	}
}

func TestRecordedAccountingJSONAgreesWithText(t *testing.T) {
	list, meta, err := parseAccountingJSON("sacct --json", sample(t, "sacct.json"))
	if err != nil || meta.Version.Micro != 8 {
		t.Fatal(err, meta)
	}
	rows, _, err := slurm.ParseAccounting("sacct", sample(t, "sacct-us-delimited.txt"), "\x1f", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	fromJSON := map[string]slurm.AccountingRecord{}
	for _, o := range list {
		fromJSON[o.ID.String()+o.Submit.String()+o.Start.String()] = o
	}
	compared := 0
	for _, r := range rows {
		if r.Step != "" {
			continue
		}
		o, ok := fromJSON[r.ID.String()+r.Submit.String()+r.Start.String()]
		if !ok {
			continue
		}
		compared++
		if o.State.Base != r.State.Base || o.Elapsed != r.Elapsed || o.TimeLimit != r.TimeLimit ||
			o.NodeList != r.NodeList || o.Allocated["mem"] != r.Allocated["mem"] ||
			// 22.05 states return_code 0 whatever the job's was.
			o.Allocated.GPUs() != r.Allocated.GPUs() || o.AdminComment != r.AdminComment ||
			o.Ref.Task != r.Ref.Task || o.Exit.Signal != r.Exit.Signal {
			t.Errorf("job %d:\njson %+v\ntext %+v", r.ID, o, r)
		}
	}
	if compared < 25 {
		t.Errorf("compared %d jobs", compared)
	}
}
