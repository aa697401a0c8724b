package install

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/slurm/slurmconf"
)

// summaryKey is the setting of slurm.conf for the program that Slurm runs as the job's user after each task.
// Slurm runs it with the job's standard error as its own, which goes to the job's output unless sbatch --error
// names another file; its standard output goes nowhere.
const summaryKey = "TaskEpilog"

// summaryText is that program. It opens no file of the job's: Slurm has.
const summaryText = `#!/bin/sh
# epplan: a line on the job's clocks after its batch script, within 1.1 s and with status 0 whatever happens.
case "${SLURM_STEP_ID-}" in '' | 4294967291) ;; *) exit 0 ;; esac # after srun's tasks: nothing
[ "${SLURM_PROCID-}" = 0 ] || exit 0
/usr/bin/timeout -k 0.1 1 @BINARY@ job --line --socket @WHERE@ "$SLURM_JOB_ID" </dev/null >&2 2>/dev/null
exit 0
`

var hostPort = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}$`)

// SummaryFile is the name of that program, beside slurm.conf.
const SummaryFile = "epplan-task-epilog"

func (s *Site) summaryFile() string { return path.Join(s.Dir, SummaryFile) }

var summaryCall = regexp.MustCompile(`(?m)^/usr/bin/timeout -k \S+ \S+ (/\S+) job --line `)

// SummaryProgram returns the program that the text of such a file calls; "": none that is known.
func SummaryProgram(text string) string {
	if found := summaryCall.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// planSummary plans the program that ends a job's output with epplan's line. A site's own TaskEpilog stays:
// Slurm runs one only.
func (s *Site) planSummary(p *Plan, settings map[string]slurmconf.Line) error {
	if s.Summary == "" {
		return nil
	}
	if !hostPort.MatchString(s.Summary) {
		if err := validPath(s.Summary); err != nil {
			return fmt.Errorf("job summary: want HOST:PORT or a socket: %w", err)
		}
	}
	old := settings[strings.ToLower(summaryKey)].Text
	if old == "(null)" {
		old = ""
	}
	if old != "" && old != s.summaryFile() {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s=%s: Slurm runs one only; add to it by hand: "+
			"timeout 1 %s job --line --socket %s \"$SLURM_JOB_ID\" >&2", summaryKey, slurm.Printable(old, 200),
			s.Binary, s.Summary))
		return nil
	}
	text := strings.NewReplacer("@BINARY@", s.Binary, "@WHERE@", s.Summary).Replace(summaryText)
	if err := s.planOwnFile(p, Step{
		File: s.summaryFile(), Text: withSignature("#", text), Mode: 0o755,
		Why: "a line at the end of each job's output (on every node)",
	}); err != nil || old != "" {
		return err
	}
	p.Steps = append(p.Steps, Step{
		File: s.confFile(), Add: summaryKey + "=" + s.summaryFile(), Why: "Slurm runs it as the job's user",
		Undo: "delete " + summaryKey + "=" + s.summaryFile() + ", then scontrol reconfigure",
	})
	return nil
}

// planSummaryUndo removes the program once Slurm doesn't run it: without it, each job's output would end with
// Slurm's error.
func (s *Site) planSummaryUndo(p *Plan) error {
	file := s.summaryFile()
	if slurmconf.Settings(s.Conf)[strings.ToLower(summaryKey)].Text != file {
		return s.planRemoval(p, file, "the line at the end of each job's output (on every node)")
	}
	p.Warnings = append(p.Warnings, file+" stays until slurm.conf without it is read again: scontrol "+
		"reconfigure, then undo once more")
	return nil
}
