package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/setup"
	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/internal/store/record"
	"github.com/epplan/epplan/internal/textfile"
	"github.com/epplan/epplan/internal/trace/joblog"
	"github.com/epplan/epplan/internal/view"
)

func importSacctCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "sacct",
		Usage:     "import the history that sacct prints, into a job table or into epd",
		ArgsUsage: "FILE",
		Description: "FILE, - is standard input, is what sacct --parsable2, --parsable or --json prints, with its header and\n" +
			"columns in any order; it may be compressed by gzip. Steps are folded into their jobs; jobs that run, wait or\n" +
			"never ran are left out, and so are lines that make no sense, which are counted by what is wrong with\n" +
			"them; where they are more than --max-bad, nothing is imported, and the exit status is 1. Importing a\n" +
			"log again adds nothing. Without --out and --socket the log is only checked.\n" +
			"docs/history.md says what to ask sacct for.\n" +
			"Example: epplan import sacct sacct.txt --out imported.csv",
		Flags: append(logFlags(),
			&cli.StringFlag{
				Name: "timezone", Usage: "`ZONE` of the log's times, such as Europe/Berlin",
				DefaultText: "this machine's",
			},
			&cli.StringFlag{
				Name:  "columns",
				Usage: "`NAMES` of the columns of a log without a header, such as jobid,user,state,start,end",
			}),
		Action: func(c *cli.Context) error {
			zone, err := setup.TimeZone(c.String("timezone"))
			if err != nil {
				return err
			}
			o := &joblog.Options{Zone: zone}
			if c.IsSet("columns") {
				o.Columns = strings.Split(c.String("columns"), ",")
				if err := joblog.CheckColumns(o.Columns); err != nil {
					return terminal.Usagef("--columns: %v", err)
				}
			}
			return runImportLog(t, c, "sacct", o, joblog.ReadSacct)
		},
	}
}

func importSWFCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:      "swf",
		Usage:     "import a log in the Standard Workload Format, into a job table or into epd",
		ArgsUsage: "FILE",
		Description: "FILE, - is standard input, is a log as the Parallel Workloads Archive has them; it " +
			"may be compressed by gzip.\n" +
			"Users, groups, programs and queues are its numbers. Lines that make no sense are left out and counted by what\n" +
			"is wrong with them; where they are more than --max-bad, nothing is imported, and the exit status is 1.\n" +
			"Importing a log again adds nothing. Without --out and --socket the log is only checked.\n" +
			"Example: epplan import swf log.swf --out parallel.csv",
		Flags: logFlags(),
		Action: func(c *cli.Context) error {
			return runImportLog(t, c, "swf", &joblog.Options{}, joblog.ReadSWF)
		},
	}
}

func logFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "out", Usage: "CSV `FILE` to write: a job table, as epplan predict --train reads it",
		},
		&cli.StringFlag{
			Name:  "socket",
			Usage: "`PATH` of epd's socket, or HOST:PORT of a controller, to store the log in epd",
		},
		&cli.StringFlag{
			Name: "cluster", Usage: "`NAME` of the jobs' cluster",
			DefaultText: "what the log says, else epd's",
		},
		terminal.BoolFlag("strict", "refuse the log at the first line that makes no sense"),
		&cli.Float64Flag{
			Name:  "max-bad",
			Usage: "refuse the log if more than this `SHARE` of its lines make no sense",
			Value: joblog.MaxBad,
		},
		terminal.BoolFlag("hash-names", "write hashes in place of the names of users, accounts and jobs"),
		&cli.StringFlag{
			Name:        "hash-key",
			Usage:       "`FILE` with the key of the hashes, to have the same ones in several tables",
			DefaultText: "a random key",
		},
		terminal.JSONFlag(), terminal.DryRunFlag(),
	}
}

type logReader func(io.Reader, string, *joblog.Options, joblog.Visit) (*joblog.Tally, error)

type importReport struct {
	File   string `json:"file"`
	Format string `json:"format"`
	*joblog.Tally
	Out     string `json:"out,omitempty"`
	Socket  string `json:"socket,omitempty"`
	Cluster string `json:"cluster,omitempty"` // epd's
	Stored  int64  `json:"stored"`            // jobs that epd has now
	Added   int64  `json:"added"`             // of them, those that it hadn't
	Foreign int64  `json:"other_clusters"`    // of them, those of other clusters than epd's
}

func runImportLog(
	t *terminal.Terminal,
	c *cli.Context,
	format string,
	o *joblog.Options,
	read logReader,
) error {
	if err := terminal.CheckArgs(c, 1, 1, "a file, or - for standard input"); err != nil {
		return err
	}
	o.Strict, o.Cluster = c.Bool("strict"), c.String("cluster")
	in := &logImport{t: t, c: c, name: c.Args().First(), options: o, read: read}
	in.report = importReport{Format: format, Out: c.String("out"), Socket: c.String("socket")}
	switch r := &in.report; {
	case r.Out != "" && r.Socket != "":
		return terminal.Usagef("--out and --socket are both given, want one")
	case r.Out == "-":
		return terminal.Usagef("--out is -, want a file: what was found goes to standard output")
	case r.Out == "" && (c.Bool("hash-names") || c.IsSet("hash-key")):
		return terminal.Usagef("--hash-names is about a table, want --out too")
	case c.IsSet("hash-key") && !c.Bool("hash-names"):
		return terminal.Usagef("--hash-key goes with --hash-names")
	case !(c.Float64("max-bad") >= 0 && c.Float64("max-bad") <= 1):
		return terminal.Usagef("--max-bad %v, want a share from 0 to 1, such as 0.05", c.Float64("max-bad"))
	}
	if err := in.run(); err != nil {
		if _, bad := errors.AsType[*joblog.BadLogError](err); bad {
			in.warnSkipped()
		}
		return err
	}
	if stop, err := terminal.Announce(c, in.steps()...); stop {
		return err
	}
	if c.Bool("json") {
		return t.PrintJSON(&in.report)
	}
	in.warnSkipped()
	if r := &in.report; format == "swf" && r.Out != "" {
		t.Notef("the format knows no GPUs: for epplan replay fill in column gpus of %s", terminal.Printable(r.Out))
	}
	return t.PrintText(in.report.text())
}

// warnSkipped names the lines that were left out, by what is wrong with them.
func (in *logImport) warnSkipped() {
	for _, k := range in.report.Skipped {
		in.t.Message("warning", setup.ProblemText(&k, "left out"))
	}
}

type logImport struct {
	t       *terminal.Terminal
	c       *cli.Context
	name    string
	options *joblog.Options
	read    logReader
	report  importReport
}

// run reads the log to where it goes.
func (in *logImport) run() error {
	switch {
	case terminal.IsDryRun(in.c): // it is read, no more
	case in.report.Out != "":
		return in.writeTable()
	case in.report.Socket != "":
		return in.storeInEpd()
	}
	return in.readLog(func(*record.HistoryJob) error { return nil })
}

func (in *logImport) steps() []string {
	jobs := report.Plural(int(in.report.Jobs), "job")
	switch {
	case in.report.Out != "":
		return []string{"write " + jobs + " to " + in.report.Out}
	case in.report.Socket != "":
		return []string{"store " + jobs + " in epd at " + in.report.Socket}
	}
	return nil
}

func (in *logImport) readLog(visit joblog.Visit) error {
	return in.t.ReadRaw(in.name, func(r io.Reader, name string) (err error) {
		progress, ended := in.progress(name)
		defer ended()
		plain, err := textfile.Decompress(setup.NewProgressReader(in.c.Context, r, progress), name)
		if err != nil {
			return err
		}
		in.report.File = name
		if in.report.Tally, err = in.read(plain, name, in.options, visit); err != nil {
			return err
		}
		if tally := in.report.Tally; tally.Jobs == 0 && tally.SkippedLines() > 0 {
			return fmt.Errorf("%s: no line makes sense; %s", name, setup.ProblemText(&tally.Skipped[0], "left out"))
		}
		return in.report.CheckBad(in.c.Float64("max-bad"))
	})
}

// progress returns a line on a terminal by the bytes of a file.
func (in *logImport) progress(name string) (p *report.Progress, ended func()) {
	info, err := os.Stat(in.name)
	if err != nil || in.name == "-" || !info.Mode().IsRegular() {
		return nil, func() {}
	}
	p = report.NewProgress(in.t.Stderr, in.t.Progress, time.Now, "import "+name, int(info.Size()))
	return p, p.Finish
}

// writeTable writes a job table, as a whole or not at all. What is wrong with the log is
// no error of writing.
func (in *logImport) writeTable() error {
	hash, err := in.hash()
	if err != nil {
		return err
	}
	var unwritten, unread error
	err = in.t.Write(in.report.Out, func(w io.Writer) error {
		table, err := joblog.NewTableWriter(w)
		if err != nil {
			return err
		}
		table.Hash = hash
		unread = in.readLog(func(p *record.HistoryJob) error {
			unwritten = table.Write(p)
			return unwritten
		})
		if unread != nil {
			return unread
		}
		return table.Flush()
	})
	if unread != nil && unwritten == nil {
		return unread
	}
	return err
}

// hash replaces names; nil leaves them in clear.
func (in *logImport) hash() (func(string) string, error) {
	if !in.c.Bool("hash-names") {
		return nil, nil
	}
	const bytes, digits = 32, 10
	key := make([]byte, bytes)
	_, _ = rand.Read(key) // it never fails
	if name := in.c.String("hash-key"); name != "" {
		err := in.t.Read(name, func(r io.Reader, _ string) (err error) {
			key, err = io.ReadAll(r)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read key: %w", err)
		}
		if len(key) < bytes/2 {
			return nil, fmt.Errorf("read key: %s: %d bytes, want %d at least", name, len(key), bytes/2)
		}
	}
	return func(name string) string {
		if name == "" {
			return ""
		}
		h := hmac.New(sha256.New, key)
		_, _ = io.WriteString(h, name) // a hash takes everything
		return hex.EncodeToString(h.Sum(nil))[:digits]
	}, nil
}

// storeInEpd stores the log, batch by batch, each acknowledged when it is on disk.
func (in *logImport) storeInEpd() error {
	// Nothing is stored of a log that turns out to be refused, where it can be read
	// again.
	switch again := in.name != "-" && terminal.FileMode(in.name).IsRegular(); {
	case !again && in.options.Strict:
		return terminal.Usagef("--strict with --socket reads the log twice, want a file")
	case again:
		if err := in.readLog(func(*record.HistoryJob) error { return nil }); err != nil {
			return err
		}
	}
	upload := epdapi.HistoryUpload{Client: clientAt(in.report.Socket, nil), Timeout: askTimeout}
	err := in.readLog(func(p *record.HistoryJob) error { return upload.Add(in.c.Context, p) })
	if err == nil {
		err = upload.Flush(in.c.Context)
	}
	r := &in.report
	r.Cluster, r.Stored, r.Added, r.Foreign = upload.Cluster, upload.Stored, upload.Added, upload.Foreign
	if err == nil {
		return nil
	}
	if in.report.Stored == 0 {
		return withSocketHint(err)
	}
	hint := "import it again: what is stored isn't stored twice"
	if _, bad := errors.AsType[*joblog.BadLogError](err); bad { // of standard input, which is read once
		hint = "standard input is stored as it comes; of a file nothing would have been"
	}
	return terminal.WithHint(
		fmt.Errorf("%s stored, then: %w", report.Plural(int(in.report.Stored), "job was", "jobs were"), err),
		hint,
	)
}

// momentText returns a time of the log, as a day of the log if that doesn't say when it began.
func (r *importReport) momentText(t time.Time) string {
	if !r.FromDayZero {
		return view.DateTime(t)
	}
	const day = 24 * 60 * 60
	return fmt.Sprintf("day %d of the log, %s", t.Unix()/day, t.UTC().Format(time.TimeOnly))
}

func (r *importReport) text() string {
	var b strings.Builder
	jobs := report.Plural(int(r.Jobs), "job")
	if r.Jobs > 0 {
		jobs += fmt.Sprintf(", submitted from %s, ended until %s", r.momentText(r.From), r.momentText(r.Until))
	}
	report.WriteRow(&b, "Read", "%s", jobs)
	if r.Steps > 0 {
		report.WriteRow(&b, "Steps", "%s, folded into their jobs", report.FormatCount(int(r.Steps)))
	}
	for _, left := range terminal.Present(terminal.Count(int(r.NotEnded), "wait or run"),
		terminal.Count(int(r.NeverRan), "never ran"), terminal.Count(int(r.Repeated), "came twice"),
		terminal.Count(int(r.SkippedLines()), "make no sense")) {
		report.WriteRow(&b, "Left out", "%s that %s", report.FormatCount(left.N), left.What)
	}
	for _, k := range r.Noted {
		report.WriteRow(&b, "Noted", "%s: %s, the first at %s", report.FormatCount(int(k.Count)), k.Kind,
			terminal.Printable(k.First[0]))
	}
	switch {
	case r.Out != "":
		report.WriteRow(&b, "Written", "%s", terminal.Printable(r.Out))
	case r.Socket != "":
		report.WriteRow(&b, "Stored", "%s in epd of cluster %s, %s of them new",
			report.FormatCount(int(r.Stored)), terminal.OrDash(r.Cluster), report.FormatCount(int(r.Added)))
		if r.Foreign > 0 {
			report.WriteRow(
				&b,
				"Noted",
				"%s of them of other clusters, from which epd doesn't learn: --cluster "+
					"names theirs",
				report.FormatCount(int(r.Foreign)),
			)
		}
	default:
		report.WriteRow(&b, "Written", "nothing: --out or --socket say where to")
	}
	return b.String()
}

func importCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:        "import",
		Usage:       "import logs of jobs",
		Description: "Example: epplan import sacct sacct.txt --out imported.csv",
		Subcommands: []*cli.Command{importSacctCommand(t), importSWFCommand(t)},
	}
}
