package slurm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/epplan/epplan/live"
	"github.com/epplan/epplan/slurm"
	"pgregory.net/rapid"
)

func TestHostlistsExpandInOrder(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"None assigned":         "",
		"n1":                    "n1",
		"n[1-2,5]x":             "n1x n2x n5x",
		"n[08-10],login":        "n08 n09 n10 login",
		"r[1-2]n[1-2]":          "r1n1 r1n2 r2n1 r2n2",
		"a-b_c.d[3]":            "a-b_c.d3",
		"n[001,3-4],m[1-1],n05": "n001 n3 n4 m1 n05",
	} {
		got, err := slurm.ExpandHostlist(text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestABadHostlistIsAnErrorWithItsColumn(t *testing.T) {
	for _, text := range []string{
		"n[1-2", "n1]", "n[[1]]", "n[2-1]", "n[a]", "n1,,n2", "n 1",
		"n[1-99999999]", "n[0-9999]m[0-9999]", ",", "n[]", "n;rm", "n\n2",
	} {
		got, err := slurm.ExpandHostlist(text)
		if err == nil || !strings.Contains(err.Error(), "column") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestTimeLimitsAreReadInAllOfSlurmsForms(t *testing.T) {
	for text, want := range map[string]live.Limit{
		"2-03:04:05":      live.LimitOf(51*time.Hour + 4*time.Minute + 5*time.Second),
		"1-0":             live.LimitOf(24 * time.Hour),
		"1-2:3":           live.LimitOf(26*time.Hour + 3*time.Minute),
		"01:00:00":        live.LimitOf(time.Hour),
		"1:30":            live.LimitOf(90 * time.Second),
		"60":              live.LimitOf(time.Hour),
		"UNLIMITED":       live.Unlimited(),
		"infinite":        live.Unlimited(),
		"Partition_Limit": {},
		"NOT_SET":         {},
		"0":               {},
		"00:00:00":        {},
		"":                {},
	} {
		if got, err := slurm.ParseLimit(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1:2:3:4", "-1", "1-", "x", "1h", "1-2-3", "999999999999", ":", "1 2"} {
		if got, err := slurm.ParseLimit(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestALimitThatIsWrittenReadsBackAsTheSameMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, 100*24*3600).Draw(t, "seconds")) * time.Second
		got, err := slurm.ParseLimit(slurm.FormatLimit(d))
		if err != nil || got.Seconds() < d.Seconds() || got.Seconds()-d.Seconds() >= 60 {
			t.Fatalf("%s: %+v, %v", d, got, err)
		}
	})
}

func TestTRESCountsAndUnits(t *testing.T) {
	got, err := slurm.ParseTRES("cpu=4,mem=8G,node=1,gres/gpu:h200=2,gres/gpu:a100=1,billing=7")
	if err != nil || got["cpu"] != 4 || got["mem"] != 8<<30 || got.GPUs() != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = slurm.ParseTRES("mem=62.50G,gres/gpu=8,gres/gpu:h200=8"); err != nil ||
		got["mem"] != 62.5*(1<<30) || got.GPUs() != 8 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"cpu", "cpu=x", "=4", "cpu=-1", "cpu=NaN", "mem=1e300"} {
		if got, err := slurm.ParseTRES(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestGresStringsGivePositions(t *testing.T) {
	for text, want := range map[string]slurm.Gres{
		"gpu:tesla:2(IDX:0-1)":  {Name: "gpu", Type: "tesla", Count: 2, Index: []int{0, 1}},
		"shard:2(IDX:0)":        {Name: "shard", Count: 2, Index: []int{0}},
		"gres:gpu:1":            {Name: "gpu", Count: 1},
		"gres/gpu:4":            {Name: "gpu", Count: 4},
		"gres/gpu=4":            {Name: "gpu", Count: 4},
		"gpu":                   {Name: "gpu", Count: 1},
		"gpu:h200":              {Name: "gpu", Type: "h200", Count: 1},
		"gpu:h200:8(S:0-1)":     {Name: "gpu", Type: "h200", Count: 8},
		"shard:h200:0(IDX:N/A)": {Name: "shard", Type: "h200"},
		// Of a node that has come back, on 22.05.
		"shard:(null):0(IDX:N/A)": {Name: "shard"},
		"gpu:(null):2(IDX:0-1)":   {Name: "gpu", Count: 2, Index: []int{0, 1}},
		"gpu:3(IDX:0,2-3)":        {Name: "gpu", Count: 3, Index: []int{0, 2, 3}},
	} {
		got, err := slurm.ParseGres(text)
		if err != nil || len(got) != 1 || got[0].Name != want.Name || got[0].Type != want.Type ||
			got[0].Count != want.Count || !slices.Equal(got[0].Index, want.Index) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	two, err := slurm.ParseGres("gpu:h200:7(IDX:0-1,3-7),shard:h200:1(IDX:2)")
	if err != nil || len(two) != 2 || len(two[0].Index) != 7 || two[1].Name != "shard" {
		t.Errorf("%+v, %v", two, err)
	}
	for _, bad := range []string{
		"gpu:2(IDX:0-1", "gpu:2(IDX:x)", ":2", "gpu:a:b:2", "gpu(IDX:5000)",
		"gpu,,gpu",
	} {
		if got, err := slurm.ParseGres(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestJobIDsInEveryForm(t *testing.T) {
	for text, want := range map[string]slurm.JobRef{
		"12":           {Job: 12, Task: -1},
		"12_4":         {Job: 12, Array: true, Task: 4},
		"12_[0-3%2]":   {Job: 12, Array: true, Task: -1, Tasks: []int{0, 1, 2, 3}, Throttle: 2},
		"12_[0-6:3,9]": {Job: 12, Array: true, Task: -1, Tasks: []int{0, 3, 6, 9}},
		"13+1":         {Job: 13, Task: -1, Het: true, HetOffset: 1},
		"12.batch":     {Job: 12, Task: -1, Step: "batch"},
		"12_4.0":       {Job: 12, Array: true, Task: 4, Step: "0"},
		"17+1.0":       {Job: 17, Task: -1, Het: true, HetOffset: 1, Step: "0"},
	} {
		got, err := slurm.ParseJobRef(text)
		if err != nil || got.Job != want.Job || got.Array != want.Array || got.Task != want.Task ||
			!slices.Equal(got.Tasks, want.Tasks) ||
			got.Throttle != want.Throttle || got.Het != want.Het || got.HetOffset != want.HetOffset ||
			got.Step != want.Step {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{
		"", "0", "-1", "12_", "12_[", "12_[1", "12 ", "12;13", "99999999999",
		"4294967296", "12+", "1.2.3 ", "12.a b", "１２", "12_[0-999999]", "12_[1-...]",
	} {
		if got, err := slurm.ParseJobRef(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestTasksOfAnArrayAreCountedWithoutBeingListed(t *testing.T) {
	for text, want := range map[string]int{
		"0-9%4": 10, "7": 1, "2-4,9%1": 4, "0-9:3": 4, "0-10:10,11": 3, "1-4000000": 4_000_000,
		"0-999999,0-999999": 2_000_000,
		// Cut by Slurm, in a number too.
		"1,3,5,...": 3, "0-9,...%2": 10, "1-2,4-8,37-3...": 7, "1-2,1651-1652,16...%4": 4,
	} {
		if got, ok := slurm.CountArrayTasks(text); got != want || !ok {
			t.Errorf("%q: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, bad := range []string{
		"", "x", "3-1", "0-4294967295", "4294967295", "0-9:0", "0-9%x", "-", "1,,2",
		"...", "1...", "0-4000000,0-4000000,0-4000000", "0-9999999999999999999999",
	} {
		if got, ok := slurm.CountArrayTasks(bad); ok || got != 0 {
			t.Errorf("%q: %d %v", bad, got, ok)
		}
	}
	hostile := strings.Repeat("0-3999999:2,", 1000) + "1"
	if took := testing.AllocsPerRun(10,
		func() { slurm.CountArrayTasks("0-3999999:7%4"); slurm.CountArrayTasks(hostile) }); took > 0 {
		t.Errorf("%v allocations for counting", took)
	}
}

func TestStatesOfJobsAndNodes(t *testing.T) {
	if s := slurm.ParseJobState("CANCELLED by 65534"); s.Base != slurm.Cancelled || s.CancelledBy != 65534 ||
		!s.HasCancelled {
		t.Errorf("%+v", s)
	}
	if s := slurm.ParseJobState("COMPLETED", "COMPLETING"); s.Ended() || !s.Base.Ended() {
		t.Errorf("%+v", s)
	}
	if s := slurm.ParseJobState("CANCELLED+"); s.Base != slurm.Cancelled {
		t.Errorf("%+v", s)
	}
	if s := slurm.ParseJobState(); s.Base != slurm.UnknownJob {
		t.Errorf("%+v", s)
	}
	// A launch that failed is a flag; alone it is how the job ended.
	for _, words := range [][]string{{"FAILED", "LAUNCH_FAILED"}, {"LAUNCH_FAILED", "FAILED"}} {
		if s := slurm.ParseJobState(words...); s.Base != slurm.Failed || !s.Is(slurm.LaunchFailed) || !s.Ended() {
			t.Errorf("%q: %+v", words, s)
		}
	}
	if s := slurm.ParseJobState("PENDING", "LAUNCH_FAILED"); s.Ended() || s.Base != slurm.Pending {
		t.Errorf("%+v", s)
	}
	if s := slurm.ParseJobState("LAUNCH_FAILED"); !s.Ended() || s.Base != slurm.LaunchFailed {
		t.Errorf("%+v", s)
	}
	if s := slurm.ParseJobState("COMPLETING", "LAUNCH_FAILED", "FAILED"); s.Ended() || s.Base != slurm.Failed ||
		!s.Is(slurm.Completing) || !s.Is(slurm.LaunchFailed) {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		"idle~": "POWERED_DOWN", "IDLE+POWERED_DOWN": "POWERED_DOWN",
		"mixed*": "NOT_RESPONDING", "MIXED+DRAIN": "DRAIN", "allocated#": "POWERING_UP",
		"idle^": "REBOOT_ISSUED",
	} {
		if s := slurm.ParseNodeState(text); !s.Is(want) {
			t.Errorf("%q: %+v", text, s)
		}
	}
	if s := slurm.ParseNodeState("IDLE+DRAIN"); s.Usable() {
		t.Errorf("%+v", s)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"slurm-wlm 22.05.8": "22.05.8", "slurm 24.11.0-rc1": "24.11.0",
		"slurm 26.05.1": "26.05.1", "slurm 23.02": "23.02.0",
	} {
		if v, err := slurm.ParseVersion(text); err != nil || v.String() != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	if v, err := slurm.ParseVersion("slurm"); err == nil {
		t.Error(v)
	}
}

func TestTokensKeepWhatOthersWrote(t *testing.T) {
	for comment, want := range map[string]string{
		"":                          "epplan:ab12",
		"site text; a=b":            "site text; a=b;epplan:ab12",
		"epplan:old":                "epplan:ab12",
		"x;epplan:old;y":            "x;y;epplan:ab12",
		"epplan:not valid":          "epplan:not valid;epplan:ab12",
		"see http://h/epplan:z":     "see http://h/epplan:z;epplan:ab12",
		"line1\nJobId=999 epplan:a": "line1\nJobId=999 epplan:a;epplan:ab12",
	} {
		got, err := slurm.MergeToken(comment, "ab12")
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", comment, got, err, want)
		}
		if id, _, ok := slurm.ParseToken(got); !ok || id != "ab12" {
			t.Errorf("%q reads back as %q", got, id)
		}
	}
	for _, bad := range []string{"a b", "a;b", "a\nb", strings.Repeat("x", 65), "a=b", "ä"} {
		if got, err := slurm.MergeToken("", bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func TestATokenGoesAndLeavesTheTextOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.StringMatching(`[a-zA-Z0-9 =,:/.\n"']{0,60}`).Filter(func(s string) bool {
			_, _, ours := slurm.ParseToken(s)
			return !ours
		}).Draw(t, "foreign")
		merged, err := slurm.MergeToken(foreign, "id-1")
		if err != nil {
			t.Fatal(err)
		}
		if back, err := slurm.MergeToken(merged, ""); err != nil || back != foreign {
			t.Fatalf("%q became %q, %v", foreign, back, err)
		}
	})
}

func TestALimitIsAdvisedOnlyWhereItIsWorthTheWord(t *testing.T) {
	day := live.LimitOf(24 * time.Hour)
	a, ok := slurm.AdviseLimit(day, 2*time.Hour, 0.25)
	if !ok || a.Limit != 150*time.Minute || !strings.Contains(a.Text, "--time=0-02:30:00") {
		t.Errorf("%+v %v", a, ok)
	}
	for _, c := range []struct {
		asked live.Limit
		upper time.Duration
	}{
		{day, 12 * time.Hour},
		{live.Limit{}, time.Hour},
		{day, 0},
		{day, -time.Hour},
		{live.LimitOf(time.Minute), time.Second},
	} {
		if a, ok := slurm.AdviseLimit(c.asked, c.upper, 0.25); ok {
			t.Errorf("%+v: %+v", c, a)
		}
	}
	if _, ok := slurm.AdviseLimit(live.Unlimited(), time.Hour, 0); !ok {
		t.Error("an unlimited job gets no advice")
	}
}

func TestAJobOfTheWrongKindSaysWhichFieldAndWhatIsWanted(t *testing.T) {
	for text, want := range map[string]string{
		`{"job_id": 5, "time": "x"}`: "time: got string, want an object",
		`7`:                          "got number for a job, want an object",
		`{"job_id": 5, "tres": {"allocated": {}}}`: "tres.allocated: got object, want a list",
	} {
		_, _, err := parseAccountingJSON("s.json", []byte(`{"jobs": [`+text+`]}`))
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "outcomeJSON") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTextOfSeveralLinesIsShownAsOne(t *testing.T) {
	for text, want := range map[string]string{
		"munge: away\nmunge: again\n": "munge: away / munge: again", "one\n": "one", "a\tb\r": `a\x09b\x0d`, "\n": "",
	} {
		if got := slurm.Printable(text, 100); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
