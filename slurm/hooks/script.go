package hooks

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/epplan/epplan/slurm"
)

// SentScript is how much of a script job_submit.lua sends, in bytes: what is
// behind doesn't count when scripts are told apart.
const SentScript = 64 << 10

// SbatchOption is an option of sbatch with its value, by its long name.
type SbatchOption struct {
	Name, Value string
	Line        int // of the script
}

// sbatchMark begins the lines of a script that have options.
const sbatchMark = "#SBATCH"

// sbatchShortNames are the options that [Submission.SetOption] knows by a letter.
var sbatchShortNames = map[byte]string{
	'A': "account", 'a': "array", 'C': "constraint", 'c': "cpus-per-task", 'G': "gpus", 'J': "job-name",
	'D': "chdir", 'N': "nodes", 'n': "ntasks", 'p': "partition", 'q': "qos", 't': "time",
}

// SbatchOptions reads the #SBATCH lines of a script, as sbatch does: up to the
// first line that is a command.
func SbatchOptions(script string) []SbatchOption {
	var all []SbatchOption
	number := 0
	for line := range strings.Lines(script) {
		number++
		rest, marked := strings.CutPrefix(line, sbatchMark)
		if !marked || rest != "" && !strings.ContainsAny(rest[:1], " \t\r\n") {
			if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
				break
			}
			continue
		}
		all = append(all, pairOptions(ShellWords(rest), number)...)
	}
	return all
}

// pairOptions pairs words with their values. What is neither is the value of an
// option that isn't known, or nothing.
func pairOptions(words []string, line int) []SbatchOption {
	var all []SbatchOption
	for i := 0; i < len(words); i++ {
		name, value, hasValue := "", "", false
		switch long, isLong := strings.CutPrefix(words[i], "--"); {
		case isLong:
			name, value, hasValue = strings.Cut(long, "=")
		case len(words[i]) > 1 && words[i][0] == '-':
			name = sbatchShortNames[words[i][1]]
			value, hasValue = words[i][2:], len(words[i]) > 2
		}
		if name == "" {
			continue
		}
		if !hasValue && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		all = append(all, SbatchOption{Name: name, Value: value, Line: line})
	}
	return all
}

// ShellQuote makes text one word of a shell's command.
func ShellQuote(text string) string {
	special := func(r rune) bool { return !strings.ContainsRune(shellSafe, r) }
	if text != "" && !strings.ContainsFunc(text, special) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// shellSafe are the characters that mean nothing to a shell.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:,=@%+"

// ShellWords parts a line at spaces. Quotes and backslashes keep them; a word
// that begins with # ends the line.
func ShellWords(line string) []string {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		case c == '#' && !inWord:
			return words
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

// SetOption takes an option of sbatch, by its long name. Options that say nothing
// of a job's size and clocks are ignored.
func (s *Submission) SetOption(name, value string) error {
	if len(value) > slurm.MaxText {
		return fmt.Errorf("--%s of %d bytes: want at most %d: %w", name, len(value), slurm.MaxText,
			slurm.ErrInvalid)
	}
	texts := map[string]*Hex{
		"job-name": &s.Name, "partition": &s.Partition, "account": &s.Account, "qos": &s.QOS,
		"comment":    &s.Comment,
		"constraint": &s.Features, "prefer": &s.Prefer, "gpu-freq": &s.TRESFreq, "array": &s.Array,
		"gres": &s.TRESPerNode, "tres-per-task": &s.TRESPerTask,
	}
	gpus := map[string]*Hex{
		"gpus": &s.TRESPerJob, "gpus-per-node": &s.TRESPerNode, "gpus-per-task": &s.TRESPerTask,
		"gpus-per-socket": &s.TRESPerSock,
	}
	counts := map[string]*uint32{"nodes": &s.MinNodes, "ntasks": &s.NumTasks, "cpus-per-task": &s.CPUsPerTask}
	var err error
	switch {
	case texts[name] != nil:
		*texts[name] = Hex(value)
		if strings.HasPrefix(name, "gres") || strings.HasPrefix(name, "tres") {
			_, err = slurm.ParseGres(value)
		}
	case gpus[name] != nil:
		*gpus[name], err = gpuRequest(value)
	case counts[name] != nil:
		*counts[name], err = leastCount(value)
	case name == "time":
		s.TimeLimit, err = limitMinutes(value)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	return nil
}

// gpuRequest returns the gres of "4", "v100:4" or "v100:2,h200:2".
func gpuRequest(value string) (Hex, error) {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = "gres/gpu:" + strings.TrimSpace(parts[i])
	}
	text := strings.Join(parts, ",")
	_, err := slurm.ParseGres(text)
	return Hex(text), err
}

// leastCount returns the least of "2" or "2-4".
func leastCount(value string) (uint32, error) {
	least, _, _ := strings.Cut(value, "-")
	n, err := strconv.ParseUint(strings.TrimSpace(least), 10, 32)
	if err != nil || n == 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q: want a number", slurm.Printable(value, 40))
	}
	return uint32(n), nil
}

// limitMinutes returns a time limit as job_submit has it: whole minutes, rounded up.
func limitMinutes(value string) (uint32, error) {
	limit, err := slurm.ParseLimit(value)
	switch d, zero := slurm.ParseDuration(strings.TrimSpace(value)); {
	case err != nil:
		return 0, err
	case zero == nil && d == 0: // none stated in what Slurm prints, a mistake in what is asked for
		return 0, errors.New("a time limit of 0")
	case !limit.IsSet():
		return 0, nil
	case limit.IsUnlimited():
		return slurm.Infinite, nil
	}
	d, _ := limit.Duration()
	minutes := (d + time.Minute - 1) / time.Minute
	return uint32(min(math.MaxInt32, minutes)), nil //nolint:gosec // a limit is above 0
}
