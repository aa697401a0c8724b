package slurm_test

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/epplan/epplan/slurm"
)

func TestJobsOfAListShareWhatTheyHaveInCommon(t *testing.T) {
	const one = `{"job_id":%,"user_name":"anna","partition":"gpu","name":"train",` +
		`"tres_req_str":"cpu=8,gres/gpu=2","job_state":"PENDING"}`
	list := `{"jobs":[` + strings.Replace(one, "%", "1", 1) + "," + strings.Replace(one, "%", "2", 1) + `]}`
	var jobs []slurm.Job
	if _, err := slurm.ScanJobs("squeue", strings.NewReader(list), func(j *slurm.Job) error {
		jobs = append(jobs, *j)
		return nil
	}); err != nil || len(jobs) != 2 {
		t.Fatal(jobs, err)
	}
	for _, j := range jobs {
		if j.User != "anna" || j.Partition != "gpu" || j.Requested.GPUs() != 2 || len(j.Allocated) != 0 {
			t.Errorf("%+v", j)
		}
	}
	if unsafe.StringData(jobs[0].User) != unsafe.StringData(jobs[1].User) ||
		reflect.ValueOf(jobs[0].Requested).Pointer() != reflect.ValueOf(jobs[1].Requested).Pointer() {
		t.Error("each job has its own texts and resources")
	}
}
