package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
)

// printedList is one of Slurm's lists: how a good record is printed, records that can't be read, and a reader
// that gives the numbers of the records that were read, and how many were passed over.
type printedList struct {
	begin, between, end string
	good                func(id uint32) string
	odd                 []string
	read                func(printed string) (ids []uint32, passedOver int, err error)
}

func printedLists() map[string]printedList {
	node := func(name, rest string) string {
		return "NodeName=" + name + " Arch=x86_64 CoresPerSocket=1 \n   CPUAlloc=0 CPUTot=8 CPULoad=0.1\n   Gres=gpu:4\n" +
			"   State=IDLE ThreadsPerCore=1 Weight=" + rest + "\n   Partitions=gpu \n\n"
	}
	columns := strings.Join(slurm.AccountingColumns, "\x1f")
	row := func(id, end string) string {
		return strings.Join([]string{
			id, id, "anna", "gpu", "COMPLETED", "0:0", "2026-11-26T10:00:00", "2026-11-26T10:00:00",
			"2026-11-26T10:00:00", end, "60", "00:00:00", "10", "n1", "cpu=1", "cpu=1", "0", "a note",
		}, "\x1f") + "\n"
	}
	return map[string]printedList{
		"squeue --json": {
			`{"meta":{},"jobs":[`, ",", `],"errors":[]}`,
			func(id uint32) string {
				return fmt.Sprintf(`{"job_id":%d,"name":"a","nodes":"n[1-2]","job_state":"RUNNING"}`, id)
			},
			[]string{
				`{"job_id":0}`, `{"job_id":-1}`, `{"job_id":99999999999}`, `{"job_id":"x"}`, `{}`, `7`, `null`, `"job"`,
				`[{"job_id":3}]`, `{"job_id":5,"nodes":"n[1-"}`, `{"nodes":"n[1-99999999]","job_id":5}`,
				`{"job_id":5,"tres_req_str":"cpu=x"}`, `{"exit_code":{"signal":7},"job_id":5}`,
				`{"job_id":5,"exit_code":{"signal":[{}]},"name":{"a":["}"]}}`,
				`{"nodes":"n1","gres_detail":["gpu:x:y:z("],"job_id":{"set":true,"number":5}}`,
			},
			func(printed string) (ids []uint32, passedOver int, err error) {
				meta, err := slurm.ScanJobs("squeue", strings.NewReader(printed), func(j *slurm.Job) error {
					ids = append(ids, uint32(j.ID))
					return nil
				})
				return ids, meta.Unread.Records, err
			},
		},
		"scontrol show node": {
			"", "", "",
			func(id uint32) string { return node("n"+strconv.FormatUint(uint64(id), 10), "1") },
			[]string{
				node("n5", "much"), node("-n", "1"), node("", "1"), node("n5", "1 Weight=2"),
				strings.Replace(node("n5", "1"), "gpu:4", "gpu:x:y:z(", 1),
			},
			func(printed string) (ids []uint32, passedOver int, err error) {
				nodes, unread, err := slurm.ParseNodeText("scontrol", []byte(printed), time.UTC)
				for _, n := range nodes {
					id, _ := strconv.ParseUint(n.Name[1:], 10, 32)
					ids = append(ids, uint32(id))
				}
				return ids, unread.Records, err
			},
		},
		"sacct": {
			columns + "\n", "", "",
			func(id uint32) string { return row(strconv.FormatUint(uint64(id), 10), "2026-11-26T10:01:00") },
			[]string{
				row("0", "Unknown"), row("4294967296", "Unknown"), row("x", "Unknown"), row("5", "soon"), "5\x1f5\n",
				"5\x1f5\x1fanna\x1fgpu\n", "slurmdbd: warning\n", row("5", "Unknown\x1f"), row("5", "\x1f\x1f"),
			},
			func(printed string) (ids []uint32, passedOver int, err error) {
				rows, rejected, err := slurm.ParseAccounting("sacct", []byte(printed), "\x1f", time.UTC)
				for i := range rows {
					ids = append(ids, uint32(rows[i].ID))
				}
				return ids, len(rejected), err
			},
		},
		"squeue --array": {
			"CLUSTER: west\n", "", "",
			func(id uint32) string { return fmt.Sprintf("%d_3 RUNNING\n", id) },
			[]string{"0_1 RUNNING\n", "4294967296_1 PENDING\n", "x\n", "5 RUNNING\n", "5_[0-3] PENDING\n", "5_1\n"},
			func(printed string) (ids []uint32, passedOver int, err error) {
				c := slurm.NewClient(slurm.RunnerFunc(func(context.Context, string, ...string) ([]byte, error) {
					return []byte(printed), nil
				}), 0)
				tasks, unread, err := c.ArrayTasks(context.Background(), 1, "a", "west")
				for _, task := range tasks {
					ids = append(ids, uint32(task.Job))
				}
				return ids, unread.Records, err
			},
		},
	}
}

// TestAnOddRecordNeverTakesTheOthersAlong puts records that can't be read anywhere in Slurm's lists.
func TestAnOddRecordNeverTakesTheOthersAlong(t *testing.T) {
	for name, list := range printedLists() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := rapid.SliceOfNDistinct(rapid.Uint32Range(6, 1<<32-3), 1, 8, rapid.ID[uint32]).Draw(t, "ids")
				records := make([]string, 0, len(want))
				for _, id := range want {
					records = append(records, list.good(id))
				}
				odd := rapid.SliceOfN(rapid.SampledFrom(list.odd), 0, 5).Draw(t, "odd")
				for _, record := range odd {
					at := rapid.IntRange(0, len(records)).Draw(t, "at")
					records = slices.Insert(records, at, record)
				}
				printed := list.begin + strings.Join(records, list.between) + list.end
				got, passedOver, err := list.read(printed)
				if err != nil || !slices.Equal(got, want) || passedOver != len(odd) {
					t.Fatalf("%d odd records: read %d, passed over %d, %v, want %d\n%s", len(odd), got, passedOver, err,
						want,
						printed)
				}
			})
		})
	}
}

func TestIDsOfFederatedClustersAre32BitsWide(t *testing.T) {
	const federated = 3<<26 + 17
	for _, id := range []uint32{1, 1 << 26, federated, 1 << 31, 0xfffffffd} {
		text := strconv.FormatUint(uint64(id), 10)
		for form, task := range map[string]int{text: -1, text + "_4": 4, text + "+1": -1, text + "_4.batch": 4} {
			if ref, err := slurm.ParseJobRef(form); err != nil || uint32(ref.Job) != id || ref.Task != task {
				t.Errorf("%s: %+v, %v", form, ref, err)
			}
		}
		e, err := hooks.ParseEnv(hooks.Prolog, []string{
			"SLURM_JOB_ID=" + text, "SLURM_HET_JOB_ID=" + text, "SLURMD_NODENAME=n1",
		})
		event := e.Event(time.Time{})
		if err := errors.Join(err, event.Validate()); err != nil || uint32(e.HetJob) != id || len(e.Warnings) > 0 {
			t.Errorf("Prolog of job %s: %+v, %v", text, e, err)
		}
		jobs, _, err := parseJobs("squeue", []byte(`{"jobs":[{"job_id":`+text+`,"array_job_id":{"set":true,"number":`+
			text+`},"array_task_id":1,"het_job_id":`+text+`}]}`))
		if err != nil || len(jobs) != 1 || uint32(jobs[0].ID) != id || jobs[0].ArrayJob != jobs[0].ID ||
			jobs[0].HetJob != jobs[0].ID {
			t.Errorf("squeue --json: %+v, %v", jobs, err)
		}
	}
	// Slurm takes these for no job and for all jobs, and is never asked about them; in a log they may stand.
	for _, text := range []string{"4294967294", "4294967295"} {
		id, err := slurm.ParseJobID(text)
		if err != nil {
			t.Error(err)
		}
		c := slurm.NewClient(slurm.RunnerFunc(func(_ context.Context, name string, _ ...string) ([]byte, error) {
			t.Errorf("%s is asked about job %s", name, text)
			return nil, nil
		}), 0)
		if _, err := c.Job(t.Context(), id); !errors.Is(err, slurm.ErrInvalid) {
			t.Error(err)
		}
		jobs, _, err := parseJobs("squeue", []byte(`{"jobs":[{"job_id":7,"array_job_id":`+text+`,"het_job_id":`+text+`}]}`))
		if err != nil || len(jobs) != 1 || jobs[0].ArrayJob != 0 || jobs[0].HetJob != 0 {
			t.Errorf("%+v, %v", jobs, err)
		}
	}
}
