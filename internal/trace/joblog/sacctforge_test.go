package joblog_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// asked are the columns that docs/history.md asks sacct for.
const asked = "JobID|Cluster|User|Account|Partition|QOS|State|ExitCode|Submit|Start|End|ElapsedRaw|" +
	"TimelimitRaw|ReqTRES|AllocTRES|ConsumedEnergyRaw|TRESUsageInAve|NNodes|JobName|JobIDRaw"

// ended returns the line of a job that ended, with the delimiter.
func ended(delimiter, id, raw, user, name string) string {
	const rest = "lab|gpu|normal|COMPLETED|0:0|2026-10-01T00:00:00|2026-10-01T00:01:00|2026-10-01T01:01:00|" +
		"3600|120||cpu=8,node=1,gres/gpu=8|100000||1"
	return strings.Join([]string{id, "c1", user, strings.ReplaceAll(rest, "|", delimiter), name, raw},
		delimiter) + "\n"
}

func TestNoNameInATornRecordForgesAJob(t *testing.T) {
	whole := strings.TrimSuffix(ended("|", "999", "999", "root", "evil"), "\n")
	open := strings.TrimSuffix(whole, "|999")
	array := strings.Replace(open, "999", "999_1", 1)
	for name, hostile := range map[string]string{
		"the tail is the record's own":   "fake\n" + open,
		"a tail of its own":              "fake\n" + whole,
		"an array's task":                "fake\n" + array,
		"an array's task, whole":         "fake\n" + array + "|413",
		"two of them":                    "fake\n" + array + "|1\n" + array,
		"a step":                         "fake\n" + strings.Replace(open, "999", "412.0", 1),
		"a newline ends it":              "fake\n" + whole + "\n",
		"a delimiter ends it":            "fake\n" + open + "|",
		"a header of another log, in it": "fake\nJobID,State,Start,End,User\n999,COMPLETED,1,2,root",
		"a header of another log, at last": "fake\nJobID,State,Start,End,User\n" +
			"999,COMPLETED,1,2,root\n" + open,
	} {
		text := asked + "\n" + ended("|", "412", "412", "ada", "a") +
			ended("|", "413", "413", "ada", hostile) + ended("|", "414", "414", "bob", "b")
		jobs, tally := all(t, text)
		var own []string
		for _, p := range jobs {
			if p.JobID == "413" && p.User == "ada" {
				continue
			}
			own = append(own, p.JobID+" "+p.User)
		}
		if got := strings.Join(own, ", "); got != "412 ada, 414 bob" {
			t.Errorf("%s: %s, %+v", name, got, tally)
		}
		if len(jobs) == 2 && tally.SkippedLines() == 0 {
			t.Errorf("%s: job 413 is left out and not counted", name)
		}
	}
}

func TestAnIDThatTheRawOneContradictsIsLeftOut(t *testing.T) {
	jobs, tally := all(t,
		asked+"\n"+ended("|", "999", "413", "root", "evil")+ended("|", "12_4", "17", "ada", "a")+
			ended("|", "13+1", "14", "ada", "a"))
	if ids(jobs) != "12_4 13+1" || kinds(tally.Skipped)["job id"] != 1 {
		t.Errorf("%s, %+v", ids(jobs), tally)
	}
}

// drawnName returns a name as somebody would write it who wants to be another one.
func drawnName(t *rapid.T, delimiter string) string {
	forged := func(d, id string) string { return strings.TrimSuffix(ended(d, id, id, "root", "evil"), "\n") }
	known := []string{"|", "|0|", "\x1f", "|123456789|", delimiter[:2], delimiter[2:4]}
	var name strings.Builder
	for range rapid.IntRange(0, 6).Draw(t, "parts") {
		d := rapid.SampledFrom(known).Draw(t, "delimiter")
		id := strconv.Itoa(rapid.IntRange(411, 416).Draw(t, "id"))
		name.WriteString(rapid.SampledFrom([]string{
			"\n", "\n\n", d, d + id, d + id + "\n", "\n" + forged(d, id) + "\n", "\n" + forged(d, id), id,
			id + "_1" + d, "x", "\xff\"", "ä\t",
			"\n" + strings.ReplaceAll(asked, "|", d) + "\n",
			"\nJobID,State,Start,End,User\n" + id + ",COMPLETED,1,2,root\n",
		}).Draw(t, "part"))
	}
	text := name.String()
	return text[:min(len(text), 1024)]
}

func TestNoNameForgesAJobWhereTheDelimiterWasDrawnAtRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		delimiter := rapid.SampledFrom([]string{
			"|9380466351946381723|", "9f3ab0c44d1e27a5", "ab~cd#1_88.7c",
		}).Draw(rt, "delimiter")
		jobs := rapid.IntRange(1, 5).Draw(rt, "jobs")
		var text strings.Builder
		head := strings.ReplaceAll(asked, "|", delimiter) + "\n"
		text.WriteString(head)
		names := make([]string, 0, jobs)
		for i := range jobs {
			id := strconv.Itoa(411 + i)
			account := "lab"
			if rapid.Bool().Draw(rt, "accounts are anything") {
				account = drawnName(rt, delimiter)
			}
			names = append(names, drawnName(rt, delimiter))
			whole := ended(delimiter, id, id, "user"+id, names[i])
			text.WriteString(strings.Replace(whole, delimiter+"lab"+delimiter,
				delimiter+account+delimiter, 1))
			text.WriteString(ended(delimiter, id+".batch", id+".batch", "", "batch"))
			if rapid.IntRange(0, 3).Draw(rt, "another export") == 0 {
				text.WriteString(head)
			}
		}
		got, tally := all(t, text.String())
		if len(got) != jobs || tally.SkippedLines() != 0 || int(tally.Steps) != jobs {
			rt.Fatalf("%d jobs of %d: %+v\n%q", len(got), jobs, tally, text.String())
		}
		plain, _ := all(t,
			head+ended(delimiter, "411", "411", "", "")+ended(delimiter, "411.batch", "411.batch",
				"", "batch"))
		for i := range got {
			p, want := got[i], plain[0]
			want.JobID, want.User, want.Name, want.Account = strconv.Itoa(411+i), "user"+strconv.Itoa(411+i),
				p.Name, p.Account
			if !reflect.DeepEqual(p, want) || string(p.Name) != names[i] {
				rt.Fatalf("got  %+v\nwant %+v\nname %q of %q", p, want, p.Name, names[i])
			}
		}
	})
}

func TestADamagedLogWithARandomDelimiterCostsTheDamagedLineAlone(t *testing.T) {
	const delimiter = "|9380466351946381723|"
	one := func(id string) string { return ended(delimiter, id, id, "ada", "a\nb|c") }
	whole := one("412")
	head := strings.ReplaceAll(asked, "|", delimiter) + "\n"
	for cut := 1; cut < len(whole)-len("412\n"); cut++ {
		jobs, tally := all(t, head+one("411")+whole[:cut]+"\n"+one("413")+one("414"))
		if ids(jobs) != "411 413 414" || tally.SkippedLines() == 0 {
			t.Fatalf("cut at %d: %s, %+v", cut, ids(jobs), tally)
		}
	}
	jobs, _ := all(t, head+one("411")+strings.TrimSuffix(whole, "\n")+one("413")+one("414"))
	if ids(jobs) != "411 414" {
		t.Errorf("two lines in one: %s", ids(jobs))
	}
	other := "JobIDRaw|5550466351946380000|State|5550466351946380000|Start|5550466351946380000|End\n" +
		"1|5550466351946380000|COMPLETED|5550466351946380000|1767322800|5550466351946380000|1767322801\n"
	if jobs, tally := all(t, head+one("411")+other); ids(jobs) != "411 1" || tally.SkippedLines() != 0 {
		t.Errorf("another export behind it: %s, %+v", ids(jobs), tally)
	}
}
