package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/slurm"
)

// forgetCommands take runs out of the records of a running epd, and put them back.
func forgetCommands(stdout, stderr io.Writer) []*cli.Command {
	socket := &cli.StringFlag{
		Name: "socket", Usage: "`PATH` at which epd listens",
		DefaultText: epdapi.ControllerSocket + ", then " + epdapi.AgentSocket,
	}
	return []*cli.Command{
		{
			Name: "forget", Usage: "take runs out of the records, and have models learn anew",
			UsageText: "epd db forget [OPTIONS] [RUN]...",
			Description: "What runs came to goes, from savings and sums, too; their jobs and decisions " +
				"stay. What goes is printed first, as\n" +
				"JSON lines, or written to --out: epd db remember puts it back. epd must run. Of runs " +
				"whose details were pruned\n" +
				"only sums are left, which stay. Options come first.\n" +
				"Example: epd db forget --job 4711 --out forgotten.jsonl",
			HideHelpCommand: true, OnUsageError: refuseUsage,
			Flags: []cli.Flag{
				socket, terminal.DryRunFlag(),
				&cli.Int64Flag{Name: "job", Usage: "runs of the job with this `ID`", DefaultText: "any"},
				&cli.StringFlag{Name: "node", Usage: "runs on the node with this `NAME`", DefaultText: "any"},
				&cli.StringFlag{
					Name: "since",
					Usage: "runs that ended at this `TIME` or later: 2026-01-31, or " +
						"2026-01-31T12:00:00Z",
					DefaultText: "any",
				},
				&cli.StringFlag{
					Name: "until", Usage: "runs that ended before this `TIME`", DefaultText: "any",
				},
				&cli.StringFlag{
					Name: "out", Usage: "new `FILE` to write what goes to", DefaultText: "standard output",
				},
			},
			Action: func(c *cli.Context) error { return forgetRuns(c, stdout, stderr) },
		},
		{
			Name: "remember", Usage: "put back what epd db forget took out",
			UsageText: "epd db remember [OPTIONS] FILE",
			Description: "FILE is what epd db forget wrote, - standard input. What is recorded already changes nothing.\n" +
				"Example: epd db remember forgotten.jsonl",
			HideHelpCommand: true, OnUsageError: refuseUsage, Flags: []cli.Flag{socket, terminal.DryRunFlag()},
			Action: func(c *cli.Context) error { return rememberRuns(c, stdout) },
		},
	}
}

// forgetRuns takes runs out, after it has written what they were.
func forgetRuns(c *cli.Context, stdout, stderr io.Writer) error {
	queries, err := runQueries(c)
	if err != nil {
		return err
	}
	out, closing := io.Discard, func(error) error { return nil }
	if path := c.String("out"); !terminal.IsDryRun(c) {
		if out, closing, err = createForgottenFile(path, stdout); err != nil {
			return err
		}
	}
	found := &foundRuns{jobs: make(map[int64]bool)}
	for i := range queries {
		if err := found.list(c, &queries[i], out); err != nil {
			return errors.Join(err, closing(err))
		}
	}
	if len(found.ids.Runs)+len(found.ids.Conflicts) == 0 {
		err := errors.New("no such run is recorded; those whose details were pruned can't be taken out")
		return errors.Join(err, closing(err))
	}
	if stop, err := terminal.Announce(c, found.forgetSteps()...); stop {
		return err
	}
	if err := closing(nil); err != nil { // nothing goes before it is on disk
		return err
	}
	sum, err := found.forget(c)
	said := stderr
	if c.String("out") != "" {
		said = stdout
	}
	_, printing := fmt.Fprintf(said, "taken out of the records: %s of %s\n%s", countText(sum.Runs, "run"),
		countText(int64(len(found.jobs)), "job"), changedText(sum))
	return errors.Join(err, printing)
}

// runQueries returns what the command line asks for.
func runQueries(c *cli.Context) ([]epdapi.RunQuery, error) {
	q := epdapi.RunQuery{JobID: c.Int64("job"), Node: c.String("node")}
	for name, at := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		text := c.String(name)
		for _, layout := range []string{time.RFC3339, time.DateOnly} {
			if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
				*at = t
			}
		}
		if text != "" && at.IsZero() {
			return nil, usagef("--%s %s, want a time such as 2026-01-31 or 2026-01-31T12:00:00Z", name,
				slurm.Printable(text, 40))
		}
	}
	if c.NArg() == 0 {
		if q.JobID == 0 && q.Node == "" {
			return nil, usagef("epd db forget takes run ids, --job or --node: which runs are meant?")
		}
		return []epdapi.RunQuery{q}, nil
	}
	all := make([]epdapi.RunQuery, c.NArg())
	for i, run := range c.Args().Slice() {
		all[i], all[i].RunID = q, run
	}
	return all, nil
}

// createForgottenFile returns where what goes is written, and what ends it: by an error, which
// leaves no file, or well, on disk.
func createForgottenFile(path string, stdout io.Writer) (io.Writer, func(error) error, error) {
	if path == "" {
		out := bufio.NewWriter(stdout)
		return out, func(error) error { return out.Flush() }, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	out := bufio.NewWriter(f)
	return out, func(err error) error {
		if err != nil {
			return errors.Join(f.Close(), os.Remove(path))
		}
		return errors.Join(out.Flush(), f.Sync(), f.Close())
	}, nil
}

// foundRuns are the runs that are meant.
type foundRuns struct {
	ids   epdapi.RunIDs
	jobs  map[int64]bool
	named []string // the first ones
}

// maxNamed is how many runs a dry run names.
const maxNamed = 20

// list finds the runs of a query, and writes what they are, a line each.
func (f *foundRuns) list(c *cli.Context, q *epdapi.RunQuery, out io.Writer) error {
	for _, q.Conflicts = range []bool{false, true} {
		for q.After = 0; ; {
			page, err := askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.RunPage, error) {
				return epd.Runs(ctx, q)
			})
			if err != nil {
				return err
			}
			for i := range page.Runs {
				if err := report.WriteJSON(out, &page.Runs[i], ""); err != nil {
					return err
				}
				f.add(&page.Runs[i])
			}
			if q.After = page.Next; q.After == 0 {
				break
			}
		}
	}
	return nil
}

func (f *foundRuns) add(k *record.RecordedRun) {
	to, what := &f.ids.Runs, runText(&k.Outcome)
	if k.Conflict {
		to, what = &f.ids.Conflicts, "what came later for "+what
	} else {
		f.jobs[k.Outcome.JobID] = true
	}
	if *to = append(*to, k.ID); len(f.named) < maxNamed {
		f.named = append(f.named, what)
	}
}

// runText names a run.
func runText(o *record.Outcome) string {
	return fmt.Sprintf("run %s of job %d on %s, ended %s", o.RunID, o.JobID, o.Node,
		o.Ended.Local().Format(time.DateTime))
}

// forgetSteps returns what would be done.
func (f *foundRuns) forgetSteps() []string {
	steps := make([]string, 0, len(f.named)+1)
	for _, what := range f.named {
		steps = append(steps, "take out of the records "+what)
	}
	if more := len(f.ids.Runs) + len(f.ids.Conflicts) - len(f.named); more > 0 {
		steps = append(steps, fmt.Sprintf("take out of the records %d more", more))
	}
	return steps
}

// forget has epd take the runs out.
func (f *foundRuns) forget(c *cli.Context) (sum *epdapi.RunsChanged, err error) {
	sum = &epdapi.RunsChanged{}
	models := make(map[record.WorkloadKey]epdapi.RefittedModel)
	var parts []epdapi.RunIDs
	for some := range slices.Chunk(f.ids.Runs, epdapi.MaxRuns) {
		parts = append(parts, epdapi.RunIDs{Runs: some})
	}
	for some := range slices.Chunk(f.ids.Conflicts, epdapi.MaxRuns) {
		parts = append(parts, epdapi.RunIDs{Conflicts: some})
	}
	for i := range parts {
		var done *epdapi.RunsChanged
		done, err = askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.RunsChanged, error) {
			return epd.Forget(ctx, &parts[i])
		})
		if err != nil {
			break
		}
		addChanged(sum, done, models)
	}
	return collectChanged(sum, models), err
}

// addChanged adds what one message came to.
func addChanged(sum, done *epdapi.RunsChanged, models map[record.WorkloadKey]epdapi.RefittedModel) {
	sum.Runs, sum.Conflicts = sum.Runs+done.Runs, sum.Conflicts+done.Conflicts
	for _, m := range done.Models {
		models[m.WorkloadKey] = m // the last one counts
	}
}

func collectChanged(
	sum *epdapi.RunsChanged, models map[record.WorkloadKey]epdapi.RefittedModel,
) *epdapi.RunsChanged {
	for _, key := range slices.SortedFunc(maps.Keys(models), func(a, b record.WorkloadKey) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.GPUModel, b.GPUModel))
	}) {
		sum.Models = append(sum.Models, models[key])
	}
	return sum
}

// changedText says what became of outcomes that lie apart and of models.
func changedText(sum *epdapi.RunsChanged) string {
	var b bytes.Buffer
	if sum.Conflicts > 0 {
		fmt.Fprintf(&b, "and %s that lay apart\n", countText(sum.Conflicts, "outcome"))
	}
	for _, m := range sum.Models {
		fmt.Fprintf(&b, "model of %s on %s: ", slurm.Printable(m.Workload, 80),
			slurm.Printable(m.GPUModel, 80))
		switch {
		case m.Pinned && m.Version > 0:
			fmt.Fprintf(&b, "version %d stays, an administrator chose it\n", m.Version)
		case m.Version > 0:
			fmt.Fprintf(&b, "version %d\n", m.Version)
		default:
			fmt.Fprintf(&b, "none, the workload runs at default clocks: %s\n", slurm.Printable(m.Note, 200))
		}
	}
	return b.String()
}

// countText returns a number with what it counts.
func countText(n int64, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}

// A message has at most so many bytes of runs; a line of a file has at most so many.
const (
	maxSent = 512 << 10
	maxLine = 900 << 10
)

// rememberRuns puts runs back.
func rememberRuns(c *cli.Context, stdout io.Writer) error {
	if c.NArg() != 1 {
		return usagef("epd db remember takes a file, got %d arguments (options come first)", c.NArg())
	}
	name := c.Args().First()
	in := io.Reader(os.Stdin)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // read only
		in = f
	}
	runs, err := readRuns(in, name)
	if err != nil {
		return err
	}
	steps := make([]string, len(runs))
	for i := range runs {
		steps[i] = "put back into the records " + runText(&runs[i].Outcome)
	}
	if stop, err := terminal.Announce(c, steps...); stop {
		return err
	}
	sum, models := &epdapi.RunsChanged{}, make(map[record.WorkloadKey]epdapi.RefittedModel)
	for some := range messageParts(runs) {
		var done *epdapi.RunsChanged
		done, err = askEPD(c, func(ctx context.Context, epd *epdapi.Client) (*epdapi.RunsChanged, error) {
			return epd.Remember(ctx, &epdapi.RunList{Runs: some})
		})
		if err != nil {
			break
		}
		addChanged(sum, done, models)
	}
	_, printing := fmt.Fprintf(stdout, "put back into the records: %s\n%s", countText(sum.Runs, "run"),
		changedText(collectChanged(sum, models)))
	return errors.Join(err, printing)
}

// readRuns reads what epd db forget wrote.
func readRuns(in io.Reader, name string) ([]record.RecordedRun, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var runs []record.RecordedRun
	for n := 1; lines.Scan(); n++ {
		strict := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		strict.DisallowUnknownFields()
		var k record.RecordedRun
		if err := strict.Decode(&k); err != nil {
			return nil, fmt.Errorf("%s:%d: want a run as epd db forget writes it: %w", name, n, err)
		}
		runs = append(runs, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, len(runs)+1, err)
	}
	return runs, nil
}

// messageParts are runs in their order, in parts that a message has room for.
func messageParts(runs []record.RecordedRun) func(func([]record.RecordedRun) bool) {
	return func(yield func([]record.RecordedRun) bool) {
		for len(runs) > 0 {
			n, size := 0, 0
			for n < len(runs) && n < epdapi.MaxRuns {
				text, err := json.Marshal(&runs[n])
				if size += len(text); n > 0 && (err != nil || size > maxSent) {
					break
				}
				n++
			}
			if !yield(runs[:n]) {
				return
			}
			runs = runs[n:]
		}
	}
}
