package bigslurm

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A job as squeue --json prints it, recorded from 22.05 and written after the documented
// schema of 24.11: what differs from job to job is named between two @.
var (
	//go:embed job-22.05.json
	oldJob string
	//go:embed job-24.11.json
	newJob string
)

const oldHead = `{
  "meta": {
    "plugin": {
      "type": "openapi\/v0.0.38",
      "name": "Slurm OpenAPI v0.0.38"
    },
    "Slurm": {
      "version": {
        "major": 22,
        "micro": 8,
        "minor": 5
      },
      "release": "22.05.8"
    }
  },
  "errors": [
  ],
  "jobs": [
`

const newHead = `{
  "jobs": [
`

const newEnd = `
  ],
  "last_backfill": {"set": true, "infinite": false, "number": 1},
  "last_update": {"set": true, "infinite": false, "number": 1},
  "meta": {"slurm": {"version": {"major": "24", "micro": "5", "minor": "11"}, "release": "24.11.5"}},
  "errors": [],
  "warnings": []
}
`

// errNoJob is what Slurm says of a job that it doesn't know.
var errNoJob = errors.New("slurm_load_jobs error: Invalid job id specified")

// Main returns a command of Slurm's, by the name of the program, and returns its exit status.
func Main(args []string, out, complaints io.Writer) int {
	w := bufio.NewWriterSize(out, 1<<18)
	err := command(w, filepath.Dir(args[0]), filepath.Base(args[0]), args[1:])
	if err = errors.Join(err, w.Flush()); err != nil {
		_, _ = fmt.Fprintln(complaints, err)
		return 1
	}
	return 0
}

func command(w *bufio.Writer, dir, name string, args []string) error {
	c, err := open(dir)
	if err != nil {
		return err
	}
	last := args[len(args)-1]
	id := 0
	for _, a := range args {
		if text, ok := strings.CutPrefix(a, "--jobs="); ok {
			if id, err = strconv.Atoi(text); err != nil {
				return errNoJob
			}
		}
	}
	switch {
	case name == "squeue" && slices.Contains(args, "--json"):
		return c.printJSON(w, id)
	case name == "squeue" && id > 0:
		return c.printColumns(w, id, strings.TrimPrefix(last, "--Format="))
	case name != "scontrol":
	case last == "--version":
		_, err = w.WriteString("slurm-wlm " + c.Release + "\n")
		return err
	case last == "ping":
		_, err = w.WriteString("Slurmctld(primary) at head is UP\n")
		return err
	case slices.Contains(args, "config"):
		_, err = fmt.Fprintf(w, "Configuration data as of %s\nBOOT_TIME = %[1]s\nMinJobAge = 600 sec\n"+
			"MaxArraySize = 1001\nSuspendTime = NONE\nSLURM_VERSION = %s\n", text(c.Began), c.Release)
		return err
	case slices.Contains(args, "partition"):
		_, err = w.WriteString("PartitionName=gpu Default=YES\nPartitionName=long Default=NO\n")
		return err
	case slices.Contains(args, "job"):
		return c.printText(w, last)
	case slices.Contains(args, "node"):
		return c.printNodes(w, last)
	case args[0] == "update":
		return nil
	}
	return fmt.Errorf("%s %s: nothing stands in for that", name, strings.Join(args, " "))
}

// find returns a job by its number.
func (c *Cluster) find(id int) (job, error) {
	r, began, err := c.run(id)
	if err == nil && !began && (id < 1 || id > c.Jobs) {
		err = errNoJob
	}
	return c.job(id, r, began), err
}

// printJSON is squeue --json of one job, 0: of all.
func (c *Cluster) printJSON(w *bufio.Writer, id int) error {
	head, end, parts := newHead, newEnd, strings.Split(strings.TrimSuffix(newJob, "\n"), "@")
	if c.Release == Old {
		head, end, parts = oldHead, "\n  ]\n}\n", strings.Split(strings.TrimSuffix(oldJob, "\n"), "@")
		id = 0
	}
	if id > 0 {
		j, err := c.find(id)
		if err != nil {
			return err
		}
		_, _ = w.WriteString(head) // Flush tells
		j.print(w, parts)
		_, err = w.WriteString(end)
		return err
	}
	runs, err := c.runs()
	if err != nil {
		return err
	}
	_, _ = w.WriteString(head)
	last := c.Jobs
	for id := range runs {
		last = max(last, id)
	}
	between := ""
	for id := 1; id <= last; id++ {
		r, began := runs[id]
		if id > c.Jobs && !began {
			continue
		}
		_, _ = w.WriteString(between)
		between = ",\n"
		j := c.job(id, r, began)
		j.print(w, parts)
	}
	_, err = w.WriteString(end)
	return err
}

// print is a job as JSON.
func (j *job) print(w *bufio.Writer, parts []string) {
	for i, part := range parts {
		if i%2 == 0 {
			_, _ = w.WriteString(part)
		} else {
			_, _ = w.Write(j.json(w.AvailableBuffer(), part))
		}
	}
}

// json returns a value as JSON.
func (j *job) json(b []byte, name string) []byte {
	quoted := func(s string) []byte {
		for _, c := range []byte(s) {
			if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
				text, _ := json.Marshal(s) // a text always can be
				return append(b, text...)
			}
		}
		return append(append(append(b, '"'), s...), '"')
	}
	number := func(n int64) []byte { return strconv.AppendInt(b, n, 10) }
	switch name {
	case "id":
		return number(int64(j.id))
	case "array":
		return number(int64(j.array))
	case "task":
		return append(b, "null"...)
	case "isTask":
		return append(b, "false"...)
	case "taskNumber":
		return append(b, '0')
	case "uid":
		return number(int64(j.uid))
	case "priority":
		return number(int64(j.priority))
	case "limit":
		return number(int64(j.limit))
	case "nodecount":
		return append(b, '1')
	case "submit":
		return number(j.submit)
	case "start":
		return number(j.start)
	case "end":
		return number(j.end)
	case "alloc":
		if j.node == "" {
			return append(b, `""`...)
		}
		return quoted(j.tres)
	}
	return quoted(map[string]string{
		"tasks": j.tasks, "name": j.name, "user": j.user, "account": j.account, "partition": j.partition,
		"state": j.state, "reason": j.reason, "nodes": j.node, "comment": j.comment, "tres": j.tres,
		"pernode": j.pernode,
	}[name])
}

// or returns a text, or what scontrol and squeue print where there is none.
func or(s, none string) string {
	if s == "" {
		return none
	}
	return s
}

// printColumns is squeue --Format of one job.
func (c *Cluster) printColumns(w *bufio.Writer, id int, format string) error {
	j, err := c.find(id)
	if err != nil {
		return err
	}
	number := strconv.Itoa
	values := map[string]string{
		"JobID": number(id), "ArrayJobID": number(id), "ArrayTaskID": or(j.tasks, "N/A"), "HetJobID": "N/A",
		"HetJobOffset": "N/A", "UserID": number(j.uid), "UserName": j.user, "State": j.state, "Reason": j.reason,
		"PriorityLong": number(j.priority), "Nice": "0",
		"TimeLimit":  fmt.Sprintf("%d:%02d:00", j.limit/60, j.limit%60),
		"SubmitTime": text(j.submit), "EligibleTime": text(j.submit), "StartTime": text(j.start),
		"EndTime": text(j.end), "Deadline": "N/A", "Requeue": "1", "RestartCnt": "0", "Partition": j.partition,
		"QOS": "normal", "NodeList": j.node, "NumNodes": "1", "tres-alloc": j.tres, "admin_comment": "(null)",
		"Account": j.account, "Feature": "(null)", "Prefer": "(null)", "tres-freq": "N/A",
		"tres-per-node": j.pernode, "tres-per-job": "N/A", "tres-per-socket": "N/A", "tres-per-task": "N/A",
		"Comment": or(j.comment, "(null)"), "Name": j.name,
	}
	for field := range strings.SplitSeq(format, ",") {
		column, delimiter, _ := strings.Cut(field, ":0")
		value, known := values[column]
		if !known {
			return fmt.Errorf("invalid job format specification: %s", column)
		}
		_, _ = w.WriteString(value + delimiter)
	}
	return w.WriteByte('\n')
}

// printText is scontrol show job -d.
func (c *Cluster) printText(w *bufio.Writer, number string) error {
	id, err := strconv.Atoi(number)
	if err != nil {
		return errNoJob
	}
	j, err := c.find(id)
	if err != nil {
		return err
	}
	array := ""
	if j.array > 0 {
		array = fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%s ", j.array, j.tasks)
	}
	on := "   NodeList="
	devices := ""
	if j.node != "" {
		on = fmt.Sprintf("   NodeList=%s\n   BatchHost=%[1]s", j.node)
		devices = fmt.Sprintf("   JOB_GRES=gpu:a100:%d\n"+
			"     Nodes=%s CPU_IDs=0-7 Mem=65536 GRES=gpu:a100:%[1]d(IDX:0-%[3]d)\n", j.gpus, j.node, j.gpus-1)
	}
	_, err = strings.NewReplacer(
		"@id@", number, "@array@", array, "@name@", j.name, "@user@", j.user, "@uid@", strconv.Itoa(j.uid),
		"@priority@", strconv.Itoa(j.priority), "@account@", j.account, "@state@", j.state, "@reason@", j.reason,
		"@limit@", fmt.Sprintf("%d:%02d:00", j.limit/60, j.limit%60), "@submit@", text(j.submit),
		"@start@", text(j.start), "@end@", text(j.end), "@partition@", j.partition, "@on@", on, "@tres@", j.tres,
		"@devices@", devices, "@comment@", j.comment, "@pernode@", j.pernode,
	).WriteString(w, `JobId=@id@ @array@JobName=@name@
   UserId=@user@(@uid@) GroupId=users(100) MCS_label=N/A
   Priority=@priority@ Nice=0 Account=@account@ QOS=normal
   JobState=@state@ Reason=@reason@ Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:01 TimeLimit=@limit@ TimeMin=N/A
   SubmitTime=@submit@ EligibleTime=@submit@
   AccrueTime=@submit@
   StartTime=@start@ EndTime=@end@ Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=@submit@ Scheduler=Main
   Partition=@partition@ AllocNode:Sid=head:2308
   ReqNodeList=(null) ExcNodeList=(null)
@on@
   NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=8 ReqB:S:C:T=0:0:*:*
   TRES=@tres@
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
@devices@   MinCPUsNode=8 MinMemoryCPU=8G MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/@user@/job.sh
   WorkDir=/home/@user@
   Comment=@comment@
   StdErr=/dev/null
   StdIn=/dev/null
   StdOut=/dev/null
   Power=
   TresPerNode=@pernode@

`)
	return err
}

// printNodes is scontrol show node -d, of one node or all.
func (c *Cluster) printNodes(w *bufio.Writer, name string) error {
	found := false
	for i := range c.Nodes {
		if one := NodeName(i); name != "-d" && name != one {
			continue
		}
		found = true
		_, _ = fmt.Fprintf(w, `NodeName=%s Arch=x86_64 CoresPerSocket=64
   CPUAlloc=32 CPUEfctv=128 CPUTot=128 CPULoad=5.95
   AvailableFeatures=a100,nvlink
   ActiveFeatures=a100,nvlink
   Gres=gpu:a100:%[2]d
   GresDrain=N/A
   GresUsed=gpu:a100:4(IDX:0-3)
   NodeAddr=%[3]s NodeHostName=%[1]s Port=6818 Version=%[4]s
   OS=Linux 6.1.0 #1 SMP PREEMPT_DYNAMIC @0
   RealMemory=1024000 AllocMem=700 FreeMem=20341 Sockets=2 Boards=1
   State=MIXED ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,long
   BootTime=%[5]s SlurmdStartTime=%[5]s
   LastBusyTime=%[5]s
   CfgTRES=cpu=128,mem=1000G,billing=128,gres/gpu=%[2]d
   AllocTRES=cpu=32,mem=256G,gres/gpu=4
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s

`, NodeName(i), GPUsPerNode, NodeAddress(i), c.Release, text(c.Began))
	}
	if !found {
		return fmt.Errorf("Node %s not found", name) //nolint:staticcheck // as Slurm says it
	}
	return nil
}

// Standin is [Main] for this process.
func Standin() int { return Main(os.Args, os.Stdout, os.Stderr) }
