package slurm_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/epplan/epplan/slurm"
)

// withoutQueue is a Slurm of which one job may be asked, and never the queue where
// its release prints all of it.
type withoutQueue struct{ slurm.ExecRunner }

func (w withoutQueue) Stream(
	ctx context.Context, read func(io.Reader) error, name string, args ...string,
) error {
	out, err := w.Run(ctx, "scontrol", "--version")
	if err != nil {
		return err
	}
	if v, err := slurm.ParseVersion(string(out)); err != nil || !v.AtLeast(23, 2) {
		return errors.New("the whole queue was asked for")
	}
	return w.ExecRunner.Stream(ctx, read, name, args...)
}

func TestOneJobOfARealSlurmIsAsItsQueueHasIt(t *testing.T) {
	l := startLab(t)
	one := slurm.NewClient(withoutQueue{slurm.ExecRunner{Conf: l.conf, Timeout: patience}}, patience)
	nobody := func(args ...string) slurm.JobID {
		t.Helper()
		list := append([]string{
			"runuser", "-u", "nobody", "--", "sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null",
		}, args...)
		id, err := slurm.ParseJobID(l.command(t, list...))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	forged := "x\n22\x1f22 UserId=root\n   UserId=root(0)\n   JobState=PENDING\n\n\x1f\x1fJobId=21 JobName=\""
	work := []string{"--wrap", "sleep 600"}
	jobs := map[string]slurm.JobID{
		"held": nobody(append([]string{"-H", "-t", "2-03:04:05", "--gres=gpu:2", "--nice=50"},
			work...)...),
		"hostile": nobody(append([]string{"-H", "-J", forged, "--comment", forged, "-A", forged},
			work...)...),
		"running": nobody(append([]string{
			"-w", "n1", "--gres=gpu:1", "--gpu-freq=low", "--prefer=h200", "-C", "lab",
			"--comment=epplan:off", "--deadline=now+2hours", "-t", "60",
		}, work...)...),
		"two nodes": nobody(append([]string{"-N2", "--gpus=3"}, work...)...),
		"suspended": nobody(append([]string{"-w", "n2", "--gres=gpu:1"}, work...)...),
		"array":     nobody(append([]string{"-w", "n1", "--array=1-5%2"}, work...)...),
		"part held": nobody(append([]string{"--begin=now+1day", "--array=0-7:2%3"}, work...)...),
		"completed": nobody("--gres=gpu:1", "--wrap", "true"),
		"failed":    nobody("--gres=gpu:1", "--wrap", "exit 3"),
		"cancelled": nobody("-H", "--wrap", "true"),
	}
	het := nobody("--wrap", "sleep 600", ":", "--gres=gpu:1", "--wrap", "sleep 600")
	jobs["leader"], jobs["component"] = het, het+1
	l.command(t, "scontrol", "hold", jobs["part held"].String()+"_4")
	eventually(t, "all jobs are where they stay", func() bool {
		return settled(l.queue(t), jobs) && jobs["a task"] != 0 && jobs["the held one"] != 0
	})
	l.command(t, "scontrol", "suspend", jobs["suspended"].String())
	l.command(t, "scancel", jobs["cancelled"].String())
	for name, id := range jobs {
		var queued, alone slurm.Job
		eventually(t, name+" is the same both ways", func() bool {
			all := l.queue(t)
			if i := slices.IndexFunc(all, func(j slurm.Job) bool { return j.ID == id }); i >= 0 {
				queued = all[i]
			}
			var err error
			if alone, err = one.Job(t.Context(), id); err != nil {
				t.Fatal(name, err)
			}
			if !reflect.DeepEqual(queued, alone) {
				t.Logf("%s: in the queue\n%+v\nalone\n%+v", name, queued, alone)
			}
			return reflect.DeepEqual(queued, alone)
		})
	}
	if _, err := one.Job(t.Context(), 4_000_000); !errors.Is(err, slurm.ErrNotFound) {
		t.Error(err)
	}
	if j, err := one.Job(t.Context(), jobs["hostile"]); err != nil || j.Name != forged ||
		j.Comment != forged || j.UID == 0 || !j.Held() {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err := one.Job(t.Context(), jobs["suspended"]); err != nil || j.Suspended.IsZero() {
		t.Errorf("%+v, %v", j, err)
	}
}

// settled reports whether all jobs are where they stay, and adds two tasks of arrays to
// those that are looked at.
func settled(list []slurm.Job, jobs map[string]slurm.JobID) bool {
	for i := range list {
		j := &list[i]
		switch {
		case j.ArrayJob == jobs["array"] && j.ArrayTask > 0:
			jobs["a task"] = j.ID
		case j.ArrayJob == jobs["part held"] && j.ArrayTask > 0:
			jobs["the held one"] = j.ID
		}
	}
	return !slices.ContainsFunc(list, func(j slurm.Job) bool {
		return j.State.Base == slurm.Pending && !j.Held() && j.ArrayTasks == "" ||
			j.State.Is(slurm.Completing)
	})
}

// queue returns every job that slurmctld remembers.
func (l *lab) queue(t *testing.T) []slurm.Job {
	t.Helper()
	var all []slurm.Job
	_, err := l.client.EachJob(t.Context(), func(j *slurm.Job) error {
		all = append(all, *j)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
