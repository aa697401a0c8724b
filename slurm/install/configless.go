package install

import (
	"fmt"
	"path"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/slurmconf"
)

// From 23.11 on slurmctld sends Prologs and Epilogs to the slurmds that fetch slurm.conf from it, if they lie
// beside slurm.conf and are named without a path. It sends neither folders nor patterns, and each line
// counts: ours stand beside the site's.

// sentName returns the name of our Prolog or Epilog beside slurm.conf.
func sentName(hook hooks.Hook) string { return "epplan-" + string(hook) }

// isConfigless reports whether slurmctld is to send our hooks to nodes: on request, or as it does already.
func (s *Site) isConfigless(p *Plan, settings map[string]slurmconf.Line) (bool, error) {
	if s.namesHook(hooks.Prolog, sentName(hooks.Prolog)) || s.namesHook(hooks.Epilog, sentName(hooks.Epilog)) {
		return true, nil
	}
	if !s.Configless || hasWord(settings["slurmctldparameters"].Text, "enable_configless") {
		return s.Configless, nil
	}
	const missing = "slurm.conf has no SlurmctldParameters=enable_configless: nodes can't fetch the hooks"
	if _, included := settings["include"]; !included {
		return false, fmt.Errorf(missing+": %w", slurm.ErrInvalid)
	}
	p.Warnings = append(p.Warnings, missing+", unless a file that it includes has it")
	return true, nil
}

// planSentHook plans our hook as a file beside slurm.conf, with a line of its own: the site's hooks stay as they are.
func (s *Site) planSentHook(p *Plan, hook hooks.Hook) error {
	key, name := hookKey(hook), sentName(hook)
	for _, line := range slurmconf.HookLines(s.Conf, string(hook)) {
		dir, folder := strings.CutSuffix(line.Text, "/*")
		if !folder {
			continue
		}
		file := path.Join(dir, hookFileName(hook))
		if text, err := s.readFile(file); err == nil && isIntact(text) {
			return fmt.Errorf("%s is installed already: take it out first, by --undo: %w", file, slurm.ErrInvalid)
		}
	}
	if err := s.planOwnFile(p, Step{
		File: path.Join(s.Dir, name), Text: s.hookScript(hook), Mode: 0o755,
		Why: "our " + key + ", which slurmctld sends to nodes",
	}); err != nil || s.namesHook(hook, name) {
		return err
	}
	p.Steps = append(p.Steps, Step{
		File: s.confFile(), Add: key + "=" + name, Beside: true,
		Why: "named without a path, it is sent; the site's own run " + map[hooks.Hook]string{
			hooks.Prolog: "first, on lines above", hooks.Epilog: "after it, on lines below",
		}[hook],
		Undo: "delete " + key + "=" + name + ", then scontrol reconfigure",
	})
	return nil
}
