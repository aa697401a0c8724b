package install

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/hooks"
	"github.com/epplan/epplan/slurm/slurmconf"
)

// What ends a line of slurm.conf that an installation added or changed.
const (
	confAddedMark   = " # epplan, added"
	confChangedMark = " # epplan, was: "
)

// siteSettings returns the settings of slurm.conf. Of several Epilogs the first one counts here, before which
// ours is to run, and of several Prologs the last.
func siteSettings(conf string) map[string]slurmconf.Line {
	settings := slurmconf.Settings(conf)
	if lines := slurmconf.HookLines(conf, string(hooks.Epilog)); len(lines) > 0 {
		settings[string(hooks.Epilog)] = lines[0]
	}
	return settings
}

// planListSetting adds a word to a comma-separated setting that lacks it.
func (s *Site) planListSetting(p *Plan, settings map[string]slurmconf.Line, key, word, why string) {
	old, there := settings[strings.ToLower(key)]
	step := Step{
		File: s.confFile(), Add: key + "=" + word, Why: why,
		Undo: "delete " + key + "=" + word + ", then scontrol reconfigure",
	}
	if there && old.Text != "" && !strings.EqualFold(old.Text, "(null)") {
		if hasWord(old.Text, word) {
			return
		}
		if strings.ContainsAny(old.Text, " \t=\"") {
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("%s=%s: add %s to it by hand", key, slurm.Printable(old.Text, 200), word))
			return
		}
		step.Add = key + "=" + old.Text + "," + word
		step.Drop = key + "=" + old.Text
		step.Undo = fmt.Sprintf("put %s back on line %d, then scontrol reconfigure", step.Drop, old.Number)
	}
	p.Steps = append(p.Steps, step)
}

func hasWord(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(part string) bool {
		return strings.EqualFold(strings.TrimSpace(part), word)
	})
}

// editConf makes the changes to slurm.conf that steps ask for, each in a line
// of its own that says so and what it was. Its second result says why it can't.
func editConf(conf string, steps []Step) (edited, blocked string) {
	lines := strings.Split(conf, "\n")
	end := ""
	if strings.Contains(conf, "\r\n") {
		end = "\r"
	}
	settings := siteSettings(conf)
	for _, s := range steps {
		if path.Base(s.File) != "slurm.conf" {
			continue
		}
		key, _, _ := strings.Cut(s.Add, "=")
		old, there := settings[strings.ToLower(key)]
		if _, included := settings["include"]; included && (!there || s.Beside) {
			return conf, key + " may be set in a file that slurm.conf includes"
		}
		if there && s.Beside && strings.EqualFold(key, string(hooks.Epilog)) {
			i := old.Number - 1
			lines[i] = s.Add + confAddedMark + end + "\n" + lines[i] // other lines keep their numbers
			continue
		}
		if !there || s.Beside {
			at := len(lines)
			if lines[at-1] == "" {
				at--
			}
			lines = slices.Insert(lines, at, s.Add+confAddedMark+end)
			continue
		}
		i := old.Number - 1
		raw := strings.TrimSuffix(lines[i], "\r")
		if strings.HasSuffix(strings.TrimRight(raw, " \t"), `\`) ||
			i > 0 && strings.HasSuffix(strings.TrimRight(lines[i-1], " \t\r"), `\`) {
			return conf, fmt.Sprintf("line %d is continued on another", old.Number)
		}
		lines[i] = s.Add + confChangedMark + raw + strings.TrimPrefix(lines[i], raw)
	}
	return strings.Join(lines, "\n"), ""
}

// restoreConf takes the changes of an installation back: marked lines become
// what they were. Where one was changed since, only our word goes from it.
func (s *Site) restoreConf() (conf string, warnings []string) {
	lines := strings.Split(s.Conf, "\n")
	kept := lines[:0:0]
	for i, line := range lines {
		raw := strings.TrimSuffix(line, "\r")
		if now, was, changed := strings.Cut(raw, confChangedMark); changed {
			if !s.isOwnEdit(now, was) {
				was = s.stripOwnWord(now)
				warnings = append(warnings, fmt.Sprintf("slurm.conf line %d was changed since: it is now %s",
					i+1, slurm.Printable(was, 200)))
			}
			kept = append(kept, was+line[len(raw):])
			continue
		}
		if now, found := strings.CutSuffix(raw, confAddedMark); found {
			if s.isOwnEdit(now, "") {
				continue
			}
			rest := s.stripOwnWord(now)
			warnings = append(warnings,
				fmt.Sprintf("slurm.conf line %d was changed since: it is now %s", i+1, slurm.Printable(rest, 200)))
			line = rest + line[len(raw):]
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n"), warnings
}

// isOwnEdit reports whether a line is what an installation made of another one.
func (s *Site) isOwnEdit(now, was string) bool {
	old := slurmconf.Settings(was)
	for _, hook := range []hooks.Hook{hooks.Prolog, hooks.Epilog} {
		if now == hookKey(hook)+"="+s.hookFolder(hook)+"/*" {
			return was == "" || old[string(hook)].Text != ""
		}
		if now == hookKey(hook)+"="+sentName(hook) {
			return was == ""
		}
	}
	if now == summaryKey+"="+s.summaryFile() {
		return was == ""
	}
	for key, word := range map[string]string{"JobSubmitPlugins": "lua", "PrologFlags": "Alloc"} {
		value := word
		if before := old[strings.ToLower(key)].Text; before != "" && !strings.EqualFold(before, "(null)") {
			value = before + "," + word
		}
		if now == key+"="+value {
			return true
		}
	}
	return false
}

// stripOwnWord takes our word out of a line that others have changed.
func (s *Site) stripOwnWord(line string) string {
	key, value, _ := strings.Cut(line, "=")
	word := map[string]string{
		"jobsubmitplugins": "lua", "prologflags": "Alloc",
	}[strings.ToLower(strings.TrimSpace(key))]
	if word == "" {
		return line
	}
	parts := slices.DeleteFunc(strings.Split(value, ","), func(part string) bool {
		return strings.EqualFold(strings.TrimSpace(part), word)
	})
	if len(parts) == 0 {
		return "#" + line
	}
	return key + "=" + strings.Join(parts, ",")
}
