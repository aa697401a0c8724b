package install

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/slurmconf"
)

// PlanUndo takes an installation back, and nothing else: what a site changed
// since stays. Files that slurm.conf still names stay, too, until a second
// undo after it was read again.
func PlanUndo(s Site) (Plan, error) {
	if err := s.validate(); err != nil {
		return Plan{}, err
	}
	p := Plan{}
	p.Conf, p.Warnings = s.restoreConf()
	if p.Conf != s.Conf {
		p.Steps = append(p.Steps, Step{
			File: s.confFile(), Before: s.Conf, Text: p.Conf,
			Why: "its marked lines become what they were; then scontrol reconfigure",
		})
	}
	settings := siteSettings(p.Conf)
	if err := s.planScriptUndo(&p, settings); err != nil {
		return Plan{}, err
	}
	for _, hook := range []hooks.Hook{hooks.Prolog, hooks.Epilog} {
		if err := s.planHookUndo(&p, hook, settings[string(hook)].Text); err != nil {
			return Plan{}, err
		}
	}
	if err := s.planSummaryUndo(&p); err != nil {
		return Plan{}, err
	}
	return p, s.planRemoval(&p, path.Join(s.Dir, "epplan.lua"), "the hook")
}

// planRemoval plans to remove a file of ours, unless it was changed since.
func (s *Site) planRemoval(p *Plan, file, why string) error {
	text, err := s.readFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !isIntact(text):
		p.Warnings = append(p.Warnings,
			file+" was changed since it was installed; it stays, remove it by hand")
		return nil
	}
	p.Steps = append(p.Steps, Step{File: file, Before: text, Remove: true, Why: why})
	return nil
}

// planScriptUndo takes our line out of job_submit.lua. A script of ours goes as a
// whole once slurm.conf doesn't ask for one: slurmctld doesn't start without a
// script that it is told to load.
func (s *Site) planScriptUndo(p *Plan, settings map[string]slurmconf.Line) error {
	if !s.HasScript {
		return nil
	}
	wanted := hasWord(settings["jobsubmitplugins"].Text, "lua") ||
		hasWord(slurmconf.Settings(s.Conf)["jobsubmitplugins"].Text, "lua")
	if isIntact(s.Script) && !wanted {
		p.Steps = append(p.Steps, Step{
			File: s.scriptFile(), Before: s.Script, Remove: true,
			Why: "the script is ours, and slurm.conf doesn't name it any more",
		})
		return nil
	}
	var kept strings.Builder
	drop := ""
	for line := range strings.Lines(s.Script) {
		switch {
		case submitCall.MatchString(line):
			drop = strings.TrimRight(line, "\r\n")
		case isMarked(line):
			p.Warnings = append(p.Warnings, "job_submit.lua: a marked line was changed since; it stays, "+
				"take our call out by hand: "+slurm.Printable(strings.TrimSpace(line), 200))
			kept.WriteString(line)
		default:
			kept.WriteString(line)
		}
	}
	text := kept.String()
	switch {
	case s.isBareScript(text) && !wanted:
		p.Steps = append(p.Steps, Step{
			File: s.scriptFile(), Before: s.Script, Remove: true,
			Why: "the script is ours, and slurm.conf doesn't name it any more",
		})
		return nil
	case s.isBareScript(text):
		p.Warnings = append(p.Warnings, "job_submit.lua stays, without our line, until slurm.conf is read "+
			"again: take lua out of JobSubmitPlugins, scontrol reconfigure, then undo once more")
	}
	if text == s.Script {
		return nil
	}
	if err := s.CheckLua("job_submit.lua", text); err != nil {
		return fmt.Errorf("job_submit.lua without our line does not load; nothing is changed: %w", err)
	}
	p.Steps = append(p.Steps, Step{
		File: s.scriptFile(), Before: s.Script, Text: text, Drop: drop, Why: "our line goes, the rest stays",
	})
	return nil
}

// isBareScript reports whether a script is the one that we wrote, without our line.
func (s *Site) isBareScript(text string) bool {
	line := s.scriptCall("job_desc", "submit_uid")
	return text == strings.Replace(s.newScript(line), line+"\n", "", 1)
}

// planHookUndo removes our hook. A folder of ours stays as long as Slurm may still
// look there: it runs the site's own Prolog, and jobs that run now get their
// clocks back in its Epilog.
func (s *Site) planHookUndo(p *Plan, hook hooks.Hook, setting string) error {
	folder := s.hookFolder(hook)
	inForce := s.namesHook(hook, folder+"/*")
	if dir, ok := strings.CutSuffix(setting, "/*"); ok && plainPath.MatchString(dir) && dir != folder {
		if err := s.planHookRemoval(p, hook, dir); err != nil {
			return err
		}
	}
	sent := path.Join(s.Dir, sentName(hook))
	const stays = " stays until slurm.conf without it is read again: scontrol reconfigure, then undo once more"
	if s.namesHook(hook, sentName(hook)) {
		p.Warnings = append(p.Warnings, sent+stays)
	} else if err := s.planRemoval(p, sent, "our "+hookKey(hook)); err != nil {
		return err
	}
	if inForce {
		p.Warnings = append(p.Warnings, folder+stays)
		return nil
	}
	if err := s.planHookRemoval(p, hook, folder); err != nil {
		return err
	}
	return s.planRemoval(p, path.Join(folder, siteHookName),
		"Slurm calls the site's own "+hookKey(hook)+" itself again (on every node)")
}

// namesHook reports whether a line of slurm.conf has a Prolog or Epilog by that name.
func (s *Site) namesHook(hook hooks.Hook, name string) bool {
	return slices.ContainsFunc(slurmconf.HookLines(s.Conf, string(hook)), func(l slurmconf.Line) bool {
		return l.Text == name
	})
}

// planHookRemoval removes our hook from a folder.
func (s *Site) planHookRemoval(p *Plan, hook hooks.Hook, dir string) error {
	return s.planRemoval(p, path.Join(dir, hookFileName(hook)), "our "+hookKey(hook)+" (on every node)")
}
