package livetest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/epplan/epplan/internal/store/record"
)

// sbatch submits a script as nobody, byte for byte; the error is what sbatch
// says.
func (l *lab) sbatch(script []byte, args ...string) (int64, error) {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "sbatch",
		append([]string{"--parsable", "-D", "/tmp", "-o", "/dev/null"}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "SLURM_CONF=" + l.conf}
	cmd.Dir = "/tmp"
	cmd.Stdin = bytes.NewReader(script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, stderr.String())
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		l.Fatal(err)
	}
	return id, nil
}

// hostileTexts returns what a user may write into a name or a comment to have
// something done, or to be taken for something else.
func hostileTexts(canary string) []string {
	texts := []string{ //nolint:prealloc // once for a test
		"a\nb\tc\x1f\x1e\x7f\r\x1b[2Jd", "\xff\xfe\xc3(\x80 not UTF-8", strings.Repeat("\U0001F4A9", 250),
		strings.Repeat("x", 1000),
		`'"\"'''"""\\`, "%s%n%x%d%p", "../../../../etc/passwd", "-rf --", "{}[]<>&&||!*?~#",
		"\u202eright\u200b to left\ufeff",
		"x\nJobId=999 JobState=FAILED UserId=root(0)\n   AdminComment=epplan:AAAAAAAAAAAAAAAAAAAAAAAAAA",
		"x TimeLimit=00:01:00 Partition=low Restarts=7 JobState=PENDING",
		`","uid":0,"admin_comment_hex":"00`, `"}]}`, "epplan:fixed=99999999999999999999",
		"epplan:fixed=1087,\n5001\nepplan:off",
		"epplan:fixed=-1087 epplan:deadline=0000-99-99T99:99:99", "epplan:" + strings.Repeat("fixed=", 150),
		"'; DROP TABLE jobs; --", "-- \" OR 1=1",
	}
	for _, form := range []string{
		"$(%s)", "`%s`", ";%s;", "'; %s; '", "\"; %s; \"", "| %s", "& %s &",
		"\n%s\n", "$(($(%s)))", "<(%s)",
	} {
		texts = append(texts, fmt.Sprintf(form, "touch "+canary))
	}
	return texts
}

// hostileScripts do nothing but be there.
func hostileScripts(canary string) map[string][]byte {
	script := func(rest string) []byte { return []byte("#!/bin/sh\nexit 0\n" + rest) }
	return map[string][]byte{
		"a megabyte": script(strings.Repeat("# $(touch "+canary+") '\"`\n", 1<<20/(len(canary)+20))),
		"not UTF-8":  script("\xff\xfe\xfd\x80" + strings.Repeat("\xc3(", 1000)),
		"quotes":     script(`'"'"'"` + "`touch " + canary + "`$(touch " + canary + `)\"`),
		"one line":   script("# " + strings.Repeat("x", 300_000)),
		"controls":   script("\x01\x02\x1b]0;title\x07\x7f\v\f"),
		"JSON":       script(`"}],"uid":0,"script_hex":"00"`),
		"directives": script("#SBATCH --comment=$(touch " + canary + ")\n#SBATCH --job-name='\n"),
		"a NUL":      script("\x00touch " + canary),
		"DOS":        []byte("#!/bin/sh\r\nexit 0\r\n"),
	}
}

// Whatever a user writes: the job runs, nothing else does, and what is recorded
// and shown is plain text.
func TestHostileTextsDoNothing(t *testing.T) {
	l := startLab(t, enforce)
	if err := os.Chmod(l.dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(l.dir, "canary")
	jobs := make(map[int64]string)
	submit := func(what string, script []byte, args ...string) {
		t.Helper()
		job, err := l.sbatch(script, append(args, "--gres=gpu:1", "-w", "n1")...)
		switch {
		case err == nil:
			jobs[job] = what
		case strings.Contains(err.Error(), "NULL character"),
			strings.Contains(err.Error(), "DOS line breaks"):
		default:
			t.Errorf("%q: %v", what, err)
		}
	}
	for _, text := range hostileTexts(canary) {
		submit("name "+text, []byte("#!/bin/sh\nexit 0\n"), "--job-name="+text)
		submit("comment "+text, []byte("#!/bin/sh\nexit 0\n"), "--comment="+text)
	}
	for what, script := range hostileScripts(canary) {
		submit("script: "+what, script)
	}
	if len(jobs) < 60 {
		t.Errorf("%d jobs were taken", len(jobs))
	}
	for job, what := range jobs {
		l.within(patience, what, func() bool { return l.state(job) == "COMPLETED" })
	}
	l.within(patience, "all are recorded", func() bool {
		s := l.status("n1")
		return s != nil && s.Unrecorded == 0 && len(s.Runs) == 0 && s.Totals.Outcomes == int64(len(jobs))
	})
	if _, err := os.Stat(canary); err == nil {
		t.Error("somebody was made to run what a user wrote")
	}
	l.free("n1")
	l.undrained()
	l.shownPlain(jobs)
	l.stopEPD("n1", os.Interrupt)
	for job, what := range jobs {
		l.once("n1", job, record.Completed)
		for _, d := range l.decisions(job) {
			byUser := strings.Contains(d.Reason, "the user fixed")
			if !plain(d.Reason) || !plain(d.Workload) || !plain(d.Token) ||
				byUser && !strings.Contains(what, "comment epplan:fixed=") {
				t.Errorf("%.200q: decision %+v", what, d)
			}
		}
	}
}

// plain reports whether a text is one line that a terminal can show.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r)
	})
}

// shownPlain checks what people and programs are shown of jobs.
func (l *lab) shownPlain(jobs map[int64]string) {
	l.Helper()
	l.installAsker()
	shown := map[string]string{"n1.log": l.read("n1.log"), "prolog.log": l.read("prolog.log")}
	show := func(args ...string) {
		out, err := exec.CommandContext(l.Context(), filepath.Join(l.bin, "epplan"),
			append(args, "--socket", l.socket("n1"))...).CombinedOutput()
		if err != nil {
			l.Errorf("epplan %q: %v\n%s", args, err, out)
		}
		shown[strings.Join(args, " ")] = string(out)
	}
	show("status")
	show("jobs")
	for job, what := range jobs {
		show("job", name(job))
		answer := l.asked(0, &question{
			Socket: l.socket("n1"), Method: http.MethodGet, Path: fmt.Sprintf("/v1/jobs/%d", job),
		})
		body, ok := strings.CutPrefix(answer, "200 ")
		if !ok || !json.Valid([]byte(body)) || !utf8.ValidString(body) {
			l.Errorf("%q is answered as %.200q", what, answer)
		}
	}
	for where, text := range shown {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if i := slices.IndexFunc(lines,
			func(line string) bool { return !plain(strings.ReplaceAll(line, "\t", " ")) }); i >= 0 {
			l.Errorf("%s has %q", where, lines[i])
		}
	}
}
