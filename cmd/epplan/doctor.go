package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/epplan/epplan/internal/cli/terminal"
	"github.com/epplan/epplan/internal/doctor"
	"github.com/epplan/epplan/internal/epdapi"
	"github.com/epplan/epplan/internal/report"
	"github.com/epplan/epplan/slurm"
)

func doctorCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "look for what keeps epplan from working on this machine, and say how to mend it",
		Description: "Looks at Slurm, munge, epd, its sockets, GPUs, journal, spool and records: a line " +
			"for each check, and for each\n" +
			"finding why it matters and what to type. Nothing is changed, no clock is tried and no job is " +
			"run. Run it as root,\n" +
			"on the head and on nodes. What can't be found out is so said, and is no error. Exit status 1: something is bad.\n" +
			"Example: epplan doctor --list\n" +
			"Example: epplan doctor --only disk --state . --json",
		Flags: []cli.Flag{
			terminal.JSONFlag(),
			terminal.BoolFlag("list", "list the checks, and run none"),
			&cli.StringFlag{Name: "only", Usage: "`CHECKS` to run, separated by commas", DefaultText: "all"},
			&cli.StringFlag{
				Name: "role", Usage: "what this machine is: `ROLE` is auto, head, node or both",
				Value: string(doctor.Auto),
			},
			&cli.StringFlag{
				Name: "agent-socket", Usage: "`PATH` of the node's epd, or of one that is both",
				EnvVars: []string{"EPPLAN_SOCKET"}, DefaultText: epdapi.AgentSocket,
			},
			&cli.StringFlag{
				Name: "controller-socket", Usage: "`PATH` of the controller's epd",
				DefaultText: epdapi.ControllerSocket,
			},
			&cli.StringFlag{
				Name: "submit-socket", Usage: "`PATH` at which job_submit is answered",
				EnvVars:     []string{"EPPLAN_SUBMIT_SOCKET"},
				DefaultText: "what epd says, or " + epdapi.PublicSocket,
			},
			&cli.StringFlag{
				Name: "state", Usage: "`DIR` of epd's journal and records", EnvVars: []string{"EPD_STATE"},
				DefaultText: "what epd says, or /var/lib/epplan",
			},
			&cli.StringFlag{
				Name: "config", Usage: "TOML `FILE` of epd",
				DefaultText: "what epd says, or /etc/epplan/config.toml",
			},
			&cli.StringFlag{
				Name: "slurm-conf", Usage: "`PATH` of slurm.conf", EnvVars: []string{"SLURM_CONF"},
				DefaultText: "/etc/slurm/slurm.conf",
			},
			&cli.StringFlag{
				Name: "munge-socket", Usage: "`PATH` of munged's socket",
				EnvVars: []string{"EPPLAN_MUNGE_SOCKET"}, DefaultText: "slurm.conf's",
			},
			&cli.StringFlag{
				Name: "controller", Usage: "`HOST:PORT` of the node's controllers, separated by commas",
				DefaultText: "what epd says",
			},
			&cli.StringFlag{
				Name: "epd", Usage: "`PATH` of epd, which checks its records",
				DefaultText: "epd beside epplan",
			},
			&cli.DurationFlag{Name: "timeout", Usage: "`TIME` that one check may take", Value: doctorTimeout},
		},
		Action: t.Runs(terminal.WithoutArgs(runDoctor)),
	}
}

const doctorTimeout = 15 * time.Second

func runDoctor(t *terminal.Terminal, c *cli.Context) error {
	checks, err := doctorChecks(c.String("only"))
	if err != nil {
		return err
	}
	if c.Bool("list") {
		return t.PrintTable(c, checkTable(checks))
	}
	options, err := doctorOptions(c)
	if err != nil {
		return err
	}
	found := doctor.Examine(c.Context, doctor.ThisMachine(c.String("slurm-conf"), slurmUsers()...),
		options, checks)
	if err := c.Err(); err != nil {
		return err
	}
	if c.Bool("json") {
		err = t.PrintJSON(found)
	} else {
		err = t.PrintText(doctorText(found, t.TextOptions(-1)))
	}
	if err != nil {
		return err
	}
	if found.Count(doctor.Bad) > 0 {
		return &terminal.StatusError{Code: terminal.ExitFailed}
	}
	return nil
}

// doctorChecks returns those that are named, in the order of the table.
func doctorChecks(only string) ([]doctor.Check, error) {
	all := doctor.Checks()
	if only == "" {
		return all, nil
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(c doctor.Check) bool { return c.Name == name }) {
			return nil, &terminal.UsageError{
				Msg:  fmt.Sprintf("--only: there is no check %q", name),
				Hint: "epplan doctor --list lists them",
			}
		}
	}
	return slices.DeleteFunc(all, func(c doctor.Check) bool { return !slices.Contains(wanted, c.Name) }), nil
}

func doctorOptions(c *cli.Context) (doctor.Options, error) {
	role := doctor.Role(c.String("role"))
	if !slices.Contains([]doctor.Role{doctor.Auto, doctor.Head, doctor.Node, doctor.Both}, role) {
		return doctor.Options{}, terminal.Usagef("--role %q, want auto, head, node or both", string(role))
	}
	if c.Duration("timeout") <= 0 {
		return doctor.Options{}, terminal.Usagef("--timeout is %v, want more than 0", c.Duration("timeout"))
	}
	o := doctor.Options{
		Role: role, AgentSocket: c.String("agent-socket"), ControllerSocket: c.String("controller-socket"),
		PublicSocket: c.String("submit-socket"),
		State:        c.String("state"), Config: c.String("config"), SlurmConf: c.String("slurm-conf"),
		MungeSocket: c.String("munge-socket"),
		Controllers: strings.FieldsFunc(c.String("controller"), func(r rune) bool { return r == ',' }),
		Version:     version,
		EPDProgram:  c.String("epd"), Program: "epplan", Timeout: c.Duration("timeout"),
	}
	self, err := os.Executable()
	if o.EPDProgram == "" && err == nil {
		beside := filepath.Join(filepath.Dir(self), "epd")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			o.EPDProgram = beside
		}
	}
	o.Path = self
	if _, missing := exec.LookPath("epplan"); missing != nil && err == nil {
		o.Program = self // what is printed can be typed
	}
	return o, nil
}

var gradeTexts = map[doctor.Grade]string{
	doctor.OK: "ok", doctor.Warn: "warn", doctor.Bad: "bad", doctor.Skipped: "n/a",
	doctor.Unknown: "can't tell",
}

// gradeStyles emphasise what is to be mended.
var gradeStyles = map[doctor.Grade]string{doctor.Warn: report.Yellow, doctor.Bad: report.BoldRed}

// maxFixText is how long a line of a fix may be.
const maxFixText = 600

// doctorText returns a report for people: a line for each finding, and below those
// that are none of the best why they matter and how they are mended.
func doctorText(r *doctor.Report, opts *report.TextOptions) string {
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		grade := fmt.Sprintf("%-10s", gradeTexts[f.Grade])
		if style := gradeStyles[f.Grade]; style != "" {
			grade = opts.Paint(style, grade)
		}
		fmt.Fprintf(&b, "%s %-15s %s\n", grade, f.Check, f.What)
		if f.Why != "" {
			fmt.Fprintf(&b, "%26s why: %s\n", "", f.Why)
		}
		if f.Fix != nil {
			fmt.Fprintf(&b, "%26s fix: %s\n", "", slurm.Printable(f.Fix.String(), maxFixText))
		}
	}
	fmt.Fprintf(&b, "%d ok, %s, %d bad, %d can't be told, %d not applicable on this machine (%s)\n",
		r.Count(doctor.OK),
		report.Plural(r.Count(doctor.Warn), "warning"), r.Count(doctor.Bad), r.Count(doctor.Unknown),
		r.Count(doctor.Skipped), r.Role)
	return b.String()
}

func checkTable(checks []doctor.Check) *report.Table {
	return report.TableOf(checks, func(row *report.Row, c *doctor.Check) {
		row.Add(report.Column{Key: "check", Head: "check", Left: true}, report.Text(c.Name))
		row.Add(report.Column{Key: "on", Head: "on", Left: true}, report.Text(string(c.On)))
		row.Add(report.Column{Key: "what", Head: "looks at", Left: true}, report.Text(c.What))
	})
}
