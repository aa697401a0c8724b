package livetest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// slurmdbd is asked by the controller a minute after the job's end.
func TestWhatAJobTookIsInSlurmsAccounting(t *testing.T) {
	l := newLab(t, setup{
		config: enforce + "account_energy = \"gpu\"\n", roles: true, waits: true, args: []string{"--dbd"},
	})
	job := l.locks(map[string]int{"n1": 1, "n2": 1}, 1,
		func() int64 { return l.submit("sleep 2", "-N", "2", "--gres=gpu:1", fixed) })
	const note = "a note of the site"
	l.slurm("scontrol", "update", "jobid="+name(job), "admincomment="+note)
	l.ends(job, "COMPLETED")
	l.recordedBy("n1", 2)
	l.recordedBy("n2", 2)
	want := 0.0
	for _, node := range l.names {
		want += l.once(node, job, "COMPLETED").GPUEnergyJ.Or(0)
	}
	var energy, comment string
	l.within(3*time.Minute, "sacct tells of it", func() bool {
		row := l.slurm("sacct", "-X", "-n", "-P", "-j", name(job), "-o", "consumedenergyraw,admincomment")
		energy, comment, _ = strings.Cut(row, "|")
		_, written, there := strings.Cut(comment, ";epplan-energy-j:")
		if there {
			energy = written
		}
		return there || energy != "0" && energy != ""
	})
	if got, err := strconv.ParseFloat(energy, 64); err != nil || got < want-1 || got > want+1 || want < 10 {
		t.Errorf("%s J in accounting, %v J are recorded (%s)", energy, want, comment)
	}
	if before, _, _ := strings.Cut(comment, ";epplan-energy-j:"); before != note {
		t.Errorf("the site's own text became %q", comment)
	}
	if log := l.read(controller + ".log"); strings.Contains(log, "accounting") {
		t.Errorf("the controller says\n%s", log)
	}
}
