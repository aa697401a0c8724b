package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
)

var (
	submitFunction = regexp.MustCompile(
		`(?m)^[ \t]*function[ \t]+slurm_job_submit[ \t]*\(([^)\n]*)\)[ \t]*(?:--[^\n]*?)?\r?\n`,
	)
	submitCall = regexp.MustCompile(
		`^[ \t]*pcall\(function\(\) EPPLAN = EPPLAN or dofile\("[^"]*"\); EPPLAN\.submit\(\w+, \w+\) end\) -- epplan\r?\n?$`,
	)
	signature = regexp.MustCompile(`(?m)^(?:#|--) epplan install: ([0-9a-f]{16})\n`)
)

// hookSignature ends the line that an installation adds to job_submit.lua.
const hookSignature = "-- epplan"

// withSignature puts a line behind the first one by which a file of ours is known, and
// whether it was changed since.
func withSignature(comment, text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	return first + "\n" + comment + " epplan install: " + textDigest(text) + "\n" + rest
}

func textDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// isIntact reports whether a file is as an installation wrote it.
func isIntact(text string) bool {
	at := signature.FindStringSubmatchIndex(text)
	return at != nil && textDigest(text[:at[0]]+text[at[1]:]) == text[at[2]:at[3]]
}

// isMarked reports whether a line of job_submit.lua is ours.
func isMarked(line string) bool {
	return strings.HasSuffix(strings.TrimRight(line, " \t\r\n"), hookSignature)
}

// scriptCall returns the line that calls our module.
func (s *Site) scriptCall(job, uid string) string {
	return fmt.Sprintf("  pcall(function() EPPLAN = EPPLAN or dofile(%q); EPPLAN.submit(%s, %s) end) %s",
		path.Join(s.Dir, "epplan.lua"), job, uid, hookSignature)
}

func (s *Site) scriptFile() string { return path.Join(s.Dir, "job_submit.lua") }

// newScript returns a job_submit.lua for a site that has none.
func (s *Site) newScript(line string) string {
	return withSignature("--", "-- job_submit.lua: called by slurmctld for each job.\n"+
		"function slurm_job_submit(job_desc, part_list, submit_uid)\n"+line+
		"\n  return slurm.SUCCESS\nend\n\nfunction slurm_job_modify(job_desc, job_rec, part_list, "+
		"modify_uid)\n  return slurm.SUCCESS\nend\n\nreturn slurm.SUCCESS\n")
}

// scriptStep adds one line to the site's script, or writes a script where there is none.
func (s *Site) scriptStep() ([]Step, error) {
	if !s.HasScript {
		text := s.newScript(s.scriptCall("job_desc", "submit_uid"))
		if err := s.CheckLua("job_submit.lua", text); err != nil {
			return nil, fmt.Errorf("job_submit.lua: %w", err)
		}
		return []Step{{
			File: s.scriptFile(), Text: text, Mode: 0o644, New: true,
			Why:  "the site has no script of its own",
			Undo: "take lua out of JobSubmitPlugins, scontrol reconfigure, then rm " + s.scriptFile(),
		}}, nil
	}
	if err := s.CheckLua("job_submit.lua", s.Script); err != nil {
		return nil, fmt.Errorf("the site's job_submit.lua does not load as it is; nothing is planned: %w",
			err)
	}
	for line := range strings.Lines(s.Script) {
		if isMarked(line) {
			return nil, nil
		}
	}
	line, text, err := s.insertCall()
	if err != nil {
		return nil, err
	}
	return []Step{{
		File: s.scriptFile(), Text: text, Before: s.Script, Add: line,
		Why: "one line in the site's own script", Undo: "delete the line that ends in " + hookSignature +
			" from " + s.scriptFile(),
	}}, nil
}

// insertCall puts our line at the beginning of the site's slurm_job_submit.
func (s *Site) insertCall() (line, text string, err error) {
	at := submitFunction.FindAllStringSubmatchIndex(s.Script, -1)
	if len(at) != 1 {
		return "", "", fmt.Errorf("job_submit.lua: found %d lines \"function slurm_job_submit(…)\", want "+
			"1: add the line by hand: %s: %w", len(at),
			strings.TrimSpace(s.scriptCall("job_desc", "submit_uid")), slurm.ErrInvalid)
	}
	names := strings.Split(s.Script[at[0][2]:at[0][3]], ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	if len(names) != 3 || slices.ContainsFunc(names, func(n string) bool { return !luaName.MatchString(n) }) {
		return "", "", fmt.Errorf("job_submit.lua: slurm_job_submit takes (%s), want three names: %w",
			strings.Join(names, ", "), slurm.ErrInvalid)
	}
	line = s.scriptCall(names[0], names[2])
	end := at[0][1]
	newline := "\n"
	if strings.HasSuffix(s.Script[:end], "\r\n") {
		newline = "\r\n"
	}
	text = s.Script[:end] + line + newline + s.Script[end:]
	if err := s.CheckLua("job_submit.lua", text); err != nil {
		return "", "", fmt.Errorf("job_submit.lua with our line: %w; add it by hand: %s", err,
			strings.TrimSpace(line))
	}
	// In a comment or a text, nonsense would load as well.
	if !s.Unchecked && s.CheckLua("job_submit.lua", s.Script[:end]+")"+newline+s.Script[end:]) == nil {
		return "", "", fmt.Errorf("job_submit.lua: its line \"function slurm_job_submit(…)\" is in a "+
			"comment or a text: add the line by hand: %s: %w", strings.TrimSpace(line), slurm.ErrInvalid)
	}
	return line, text, nil
}
