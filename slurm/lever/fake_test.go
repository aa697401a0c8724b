package lever_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/lever"
)

// fakeSlurm is a small stateful Slurm behind a Runner: it prints what the real
// commands print and takes scontrol update with the effects measured on 22.05.
type fakeSlurm struct {
	mu      sync.Mutex
	jobs    map[slurm.JobID]map[string]any
	weights map[string]int
	power   map[string]string
	saving  bool
	refuses string // what it says of a node's new state; "": it is taken
	calls   []string
}

func newFake() *fakeSlurm {
	return &fakeSlurm{
		jobs:    map[slurm.JobID]map[string]any{},
		weights: map[string]int{"n1": 1, "n2": 1}, power: map[string]string{},
	}
}

func (f *fakeSlurm) job(id slurm.JobID, state string, values map[string]any) {
	j := map[string]any{
		"job_id": id, "job_state": state, "priority": 100, "nice": nil, "name": "j", "admin_comment": "",
		"prefer": "",
	}
	maps.Copy(j, values)
	f.jobs[id] = j
}

// updates returns how many changes were asked for.
func (f *fakeSlurm) updates() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if strings.HasPrefix(c, "scontrol update") {
			n++
		}
	}
	return n
}

func (f *fakeSlurm) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	f.mu.Lock()
	f.calls = append(f.calls, name+" "+strings.Join(args, " "))
	defer f.mu.Unlock()
	switch {
	case name == "squeue":
		return f.squeue(args)
	case name == "scontrol" && args[0] == "--version":
		return []byte("slurm 23.11.1"), nil
	case name == "scontrol" && args[0] == "update":
		return nil, f.update(args[1:])
	case name == "scontrol" && strings.HasPrefix(strings.Join(args, " "), "show node -d"):
		return f.nodes(args[3:])
	case name == "scontrol" && args[1] == "config":
		if f.saving {
			return []byte("SuspendProgram = /s\nResumeProgram = /r\n"), nil
		}
		return []byte("SuspendProgram = (null)\nResumeProgram = (null)\n"), nil
	}
	return nil, &slurm.CommandError{Name: name, Status: 1, Stderr: "unknown"}
}

func (f *fakeSlurm) squeue(args []string) ([]byte, error) {
	list := make([]map[string]any, 0, len(f.jobs))
	for id, j := range f.jobs {
		if a := args[len(args)-1]; !strings.HasPrefix(a, "--jobs=") || a == "--jobs="+id.String() {
			list = append(list, j)
		}
	}
	return json.Marshal(map[string]any{"jobs": list})
}

func (f *fakeSlurm) nodes(only []string) ([]byte, error) {
	var b strings.Builder
	for _, n := range []string{"n1", "n2"} {
		if len(only) == 0 || only[0] == n {
			fmt.Fprintf(&b, "NodeName=%s Arch=x86_64\n   AvailableFeatures=h200,lab\n"+
				"   State=IDLE%s Weight=%d\n\n", n, f.power[n], f.weights[n])
		}
	}
	if b.Len() == 0 {
		return nil, &slurm.CommandError{Name: "scontrol", Status: 1, Stderr: "Node x not found"}
	}
	return []byte(b.String()), nil
}

func (f *fakeSlurm) update(args []string) error {
	subject, target, _ := strings.Cut(args[0], "=")
	field, value, _ := strings.Cut(args[1], "=")
	if subject == "nodename" {
		switch field {
		case "Weight":
			w, err := strconv.Atoi(value)
			f.weights[target] = w
			return err
		case "State":
			if f.refuses != "" {
				return &slurm.CommandError{Name: "scontrol", Status: 1, Stderr: f.refuses}
			}
			f.power[target] = map[string]string{"power_down": "+POWERED_DOWN", "power_up": ""}[value]
		}
		return nil
	}
	ref, err := slurm.ParseJobRef(target)
	if err != nil {
		return err
	}
	j := f.jobs[ref.Job]
	switch field {
	case "Nice":
		n, err := strconv.Atoi(value)
		if err != nil {
			return err
		}
		if j["priority"] == 0 {
			j["priority"] = 2 // measured: this releases a hold
		}
		j["nice"] = n
	case "AdminComment":
		j["admin_comment"] = value
	case "Prefer":
		j["prefer"] = value
	case "StartTime":
		if value != "now" {
			return errors.New("invalid start time")
		}
		j["eligible_time"] = time.Now().Unix()
	}
	return nil
}

func levers(tb testing.TB) (*fakeSlurm, *slurm.Client, *lever.Levers) {
	tb.Helper()
	f := newFake()
	c := slurm.NewClient(f, 0)
	return f, c, lever.New(c)
}
