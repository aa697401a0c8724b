package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
)

// oldSlurm is a Slurm before 23.02: squeue --json prints the whole queue whatever
// it is asked for, and doesn't end in time.
type oldSlurm struct {
	version string
	took    time.Duration       // by each command
	rows    []map[string]string // what squeue prints of a job by column, of an array its tasks
	text    func(jobs string) string
	forge   func(delimiter string) map[string]string // columns of somebody who knows the delimiter

	mu    sync.Mutex
	asked map[string]int // by command
}

// row returns a running job as squeue 22.05 prints it, with some columns changed.
func row(changed map[string]string) map[string]string {
	out := map[string]string{
		"JobID": "21", "ArrayJobID": "21", "ArrayTaskID": "N/A", "HetJobID": "N/A", "HetJobOffset": "N/A",
		"UserID":   "65534",
		"UserName": "nobody", "State": "RUNNING", "Reason": "None", "PriorityLong": "4294901758", "Nice": "0",
		"TimeLimit":  "10:00",
		"SubmitTime": "2026-11-21T08:55:23", "EligibleTime": "2026-11-21T08:55:23",
		"StartTime": "2026-11-21T08:55:24",
		"EndTime":   "2026-11-21T09:05:24", "Deadline": "N/A", "Requeue": "1", "RestartCnt": "2",
		"Partition": "main", "QOS": "(null)",
		"NodeList": "n[1-2]", "NumNodes": "2", "tres-alloc": "cpu=2,mem=200M,node=2,billing=2",
		"admin_comment": "site;epplan:ab12",
		"Account":       "(null)", "Feature": "h200", "Prefer": "(null)", "tres-freq": "N/A",
		"tres-per-node": "N/A", "tres-per-job": "N/A", "tres-per-socket": "N/A", "tres-per-task": "N/A",
		"Comment": "epplan:off", "Name": "train",
	}
	maps.Copy(out, changed)
	return out
}

func (o *oldSlurm) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	line := name + " " + strings.Join(args, " ")
	kind := name
	for _, word := range []string{"--version", "--json", "--Format", "show job"} {
		if strings.Contains(line, word) {
			kind = word
		}
	}
	o.count(kind)
	if o.took > 0 {
		<-time.After(o.took)
	}
	switch kind {
	case "--version":
		if o.version == "" {
			return nil, &slurm.CommandError{Name: name, Status: 1, Stderr: "no such option"}
		}
		return []byte("slurm-wlm " + o.version + "\n"), nil
	case "--Format":
		return o.columns(args)
	case "show job":
		return []byte(o.text(args[len(args)-1])), nil
	}
	<-ctx.Done() // the whole queue
	return nil, ctx.Err()
}

func (o *oldSlurm) count(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asked == nil {
		o.asked = make(map[string]int)
	}
	o.asked[kind]++
}

// columns prints as squeue does: a field and its delimiter after the other, and a
// newline behind each job.
func (o *oldSlurm) columns(args []string) ([]byte, error) {
	var b strings.Builder
	format := strings.TrimPrefix(args[len(args)-1], "--Format=")
	for _, row := range o.rows {
		for field := range strings.SplitSeq(format, ",") {
			column, delimiter, _ := strings.Cut(field, ":0")
			value, known := row[column]
			if !known {
				return nil, fmt.Errorf("column %q isn't known", column)
			}
			if o.forge != nil {
				if forged, ok := o.forge(delimiter)[column]; ok && row["JobID"] == "21" {
					value = forged
				}
			}
			b.WriteString(value + delimiter)
		}
		b.WriteByte('\n')
	}
	if len(o.rows) == 0 {
		return nil, &slurm.CommandError{
			Name: "squeue", Status: 1, Stderr: "slurm_load_jobs error: Invalid job id specified",
		}
	}
	return []byte(b.String()), nil
}

// runningText returns a job as scontrol 22.05 shows it, with its devices.
func runningText(id string) string {
	text := strings.Replace(string(genuine("train", "")), "JobId=21", "JobId="+id, 1)
	text = strings.Replace(text, "SuspendTime=None", "SuspendTime=2026-11-21T08:57:00", 1)
	return strings.Replace(text, "   MinCPUsNode", "   JOB_GRES=gpu:h200:3\n"+
		"     Nodes=n1 CPU_IDs=1 Mem=100 GRES=gpu:h200:2(IDX:1-2)\n"+
		"     Nodes=n2 CPU_IDs=0 Mem=100 GRES=gpu:h200:1(IDX:0)\n   MinCPUsNode", 1)
}

func TestOneJobOfAnOldSlurmIsKnownWithoutTheWholeQueue(t *testing.T) {
	for _, version := range []string{"22.05.8", ""} {
		synctest.Test(t, func(t *testing.T) {
			o := &oldSlurm{
				version: version, took: time.Millisecond, rows: []map[string]string{row(nil)},
				text: runningText,
			}
			c := slurm.NewClient(o, time.Second)
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					j, err := c.Job(t.Context(), 21)
					if err != nil {
						t.Error(err)
						return
					}
					at := time.Date(2026, 11, 21, 8, 55, 23, 0, time.UTC)
					if j.ID != 21 || j.UID != 65534 || j.User != "nobody" || j.State.Base != slurm.Running ||
						j.TimeLimit != live.LimitOf(10*time.Minute) ||
						!j.Submit.Equal(at) || !j.Start.Equal(at.Add(time.Second)) ||
						!j.Suspended.Equal(at.Add(97*time.Second)) ||
						j.Restarts != 2 || j.Comment != "epplan:off" ||
						j.AdminComment != "site;epplan:ab12" || j.Name != "train" ||
						j.GPUCount() != 3 || j.ArrayJob != 0 || j.HetJob != 0 || j.NodeCount != 2 ||
						j.Features != "h200" || j.Account+j.QOS+j.Prefer+j.GPUFreq != "" {
						t.Errorf("%+v", j)
					}
				})
			}
			all.Wait()
			if _, err := c.Job(t.Context(), 21); err != nil {
				t.Error(err)
			}
			if o.asked["squeue"]+o.asked["--json"] != 0 || o.asked["--Format"] != 2 ||
				o.asked["show job"] != 2 || o.asked["--version"] > 2 {
				t.Errorf("asked %v", o.asked)
			}
		})
	}
}

func TestAJobThatAnOldSlurmDoesNotKnowIsNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oldSlurm{version: "22.05.8", text: func(string) string { return "" }}
		if _, err := slurm.NewClient(o, 0).Job(t.Context(), 21); !errors.Is(err, slurm.ErrNotFound) {
			t.Error(err)
		}
		o.rows = []map[string]string{
			row(map[string]string{"JobID": "22", "ArrayJobID": "21", "ArrayTaskID": "0"}),
		}
		if _, err := slurm.NewClient(o, 0).Job(t.Context(), 21); !errors.Is(err, slurm.ErrNotFound) {
			t.Errorf("of an array there are other tasks only: %v", err)
		}
	})
}

func TestOneTaskOrComponentIsToldFromTheOthers(t *testing.T) {
	o := &oldSlurm{version: "22.05.8", text: runningText, rows: []map[string]string{
		row(map[string]string{"JobID": "22", "ArrayTaskID": "0", "State": "FAILED"}),
		row(map[string]string{"ArrayTaskID": "3", "HetJobID": "20", "HetJobOffset": "1"}),
		row(map[string]string{"JobID": "211", "ArrayTaskID": "4"}),
	}}
	j, err := slurm.NewClient(o, 0).Job(t.Context(), 21)
	if err != nil || j.ID != 21 || j.ArrayJob != 21 || j.ArrayTask != 3 || j.HetJob != 20 ||
		j.HetOffset != 1 || j.State.Base != slurm.Running {
		t.Errorf("%+v, %v", j, err)
	}
	o.rows[1]["ArrayTaskID"] = "2-4%2"
	if j, err = slurm.NewClient(o, 0).Job(t.Context(), 21); err != nil || j.ArrayTasks != "2-4%2" ||
		j.ArrayTask != -1 {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestARequeueBetweenTwoQuestionsMixesNoRuns(t *testing.T) {
	o := &oldSlurm{
		version: "22.05.8", text: runningText,
		rows: []map[string]string{row(map[string]string{"SubmitTime": "2026-11-21T09:00:00"})},
	}
	if j, err := slurm.NewClient(o, 0).Job(t.Context(), 21); err != nil || !j.Suspended.IsZero() ||
		len(j.Gres) != 0 {
		t.Errorf("%+v, %v", j, err)
	}
}

// genuineFields fails unless what nobody may forge is as Slurm has it.
func genuineFields(t *testing.T, name string, j *slurm.Job) {
	t.Helper()
	if j.ID != 21 || j.UID != 65534 || j.User != "nobody" || j.State.Base != slurm.Running ||
		j.TimeLimit != live.LimitOf(10*time.Minute) ||
		j.Partition != "main" || j.AdminComment != "site;epplan:ab12" || j.Restarts != 2 ||
		j.NodeList != "n[1-2]" {
		t.Errorf("%s: forged %+v", name, j)
	}
}

func TestWhatAUserWritesIsNoColumnOfSqueue(t *testing.T) {
	other := "x\n22\x1f22\x1f0\x1fN/A\x1fN/A\x1f0\x1froot\x1fRUNNING\nJobId=21 JobName=y\n" +
		"   UserId=root(0)\n   JobState=PENDING\n   TimeLimit=UNLIMITED\n"
	for _, column := range []string{
		"Name", "Comment", "Account", "Feature", "Prefer", "tres-freq",
		"tres-per-node", "tres-per-job", "tres-per-socket", "tres-per-task",
	} {
		for _, text := range []string{
			other, "\x1f", "\n", "", "\n21", strings.Repeat("\x1f\n", 40),
			"\xff\x00",
		} {
			o := &oldSlurm{
				version: "22.05.8", rows: []map[string]string{row(map[string]string{column: text})},
				text: func(string) string {
					return string(genuine(text, text))
				},
			}
			j, err := slurm.NewClient(o, 0).Job(t.Context(), 21)
			if err != nil {
				t.Errorf("%s %q: %v", column, text, err)
				continue
			}
			genuineFields(t, column, &j)
			if column == "Comment" && j.Comment != slurm.ValidUTF8(text) {
				t.Errorf("comment %q, want %q", j.Comment, text)
			}
		}
	}
}

// The delimiter can't be known in advance, but on the machine where squeue runs
// it can be seen for a moment.
func TestWhoKnowsTheDelimiterForgesNothingThatCounts(t *testing.T) {
	rest := strings.Split("21 N/A 0 root PENDING None 1 0 UNLIMITED Unknown N/A 1 0 main normal n1 1 gpu=4 "+
		"mine acct f p t n c name", " ")
	for name, forge := range map[string]func(delimiter string) map[string]string{
		"a field more": func(d string) map[string]string {
			return map[string]string{"Comment": "x" + d + "y"}
		},
		"a record in a name": func(d string) map[string]string {
			return map[string]string{"Name": "x" + d + "\n" + strings.Join(rest, d)}
		},
		"one of another job": func(d string) map[string]string {
			return map[string]string{
				"Name": "x" + d + "\n99" + strings.TrimPrefix(strings.Join(rest, d), "21"),
			}
		},
		"from a comment on": func(d string) map[string]string {
			return map[string]string{
				"Comment": "x" + d + "y" + d + "\n" + strings.Join(rest[:len(rest)-1], d),
			}
		},
		"from an account on": func(d string) map[string]string {
			return map[string]string{
				"Account": "a" + d + "f" + d + "p" + d + "t" + d + "n" + d + "c" + d +
					"name" + d + "\n" + strings.Join(rest[:26], d),
			}
		},
	} {
		o := &oldSlurm{
			version: "22.05.8", rows: []map[string]string{row(nil)}, text: runningText, forge: forge,
		}
		j, err := slurm.NewClient(o, 0).Job(t.Context(), 21)
		if err == nil {
			genuineFields(t, name, &j)
		} else if !errors.Is(err, slurm.ErrAmbiguous) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAnswerThatIsCutOrHasAnotherShapeIsRefused(t *testing.T) {
	o := &oldSlurm{version: "22.05.8", rows: []map[string]string{row(nil)}, text: runningText}
	cut := 0
	c := slurm.NewClient(
		slurm.RunnerFunc(func(ctx context.Context, name string, args ...string) ([]byte, error) {
			out, err := o.Run(ctx, name, args...)
			if strings.HasPrefix(args[len(args)-1], "--Format") {
				out = out[:min(cut, len(out))]
			}
			return out, err
		}), 0,
	)
	for complete := false; !complete; cut++ {
		j, err := c.Job(t.Context(), 21)
		switch {
		case err == nil:
			genuineFields(t, "whole", &j)
			complete = true
		case errors.Is(err, slurm.ErrNotFound) != (cut == 0) ||
			cut > 0 && !errors.Is(err, slurm.ErrAmbiguous):
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	if cut < 800 {
		t.Errorf("%d bytes are enough", cut)
	}
}
