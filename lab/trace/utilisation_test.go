package trace_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/epplan/epplan/lab/trace"
)

func readLog(t *testing.T, text string) *trace.UtilisationLog {
	t.Helper()
	log, err := trace.ReadUtilisation(strings.NewReader(text), "log.csv", 10)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestSamplesOfASlotAreAveragedAndGapsHeld(t *testing.T) {
	log := readLog(t, `time_s,gpu,util_pct,mem_gb
100,a,10,4
105,a,30,5
110,b,50,2
125,b,NaN,2
131,a,40,3
132,b,70,
`)
	if len(log.Series) != 2 || log.Unusable != 1 {
		t.Fatalf("%+v", log)
	}
	a, b := log.Series[0], log.Series[1]
	if !slices.Equal(a.UtilPct, []float64{20, 20, 20, 40}) || a.Held != 2 || a.Absent != 0 || a.MemGB != 5 {
		t.Errorf("a is %+v", a)
	}
	if !slices.Equal(b.UtilPct, []float64{0, 50, 50, 70}) || b.Held != 1 || b.Absent != 1 || b.MemGB != 2 {
		t.Errorf("b is %+v", b)
	}
}

func TestAJobOnSeveralGPUsIsTheirMeanAndItsMemoryTheirMost(t *testing.T) {
	log := readLog(t, `time_s,job,host,gpu,util_pct,mem_gb
0,train,n1,0,80,10
0,train,n1,1,40,12
0,,n1,2,0,0
0,other,n2,0,10,1
`)
	if len(log.Series) != 2 || log.Idle != 1 {
		t.Fatalf("%+v", log)
	}
	if s := log.Series[0]; s.ID != "train" || s.GPUs != 2 || s.UtilPct[0] != 60 || s.MemGB != 12 {
		t.Errorf("train is %+v", s)
	}
}

func TestLogsOfNvidiaSMIAreRead(t *testing.T) {
	log := readLog(t, `timestamp, index, utilization.gpu [%], memory.used [MiB]
2026/11/21 23:59:55.120, 0, 35 %, 2048 MiB
2026/11/21 23:59:55.120, 1, [N/A], 0 MiB
2026/11/22 00:00:05.120, 0, 45 %, 1024 MiB
2026/11/22 00:00:05.120, 1, 5 %, 0 MiB
`)
	if len(log.Series) != 2 || log.Unusable != 1 {
		t.Fatalf("%+v", log)
	}
	if s := log.Series[0]; !slices.Equal(s.UtilPct, []float64{35, 45}) || s.MemGB != 2 {
		t.Errorf("GPU 0 is %+v", s)
	}
	if s := log.Series[1]; !slices.Equal(s.UtilPct, []float64{0, 5}) || s.Absent != 1 {
		t.Errorf("GPU 1 is %+v", s)
	}
}

func TestALogThatWasAppendedToAndCutIsRead(t *testing.T) {
	const head = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"
	const first = "2026/11/21 23:59:55.120, 0, 35 %, 2048 MiB\n"
	text := head + first + head + "2026/11/22 00:00:05.120, 0, ERR!, ERR!\n" +
		"2026/11/22 00:00:15.120, 0, [Unknown Error], [Not Supported]\n" +
		"2026/11/22 00:00:25.120, 0, 45 %, 1024 MiB\n"
	for _, cut := range []string{
		"", "2026/11/22 00:00", "2026/11/22 00:00:35.120, 0",
		"2026/11/22 00:00:35.120, 0, 4", "2026/11/22 00:00:35.120, 0, 4 %, 5 Mi",
	} {
		log := readLog(t, text+cut)
		if len(log.Series) != 1 || !slices.Equal(log.Series[0].UtilPct, []float64{35, 35, 35, 45}) ||
			log.Series[0].MemGB != 2 {
			t.Errorf("%q: %+v", cut, log.Series)
		}
		if log.Unusable != 2 || log.Headers != 1 || log.LastLineCut != (cut != "") {
			t.Errorf("%q: %+v", cut, log)
		}
		slots := 0
		rest, err := trace.StreamUtilisation(strings.NewReader(text+cut), "log", 10, 9,
			func(*trace.UtilisationSlot) error { slots++; return nil })
		if err != nil || slots != 4 || rest.Unusable != 2 || rest.Headers != 1 || rest.LastLineCut != (cut != "") {
			t.Errorf("%q: %d slots, %+v, %v", cut, slots, rest, err)
		}
	}
	if _, err := trace.ReadUtilisation(strings.NewReader(head+first+"2026/11/22 00:00:05.120, 0\n"+first),
		"log", 10); err == nil {
		t.Error("a cut line amid others was taken")
	}
}

func TestBadLogsSayWhereAndWhatWasExpected(t *testing.T) {
	const head = "time_s,gpu,util_pct,mem_gb\n"
	for _, c := range []struct{ text, want string }{
		{"", "log.csv: is empty, want a header"},
		{"gpu,util_pct,mem_gb\n", "log.csv:1: no column of times, want time_s or timestamp"},
		{"time_s,gpu,mem_gb\n", "log.csv:1: no column of utilisation"},
		{"time_s,gpu,util_pct\n", "log.csv:1: no column of memory"},
		{"time_s,util_pct,mem_gb\n", "log.csv:1: no column of jobs or GPUs, want one of job, job_id, gpu,"},
		{head, "log.csv:1: no samples, want lines with a utilisation"},
		{head + "0,a,NaN,1\n", "log.csv:2: no samples, want lines with a utilisation"},
		{head + "0,a,101,1\n", `log.csv:2:5: util_pct is "101", want 0 to 100, or nothing`},
		{head + "0,a,-1,1\n", `log.csv:2:5: util_pct is "-1", want 0 to 100, or nothing`},
		{head + "0,a,Inf,1\n", `log.csv:2:5: util_pct is "Inf", want 0 to 100, or nothing`},
		{head + "soon,a,1,1\n", `log.csv:2:1: time is "soon", want seconds`},
		{
			head + "20,a,1,1\n5,a,1,1\n",
			`log.csv:3:1: time of "a" goes back, want the samples of each GPU sorted by time`,
		},
		{head + "0,a,1\n", "log.csv:2:5: cells in this row: 3, want 4"},
		{head + "0,,1,1\n", "log.csv:2:3: no GPU, want its number or its name"},
		{head + "0,a,1,\n", `log.csv: no sample of "a" says how much memory it takes`},
		{head + "0,a,1,1\n1e11,a,1,1\n", "log.csv:3: 10000000001 slots of 1 series, want fewer"},
	} {
		_, err := trace.ReadUtilisation(strings.NewReader(c.text), "log.csv", 10)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
}

func FuzzLogsOfUtilisationNeverGiveSeriesThatAreNoPercentages(f *testing.F) {
	f.Add("time_s,gpu,util_pct,mem_gb\n0,a,10,4\n31,a,20,4\n")
	f.Add("timestamp,job,gpu,utilization.gpu [%],memory.used [MiB]\n" +
		"2026/11/21 23:59:55.120,j,0,35 %,2048 MiB\n")
	f.Fuzz(func(t *testing.T, text string) {
		log, err := trace.ReadUtilisation(strings.NewReader(text), "log.csv", 10)
		if err != nil {
			return
		}
		for _, s := range log.Series {
			if s.GPUs < 1 || !(s.MemGB >= 0) || len(s.UtilPct) != len(log.Series[0].UtilPct) {
				t.Fatalf("series %+v", s)
			}
			for _, u := range s.UtilPct {
				if !(u >= 0 && u <= 100) {
					t.Fatalf("utilisation %g", u)
				}
			}
		}
	})
}
