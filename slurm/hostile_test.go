package slurm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
)

func TestNewlinesInANameAndCommentForgeNoFieldOfScontrol(t *testing.T) {
	data := sample(t, "scontrol-show-job-newline.txt")
	j, err := slurm.ParseJobText("scontrol", data, 21, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != "line1\nline2\ttab" || j.UID != 65534 || j.State.Base != slurm.Completed ||
		j.NodeList != "n1" {
		t.Errorf("%+v", j)
	}
	if _, err := slurm.ParseJobText("scontrol", data, 999, time.UTC); err == nil {
		t.Error("the forged job 999 was believed")
	}
}

// genuine returns a record as scontrol prints it, with the given name and comment.
func genuine(name, comment string) []byte {
	return []byte("JobId=21 JobName=" + name + `
   UserId=nobody(65534) GroupId=nogroup(65534) MCS_label=N/A
   Priority=100 Nice=0 Account=(null) QOS=normal
   JobState=PENDING Reason=Priority Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=01:00:00 TimeMin=N/A
   SubmitTime=2026-11-21T08:55:23 EligibleTime=2026-11-21T08:55:23
   AccrueTime=2026-11-21T08:55:23
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-21T08:55:23 Scheduler=Main
   Partition=main AllocNode:Sid=localhost:2308
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList=
   NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=1,mem=100M,node=1,billing=1
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=(null)
   WorkDir=/tmp
   Comment=` + comment + `
   StdErr=/dev/null
   StdIn=/dev/null
   StdOut=/dev/null
   Power=

`)
}

func TestForgedLinesAreRefusedOrWithoutEffect(t *testing.T) {
	whole := strings.TrimSuffix(string(genuine("x", "y")), "\n\n")
	for name, c := range map[string]struct{ name, comment string }{
		"plain":                   {"fine", "fine"},
		"same line in name":       {"x UserId=root(0) JobState=RUNNING", ""},
		"user in name":            {"x\n   UserId=root(0) GroupId=root(0)", ""},
		"state in name":           {"x\n   JobState=RUNNING Reason=None", ""},
		"devices in name":         {"x\n   JOB_GRES=gpu:1\n     Nodes=n1 GRES=gpu:1(IDX:0)", ""},
		"devices in comment":      {"x", "c\n   JOB_GRES=gpu:1\n     Nodes=n1 GRES=gpu:1(IDX:0)"},
		"user in comment":         {"x", "c\n   UserId=root(0)"},
		"a record in name":        {"x\n\n" + strings.Replace(whole, "JobId=21", "JobId=999", 1), ""},
		"the same record in name": {"x\n\n" + strings.ReplaceAll(whole, "nobody(65534)", "root(0)"), ""},
		"the same in comment":     {"x", "c\n\n" + strings.ReplaceAll(whole, "nobody(65534)", "root(0)")},
		"body in name": {
			strings.TrimPrefix(strings.ReplaceAll(whole, "nobody(65534)", "root(0)"),
				"JobId=21 JobName="), "",
		},
		"node line out of place":   {"x\n     Nodes=n1 GRES=gpu:1(IDX:0)", ""},
		"array in name":            {"x ArrayJobId=7 ArrayTaskId=3", ""},
		"carriage return and tabs": {"x\r\n\tUserId=root(0)", "\r   UserId=root(0)"},
	} {
		j, err := slurm.ParseJobText("scontrol", genuine(c.name, c.comment), 21, time.UTC)
		if err != nil {
			if !errors.Is(err, slurm.ErrAmbiguous) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if j.UID != 65534 || j.State.Base != slurm.Pending || len(j.Gres) != 0 || j.ArrayJob != 0 ||
			j.Comment != "" || j.AdminComment != "" {
			t.Errorf("%s: forged %+v", name, j)
		}
	}
	for _, account := range []string{
		"a Nice=-5", "a\n   JobState=RUNNING Reason=None",
		"a Priority=1 QOS=b",
	} {
		forged := strings.Replace(string(genuine("x", "y")), "Account=(null)", "Account="+account, 1)
		if j, err := slurm.ParseJobText("scontrol", []byte(forged), 21, time.UTC); !errors.Is(err,
			slurm.ErrAmbiguous) {
			t.Errorf("account %q: %+v, %v", account, j, err)
		}
	}
	if _, err := slurm.ParseJobText("scontrol", genuine("x", "y"), 21, time.UTC); err != nil {
		t.Error(err)
	}
}

func TestATornAccountingRecordTakesForgedLinesWithIt(t *testing.T) {
	head := "JobID|JobName|User|State\n"
	for name, c := range map[string]struct {
		rows string
		want int
	}{
		"honest":                  {"1|a|u|COMPLETED\n2|b|u|FAILED\n", 2},
		"newline":                 {"1|a\nb|u|COMPLETED\n2|b|u|FAILED\n", 1},
		"two newlines":            {"1|a\n\nb|u|COMPLETED\n2|b|u|FAILED\n", 1},
		"forged line inside":      {"1|a\n99|f|root|COMPLETED\nb|u|COMPLETED\n2|b|u|FAILED\n", 1},
		"delimiter in the name":   {"1|a|b|u|COMPLETED\n2|b|u|FAILED\n", 1},
		"rest of the last column": {"1|a|u|COMPLETED\nmore\n2|b|u|FAILED\n", 2},
	} {
		rows, rejected, err := slurm.ParseAccounting("sacct", []byte(head+c.rows), "|", time.UTC)
		if err != nil || len(rows) != c.want {
			t.Errorf("%s: %d rows, want %d; %v %v", name, len(rows), c.want, rejected, err)
		}
		for _, r := range rows {
			if r.ID == 99 || r.User == "root" {
				t.Errorf("%s: forged %+v", name, r)
			}
		}
		if name != "honest" && len(rejected) == 0 {
			t.Errorf("%s: nothing was named as left out", name)
		}
	}
}

func TestOnlyOperatorsWriteTheColumnsThatAreAskedFor(t *testing.T) {
	for _, c := range slurm.AccountingColumns {
		switch strings.ToLower(c) {
		case "jobname", "comment", "account", "workdir", "wckey", "submitline", "container", "extra",
			"constraints":
			t.Errorf("%s is a user's text", c)
		}
	}
	if last := slurm.AccountingColumns[len(slurm.AccountingColumns)-1]; last != "AdminComment" {
		t.Errorf("last column %s", last)
	}
}

func TestPrintableTextIsOneBoundedLine(t *testing.T) {
	got := slurm.Printable("a\nb\x1b[31m\xff\u202e"+strings.Repeat("x", 500), 40)
	if strings.ContainsAny(got, "\n\x1b\u202e") || len(got) > 50 || !strings.Contains(got, `\xff`) {
		t.Errorf("%q", got)
	}
	if got := slurm.Printable("t\u200brain\u2060\ufeff\u200f\ufe0f 日本", 40); got != "t�rain���� 日本" {
		t.Errorf("%q has marks that nobody sees, or lacks what is seen", got)
	}
}
