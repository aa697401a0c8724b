package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/epplan/epplan/queue"
	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/install"
)

// defaultSubmitSocket is where epd answers slurmctld's user.
const defaultSubmitSocket = epdapi.PublicSocket

func installCommand(t *terminal.Terminal) *cli.Command {
	return &cli.Command{
		Name:        "install",
		Usage:       "add epplan to a site's Slurm, and take it out again",
		Description: "Example: epplan install slurm --dry-run --dir site",
		Subcommands: []*cli.Command{{
			Name:  "slurm",
			Usage: "add the hooks to a site's Slurm, or take them out again",
			Description: "Writes epplan.lua, a line in the site's own job_submit.lua, and a further Prolog " +
				"and Epilog; prints what\n" +
				"slurm.conf needs, or puts it there with --edit-conf. Scripts are read by Lua before they are put in place,\n" +
				"for one that doesn't load can end slurmctld. All changes are made or none; what was is kept beside it\n" +
				"(.before-epplan). Run again, it has nothing to do. --undo takes out what was put in, and nothing else;\n" +
				"where epd left changes in Slurm's queue, it names the command that takes them back.\n" +
				"Slurm isn't told: scontrol reconfigure does that.\n" +
				"Example: epplan install slurm --dry-run --dir site",
			Flags: []cli.Flag{
				terminal.DryRunFlag(),
				terminal.BoolFlag("edit-conf", "change slurm.conf, too; each line says what it was"),
				terminal.BoolFlag("undo", "take the changes back"),
				terminal.BoolFlag("configless",
					"have slurmctld send Prolog and Epilog to nodes that fetch slurm.conf (Slurm 23.11)"),
				terminal.BoolFlag("popen",
					"where slurmctld has no lua-socket, start epplan submit for each submission"),
				&cli.StringFlag{
					Name: "job-summary", DefaultText: "none",
					Usage: "end each batch job's output with a line on its clocks, from the controller at `WHERE`: HOST:PORT, " +
						"or its socket on one machine",
				},
				terminal.BoolFlag("no-lua-check", "write scripts that no Lua has read"),
				&cli.StringFlag{Name: "dir", Usage: "`DIR` of slurm.conf", Value: "/etc/slurm"},
				&cli.StringFlag{
					Name: "submit-socket", Usage: "`PATH` at which epd answers job_submit",
					Value: defaultSubmitSocket,
				},
				&cli.StringFlag{
					Name: "socket", Usage: "`PATH` at which epd answers hooks",
					DefaultText: epdapi.AgentSocket,
				},
				&cli.StringFlag{
					Name: "journal", Usage: "`DIR` of epd's journal, for the Epilog when epd doesn't run",
					DefaultText: defaultJournal,
				},
				&cli.StringFlag{
					Name: "program", Usage: "`PATH` of epplan on the nodes", Value: "/usr/bin/epplan",
				},
			},
			Action: t.Runs(terminal.WithoutArgs(runInstallSlurm)),
		}},
	}
}

func runInstallSlurm(t *terminal.Terminal, c *cli.Context) error {
	site, err := readSite(t, c)
	if err != nil {
		return err
	}
	if c.Bool("configless") && !c.Bool("undo") {
		if err := checkRelease(t, c, &site); err != nil {
			return err
		}
	}
	planned := install.PlanInstall
	if c.Bool("undo") {
		planned = install.PlanUndo
	}
	plan, err := planned(site)
	if err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	for _, warning := range plan.Warnings {
		t.Message("warning", warning)
	}
	if c.Bool("undo") {
		warnLeft(t, c, &site)
	}
	if terminal.IsDryRun(c) || len(plan.Steps) == 0 {
		return printSteps(t, "", plan.Steps)
	}
	return installHooks(t, c, &site, &plan)
}

// installHooks makes the changes and says what is left to do.
func installHooks(t *terminal.Terminal, c *cli.Context, site *install.Site, plan *install.Plan) error {
	edit := c.Bool("edit-conf") && !c.Bool("undo")
	if edit && plan.ConfBlocked != "" {
		return terminal.WithHint(
			fmt.Errorf("slurm.conf can't be edited: %s; nothing is changed", plan.ConfBlocked),
			"without --edit-conf the rest is installed, and the lines for slurm.conf are printed",
		)
	}
	files := plan.Files(site.Conf, edit)
	if err := install.WriteSteps(files); err != nil {
		return fmt.Errorf("%w; nothing is changed", err)
	}
	script := filepath.Join(site.Dir, "job_submit.lua")
	changed := func(name string) bool {
		return slices.ContainsFunc(files, func(s install.Step) bool {
			return filepath.Base(s.File) == name
		})
	}
	if changed("epplan.lua") || changed("job_submit.lua") {
		if err := install.TouchScript(script); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Message("warning",
				"slurmctld loads the new script only after job_submit.lua has changed: "+err.Error())
		}
	}
	for i := range files {
		t.Message("note", doneText(&files[i]))
	}
	left := slices.DeleteFunc(slices.Clone(plan.Steps), func(s install.Step) bool {
		return edit || s.Text != "" || s.Remove
	})
	if len(left) > 0 {
		return printSteps(t, "To do by hand, or with --edit-conf; then scontrol reconfigure:\n", left)
	}
	undo := c.Bool("undo")
	if changed("slurm.conf") || !undo && (changed("epplan-prolog") || changed("epplan-epilog")) {
		return t.PrintText(nextStepsText(site, plan, undo))
	}
	return nil
}

// checkRelease returns an error if the site's Slurm can't send hooks to nodes.
func checkRelease(t *terminal.Terminal, c *cli.Context, site *install.Site) error {
	scontrol, err := exec.LookPath("scontrol")
	var release slurm.Version
	if err == nil {
		release, err = slurm.NewClient(slurm.ExecRunner{
			Dir: filepath.Dir(scontrol), Conf: filepath.Join(site.Dir, "slurm.conf"),
		}, luaTimeout).Version(c.Context)
	}
	switch {
	case err != nil:
		t.Message("warning",
			"Slurm sends hooks to nodes from 23.11 on, and can't be asked which it is: "+err.Error())
	case !release.AtLeast(23, 11):
		return terminal.WithHint(
			fmt.Errorf("this Slurm is %s and can't send hooks to nodes, from 23.11 on it can; nothing is changed",
				release),
			"install without --configless, and copy the hooks' folders to all nodes",
		)
	}
	return nil
}

// warnLeft says what of epd's stays in force as the hooks are taken out.
func warnLeft(t *terminal.Terminal, c *cli.Context, site *install.Site) {
	for _, warning := range doctor.Remains(c.Context, site.Hooks, os.Getenv("EPPLAN_SOCKET"), site.Journal) {
		t.Message("warning", warning)
	}
}

func nextStepsText(site *install.Site, plan *install.Plan, undone bool) string {
	if undone {
		return "Done. Now: scontrol reconfigure, then undo once more\n"
	}
	if plan.Configless {
		return "Done. Now: scontrol reconfigure, with which nodes fetch slurm.conf and the hooks. Each needs " +
			site.Binary + "\n"
	}
	return fmt.Sprintf(
		"Done. First every node needs slurm.conf and what it names: a node without %s is drained.\n"+
			"Then: scontrol reconfigure\n", filepath.Join(site.Dir, "epplan-prolog.d"),
	)
}

func doneText(s *install.Step) string {
	switch {
	case s.Remove:
		return "removed " + s.File
	case s.New:
		return "wrote " + s.File
	}
	return "changed " + s.File + "; what it was is in " + filepath.Base(s.File) + install.BackupSuffix
}

func readSite(t *terminal.Terminal, c *cli.Context) (install.Site, error) {
	dir, err := filepath.Abs(c.String("dir"))
	if err != nil {
		return install.Site{}, err
	}
	check, err := luaCheck(t, c)
	if err != nil {
		return install.Site{}, err
	}
	conf, err := readText(filepath.Join(dir, "slurm.conf"))
	if errors.Is(err, fs.ErrNotExist) {
		return install.Site{}, terminal.WithHint(err, "--dir names the folder of slurm.conf")
	}
	if err != nil {
		return install.Site{}, err
	}
	script, err := readText(filepath.Join(dir, "job_submit.lua"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return install.Site{}, err
	}
	site := install.Site{
		Dir: dir, Socket: c.String("submit-socket"), Binary: c.String("program"), Hooks: c.String("socket"),
		Journal: c.String("journal"), Popen: c.Bool("popen"), Summary: c.String("job-summary"),
		Configless: c.Bool("configless"),
		Conf:       conf, Script: script, HasScript: err == nil, Read: readText, CheckLua: check,
	}
	if check == nil {
		site.Unchecked = true
		site.CheckLua = func(string, string) error { return nil }
	}
	return site, nil
}

func readText(path string) (string, error) {
	text, err := os.ReadFile(path)
	return string(text), err
}

// luaPrograms read a script without running it; the first that is there is taken.
var luaPrograms = []string{"luac5.1", "luac", "lua5.1", "lua", "luac5.4", "luac5.3", "lua5.4", "lua5.3"}

// luaSyntaxCheck is a Lua program that reads another one, and says what is wrong with it.
const luaSyntaxCheck = `local ok, err = (loadstring or load)(io.read("*a"), "=script"); if not ok then io.stderr:write(err) os.exit(1) end`

const luaTimeout = 10 * time.Second

// luaCheck reads a script as Slurm's Lua does, without running it; nil: there
// is no Lua, and none is asked for.
func luaCheck(t *terminal.Terminal, c *cli.Context) (func(name, text string) error, error) {
	if c.Bool("no-lua-check") {
		return nil, nil //nolint:nilnil // as documented
	}
	i := slices.IndexFunc(luaPrograms, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	switch {
	case i < 0 && terminal.IsDryRun(c):
		t.Message("warning", "scripts are not checked: neither luac nor lua is installed")
		return nil, nil //nolint:nilnil // as documented
	case i < 0:
		return nil, terminal.WithHint(
			errors.New("scripts can't be checked: neither luac nor lua is installed; nothing is changed"),
			"install lua5.1, or give --no-lua-check: from Slurm 23.02 a script that doesn't load ends slurmctld",
		)
	}
	program, args := luaPrograms[i], []string{"-p", "-"}
	if !strings.HasPrefix(program, "luac") {
		args = []string{"-e", luaSyntaxCheck}
	}
	return func(name, text string) error { return readByLua(c.Context, program, args, name, text) }, nil
}

func readByLua(ctx context.Context, program string, args []string, name, text string) error {
	ctx, cancel := context.WithTimeout(ctx, luaTimeout)
	defer cancel()
	check := exec.CommandContext(ctx, program, args...) //nolint:gosec // one of ours
	check.Stdin = strings.NewReader(text)
	var complaint bytes.Buffer
	check.Stderr = &complaint
	if err := check.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, queue.Printable(strings.TrimSpace(complaint.String())))
	}
	return nil
}

func printSteps(t *terminal.Terminal, title string, steps []install.Step) error {
	if len(steps) == 0 {
		return t.PrintText("Nothing to do.\n")
	}
	var b strings.Builder
	b.WriteString(title)
	for i := range steps {
		b.WriteString(stepText(i+1, &steps[i]))
	}
	return t.PrintText(b.String())
}

func stepText(number int, s *install.Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d. %s: %s\n", number, s.File, s.Why)
	switch {
	case s.Remove:
		b.WriteString("   remove it\n")
	case s.Add != "":
		if s.Drop != "" {
			fmt.Fprintf(&b, "   instead of  %s\n", queue.Printable(s.Drop))
		}
		fmt.Fprintf(&b, "   add         %s\n", queue.Printable(s.Add))
	case s.Drop != "":
		fmt.Fprintf(&b, "   delete      %s\n", queue.Printable(s.Drop))
	case s.New:
		fmt.Fprintf(&b, "   new file, mode %o:\n", s.Mode)
		for line := range strings.SplitSeq(strings.TrimSuffix(s.Text, "\n"), "\n") {
			fmt.Fprintf(&b, "   | %s\n", queue.Printable(line))
		}
	}
	if s.Undo != "" {
		fmt.Fprintf(&b, "   to undo     %s\n", queue.Printable(s.Undo))
	}
	return b.String()
}
