package bigslurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// GPUsPerNode is how many GPUs each node has.
const GPUsPerNode = 8

// The releases whose commands there are.
const (
	Old = "22.05.8" // squeue --json prints the whole queue, whatever it is asked for
	New = "24.11.5"
)

// Cluster is a Slurm whose commands are links in a folder.
type Cluster struct {
	Dir     string `json:"-"`
	Release string `json:"release"`
	Jobs    int    `json:"jobs"` // with which it begins: 1 to so many
	Nodes   int    `json:"nodes"`
	Began   int64  `json:"began"` // Unix seconds
}

// Run is a job's start, and its end once it ended.
type Run struct {
	Node                  int   // its number
	GPUs                  int   // of the job
	Submitted, Start, End int64 // Unix seconds; End 0: it lasts
}

const (
	clusterFile = "cluster.json"
	runsDir     = "runs"
)

// Create makes the folder of a cluster: its commands are links to a program, [Main].
func (c *Cluster) Create(program string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	err = errors.Join(os.MkdirAll(filepath.Join(c.Dir, runsDir), 0o755),
		os.WriteFile(filepath.Join(c.Dir, clusterFile), text, 0o600))
	for _, command := range []string{"squeue", "scontrol", "sacct"} {
		err = errors.Join(err, os.Symlink(program, filepath.Join(c.Dir, command)))
	}
	return err
}

// open returns the cluster of a folder.
func open(dir string) (*Cluster, error) {
	text, err := os.ReadFile(filepath.Join(dir, clusterFile))
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir}
	return c, json.Unmarshal(text, c)
}

// Run has a job begin or end: a new one, or one that waited.
func (c *Cluster) Run(id int, r Run) error {
	path := filepath.Join(c.Dir, runsDir, strconv.Itoa(id))
	text := fmt.Sprintln(r.Node, r.GPUs, r.Submitted, r.Start, r.End)
	return errors.Join(os.WriteFile(path+"~", []byte(text), 0o600), os.Rename(path+"~", path))
}

// run returns what began of a job; false: nothing did.
func (c *Cluster) run(id int) (r Run, began bool, err error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, runsDir, strconv.Itoa(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, false, nil
	}
	if err == nil {
		_, err = fmt.Sscan(string(text), &r.Node, &r.GPUs, &r.Submitted, &r.Start, &r.End)
	}
	return r, err == nil, err
}

// runs returns all jobs that began since the cluster was made, by number.
func (c *Cluster) runs() (map[int]Run, error) {
	entries, err := os.ReadDir(filepath.Join(c.Dir, runsDir))
	if err != nil {
		return nil, err
	}
	all := make(map[int]Run, len(entries))
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue // it is being written
		}
		r, began, err := c.run(id)
		if err != nil {
			return nil, err
		}
		if began {
			all[id] = r
		}
	}
	return all, nil
}

// NodeName returns the name of a node, by its number from 0 on.
func NodeName(i int) string { return fmt.Sprintf("node%04d", i) }

// NodeAddress returns the address of a node: of a network that has no other use here.
func NodeAddress(i int) string { return fmt.Sprintf("10.77.%d.%d", i/200, 1+i%200) }

// Network has the addresses of all nodes.
const Network = "10.77.0.0/16"

// text returns a time as scontrol and squeue print it.
func text(at int64) string {
	if at == 0 {
		return "Unknown"
	}
	return time.Unix(at, 0).UTC().Format("2006-01-02T15:04:05")
}
