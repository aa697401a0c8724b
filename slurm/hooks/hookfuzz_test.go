package hooks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

func FuzzHookMessages(f *testing.F) {
	f.Add([]byte(`{"v":1,"kind":"batch","uid":1,"name_hex":"61"}`), "SLURM_JOB_GPUS=0-1")
	f.Add([]byte(`{"v":1,"kind":"prolog","job_id":7,"node":"n1","gpus":[0]}`), "SLURM_NODELIST=n[1-2]")
	f.Fuzz(func(t *testing.T, data []byte, variable string) {
		if s, err := hooks.DecodeSubmission(strings.NewReader(string(data))); err == nil {
			out, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := hooks.DecodeSubmission(strings.NewReader(string(out))); err != nil ||
				again != s {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
		if e, err := hooks.DecodeEvent(strings.NewReader(string(data))); err == nil &&
			e.Validate() != nil {
			t.Errorf("%+v", e)
		}
		e, err := hooks.ParseEnv(hooks.Prolog, []string{"SLURM_JOB_ID=7", "SLURMD_NODENAME=n1", variable})
		if err == nil {
			if ev := e.Event(time.Time{}); ev.Validate() != nil {
				t.Errorf("%q: %+v", variable, ev)
			}
		}
	})
}

// Whatever the environment of a hook says: it is refused, or names a job and a node that can be, and GPUs by
// numbers that can be.
func FuzzHookEnvironment(f *testing.F) {
	const env = "SLURM_JOB_ID=7\nSLURMD_NODENAME=n1\n"
	for _, s := range []string{
		env, env + "SLURM_JOB_GPUS=0,2\nCUDA_VISIBLE_DEVICES=GPU-a,GPU-b\nSLURM_SCRIPT_CONTEXT=prolog_slurmd",
		env + "SLURM_JOB_GPUS=0-99999\nCUDA_VISIBLE_DEVICES=MIG-x\nSLURM_JOB_END_TIME=9e18", "SLURM_JOB_ID=7",
		env + "SLURM_JOB_EXIT_CODE=256\nSLURM_JOB_UID=-1\nSLURM_JOB_PARTITION=\xff\nSLURM_CONF=../x", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := hooks.ParseEnv(hooks.Prolog, strings.Split(s, "\n"))
		if err != nil {
			return
		}
		if e.Job == 0 || slurm.ValidNode(e.Node) != nil {
			t.Fatalf("%+v", e)
		}
		for _, g := range e.GPUs {
			if g < 0 || g >= slurm.MaxGresIndex {
				t.Fatalf("GPU %d: %+v", g, e)
			}
		}
		for _, line := range e.Warnings {
			if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q", line)
			}
		}
	})
}
