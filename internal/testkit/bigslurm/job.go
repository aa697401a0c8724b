package bigslurm

import (
	"fmt"
	"strconv"
)

// job is a job as Slurm would have it.
type job struct {
	id, array, gpus                int
	tasks                          string // of an array that waits
	name, user, account, partition string
	state, reason, node, comment   string
	uid, priority, limit           int
	submit, start, end             int64
	tres, pernode                  string
}

// comments are what users write: mostly nothing.
var comments = []string{
	"", "", "", "", "epplan:deadline=2030-01-01T12:00:00Z", "run 7 of the sweep; epplan:slack=2h", "",
	"a \"quoted\" remark,\nand a second line", "größer, 速い, быстрее", "",
}

// job returns one by its number: of a run that began, or as it was from the beginning.
func (c *Cluster) job(id int, r Run, began bool) job {
	const users, accounts, week = 300, 40, 7 * 24 * 3600
	i := id - 1
	user := i * 7 % users
	j := job{
		id: id, gpus: []int{1, 2, 4, 8}[i%4], name: fmt.Sprintf("train-%03d-%s", i%997, []string{
			"resnet50", "llama-7b", "gromacs (replica)", "namd", "bert large",
		}[i%5]),
		user: fmt.Sprintf("user%03d", user), uid: 1000 + user, account: fmt.Sprintf("project%02d", user%accounts),
		partition: []string{"gpu", "long", "gpu,long"}[user%3],
		state:     "PENDING", reason: []string{"Priority", "Resources", "Dependency"}[i%3],
		comment: comments[i%len(comments)], priority: 1_000_000 - i, limit: 60 * (1 + i%48),
		submit: c.Began - int64(i%week),
	}
	switch {
	case began:
		j.gpus, j.submit, j.start, j.end = r.GPUs, r.Submitted, r.Start, r.End
		j.state, j.reason, j.node = "RUNNING", "None", NodeName(r.Node)
		if r.End > 0 {
			j.state = "COMPLETED"
		} else {
			j.end = r.Start + int64(60*j.limit)
		}
	case i < c.Running():
		j.gpus, j.start, j.state, j.reason, j.node = 2, c.Began-60, "RUNNING", "None", NodeName(i%c.Nodes)
		j.end = j.start + int64(60*j.limit)
	case i%20 == 7: // an array whose tasks all wait
		j.array, j.tasks, j.gpus = id, fmt.Sprintf("%d-%d%%8", i%3, 99+i%400), 1
	}
	j.tres = fmt.Sprintf("cpu=%d,mem=%dG,node=1,billing=%d,gres/gpu=%d", 8*j.gpus, 64*j.gpus, 8*j.gpus, j.gpus)
	j.pernode = "gres/gpu:" + strconv.Itoa(j.gpus)
	if c.Release == Old {
		j.pernode = "gres:gpu:" + strconv.Itoa(j.gpus)
	}
	if j.partition == "gpu,long" && j.node != "" {
		j.partition = "gpu"
	}
	return j
}

// Running returns how many of the jobs with which a cluster begins run, on two GPUs each: those of the
// lowest numbers.
func (c *Cluster) Running() int { return min(c.Jobs/2, c.Nodes*2) }

// Partition returns the partition in which a job that began is.
func Partition(id int) string { return []string{"gpu", "long", "gpu"}[(id-1)*7%300%3] }
