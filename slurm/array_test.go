package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/slurm"
)

// said returns a Slurm that says the same to everything, and what it was asked.
func said(out string, err error) (*slurm.Client, *[]string) {
	var asked []string
	run := func(_ context.Context, name string, args ...string) ([]byte, error) {
		asked = append([]string{name}, args...)
		return []byte(out), err
	}
	return slurm.NewClient(slurm.RunnerFunc(run), 0), &asked
}

func TestAnArrayIsSubmittedAndItsOwnOptionsCount(t *testing.T) {
	client, asked := said("4712;west\n", nil)
	output := "/100%%/x_%a"
	job, err := client.SubmitArray(t.Context(), "/a/b.sh", "sweep", output, 3, "-p", "cpu")
	if err != nil || job != (slurm.ArrayJob{ID: 4712, Cluster: "west"}) {
		t.Errorf("%+v, %v", job, err)
	}
	want := "sbatch --parsable -p cpu --job-name=sweep --array=0-2 --output=/100%%/x_%a /a/b.sh"
	if got := strings.Join(*asked, " "); got != want {
		t.Errorf("it ran %s\nwant   %s", got, want)
	}
	for _, out := range []string{"", "Submitted batch job 4712", "0", ";"} {
		client, _ := said(out, nil)
		if job, err := client.SubmitArray(t.Context(), "s", "n", "o", 1); err == nil {
			t.Errorf("%q is job %+v", out, job)
		}
	}
	if _, err := client.SubmitArray(t.Context(), "s", "n", "o", 0); !errors.Is(err, slurm.ErrInvalid) {
		t.Errorf("an array without tasks: %v", err)
	}
}

func TestTheTasksOfAnArrayAreRead(t *testing.T) {
	client, asked := said("CLUSTER: west\n12_0 COMPLETED\n12_10 RUNNING\n13_2 PENDING\n", nil)
	tasks, _, err := client.ArrayTasks(t.Context(), 1000, "sweep", "west")
	if err != nil {
		t.Fatal(err)
	}
	want := []slurm.ArrayTask{
		{Job: 12, Task: 0, State: slurm.JobState{Base: slurm.Completed}},
		{Job: 12, Task: 10, State: slurm.JobState{Base: slurm.Running}},
		{Job: 13, Task: 2, State: slurm.JobState{Base: slurm.Pending}},
	}
	if !slices.EqualFunc(tasks, want, func(a, b slurm.ArrayTask) bool {
		return a.Job == b.Job && a.Task == b.Task && a.State.Base == b.State.Base
	}) {
		t.Errorf("%+v", tasks)
	}
	if !slices.Contains(*asked, "--clusters=west") || !slices.Contains(*asked, "--user=1000") {
		t.Errorf("it asked %q", *asked)
	}
	for _, out := range []string{"12_[0-4] PENDING", "12 RUNNING", "12_1", "x_1 RUNNING"} {
		client, _ := said(out+"\n", nil)
		if _, unread, err := client.ArrayTasks(t.Context(), 0, "sweep", ""); err != nil || unread.Records != 1 {
			t.Errorf("%q was read", out)
		}
	}
}

func TestAnArrayThatHasEndedIsCancelledAlready(t *testing.T) {
	for stderr, ok := range map[string]bool{
		"scancel: error: Kill job error on job id 12: Invalid job id specified":                 true,
		"scancel: error: Kill job error on job id 12: Job/step already completing or completed": true,
		"scancel: error: Kill job error on job id 12: Access/permission denied":                 false,
	} {
		client, _ := said("", &slurm.CommandError{Name: "scancel", Status: 1, Stderr: stderr})
		if err := client.Cancel(t.Context(), slurm.ArrayJob{ID: 12}); (err == nil) != ok {
			t.Errorf("%s: %v", stderr, err)
		}
	}
}

func TestTheLargestArrayIsWhatSlurmSays(t *testing.T) {
	client, _ := said("MaxArraySize            = 1001\nMaxJobCount             = 10000\n", nil)
	if most, err := client.MaxArrayTasks(t.Context()); err != nil || most != 1001 {
		t.Errorf("%d, %v", most, err)
	}
	client, _ = said("SlurmUser = slurm\n", nil)
	if most, err := client.MaxArrayTasks(t.Context()); err == nil {
		t.Errorf("%d tasks, though Slurm didn't say", most)
	}
}

func TestSbatchAloneHasTheCallersEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("OF_THE_CALLER", "yes")
	for _, name := range []string{"sbatch", "scancel"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho \"$OF_THE_CALLER.$SLURM_CONF\"\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := slurm.ExecRunner{Dir: dir, Conf: "/etc/x.conf"}
	for name, want := range map[string]string{"sbatch": "yes./etc/x.conf\n", "scancel": "./etc/x.conf\n"} {
		if out, err := run.Run(t.Context(), name); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}
