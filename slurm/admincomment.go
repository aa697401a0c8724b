package slurm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// tokenPrefix marks a planner's word in a job's AdminComment.
const tokenPrefix = "epplan:"

// CheckPlannerToken accepts the id behind epplan: 1 to 64 letters, digits, dashes or underscores.
func CheckPlannerToken(id string) error {
	if id == "" || len(id) > 64 || strings.IndexFunc(id, isBadHostRune) >= 0 || strings.Contains(id, ".") {
		return fmt.Errorf("token %q: %w", Printable(id, 80), ErrInvalid)
	}
	return nil
}

// ParseToken finds the planner's word in an AdminComment: its id, and the text
// that belongs to others. Words that look like one but are not valid, and all
// but the last valid one, stay with the others' text or are dropped with it.
func ParseToken(comment string) (id, foreign string, found bool) {
	var kept []string
	for part := range strings.SplitSeq(comment, ";") {
		word := strings.TrimSpace(part)
		candidate, ok := strings.CutPrefix(word, tokenPrefix)
		if ok && CheckPlannerToken(candidate) == nil {
			id, found = candidate, true
			continue
		}
		kept = append(kept, part)
	}
	return id, strings.Join(kept, ";"), found
}

// maxPlainRun is how many letters and digits in a row a plain word has at most: payloads have longer ones.
const maxPlainRun = 20

// IsPlainComment reports whether others' text in a comment is surely made of words for people, so that words
// of ours may stand behind it: whoever reads it takes the rest for no part of a payload. Other tools keep
// JSON, base64, key=value pairs or prefixes such as JS1: there, and read up to the end. When in doubt it
// isn't plain. epplan.lua has the same rule as M.is_plain.
func IsPlainComment(foreign string) bool {
	if strings.ContainsFunc(foreign, func(r rune) bool {
		return !isLetterOrDigit(r) && !strings.ContainsRune(" .,;-_()=!?#", r)
	}) || strings.TrimSpace(foreign) != foreign {
		return false
	}
	for i, word := range strings.FieldsFunc(foreign,
		func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
		inside, opened := strings.CutPrefix(word, "(")
		switch {
		case strings.Contains(word, "=") && (!opened || strings.Count(word, "=") > 1 ||
			!strings.HasSuffix(word, ")")),
			i == 0 && inside != "" && !isLetter(rune(inside[0])):
			return false
		}
		for run := range strings.FieldsFuncSeq(word, func(r rune) bool { return !isLetterOrDigit(r) }) {
			if len(run) > maxPlainRun || looksEncoded(run) {
				return false
			}
		}
	}
	return true
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isLetterOrDigit(r rune) bool { return isLetter(r) || r >= '0' && r <= '9' }

// looksEncoded reports whether a run of letters and digits has both, or a capital behind a small letter, as
// encoded bytes do; up to 4 characters may.
func looksEncoded(run string) bool {
	if len(run) <= 4 {
		return false
	}
	letters, digits := 0, 0
	for i, r := range run {
		if isLetter(r) {
			letters++
		} else {
			digits++
		}
		if i > 0 && r >= 'A' && r <= 'Z' && run[i-1] >= 'a' {
			return true
		}
	}
	return letters > 0 && digits > 0
}

// MergeToken puts the planner's word behind the text of others, which is kept
// as it is and has to be plain ([IsPlainComment]); an older word of ours is replaced. An empty id takes ours
// away.
func MergeToken(comment, id string) (string, error) {
	_, foreign, _ := ParseToken(comment)
	if id == "" {
		return foreign, nil
	}
	if err := CheckPlannerToken(id); err != nil {
		return "", err
	}
	merged := tokenPrefix + id
	if foreign != "" {
		merged = foreign + ";" + merged
	}
	return merged, validComment(merged)
}

// beginMark is before the begin time in the id of a job that was submitted with one of ours.
const beginMark = "-begin"

// TokenWithBegin returns an id that says that the job was given such a begin time as it was submitted.
func TokenWithBegin(id string, begin time.Time) string {
	return id + beginMark + strconv.FormatInt(begin.Unix(), 10)
}

// BeginAtSubmit returns the begin time, in Unix seconds, that the planner gave the job as it was submitted,
// by its word in the AdminComment; 0: none.
func (j *Job) BeginAtSubmit() int64 { return j.atSubmit(beginMark) }

// niceMark is before the nice in the id of a job that was submitted with one of ours.
const niceMark = "-nice"

// TokenWithNice returns an id that says that the job was given such a nice as it was submitted.
func TokenWithNice(id string, nice int64) string { return id + niceMark + strconv.FormatInt(nice, 10) }

// NiceAtSubmit returns the nice that the planner gave the job as it was submitted, by its word in the
// AdminComment; 0: none.
func (j *Job) NiceAtSubmit() int64 { return j.atSubmit(niceMark) }

// atSubmit returns the number behind a mark at the end of the id in the AdminComment; 0: none.
func (j *Job) atSubmit(mark string) int64 {
	id, _, _ := ParseToken(j.AdminComment)
	at := strings.LastIndex(id, mark)
	if at < 0 {
		return 0
	}
	number, err := strconv.ParseInt(id[at+len(mark):], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Words in an AdminComment that say what a job took, and what it saved.
const (
	energyWord = "epplan-energy-j:"
	savedWord  = "epplan-saved-j:"
)

// ErrForeignText tells that an AdminComment belongs to another tool, or has text that Slurm wouldn't give
// back as it is.
var ErrForeignText = errors.New("the AdminComment belongs to another tool")

// EnergyComment puts what a job took, and what it saved where that is known, behind the text of others in an
// AdminComment; older words of ours are replaced. Others' text isn't touched unless it is plain
// ([IsPlainComment]) and Slurm gives it back as it is: before 24.11 it writes capitals small, which
// keepsCase denies.
func EnergyComment(comment string, joules float64, saved *float64, keepsCase bool) (string, error) {
	var kept []string
	for part := range strings.SplitSeq(comment, ";") {
		word := strings.TrimSpace(part)
		if !strings.HasPrefix(word, energyWord) && !strings.HasPrefix(word, savedWord) {
			kept = append(kept, part)
		}
	}
	others := strings.Join(kept, ";")
	_, foreign, _ := ParseToken(others)
	if !IsPlainComment(foreign) || strings.TrimSpace(others) != others ||
		!keepsCase && strings.ToLower(foreign) != foreign {
		return "", fmt.Errorf("%w: %q", ErrForeignText, Printable(foreign, 80))
	}
	words := others
	if words != "" {
		words += ";"
	}
	words += energyWord + wholeJoules(joules)
	if saved != nil {
		words += ";" + savedWord + wholeJoules(*saved)
	}
	return words, validComment(words)
}

// wholeJoules returns an energy without a fraction.
func wholeJoules(joules float64) string { return strconv.FormatFloat(math.Round(joules), 'f', 0, 64) }

// Accounted gives what Slurm's accounting has of a job by its plain number: of several of that number, or
// several starts of one, the last.
func (c *Client) Accounted(ctx context.Context, id JobID) (AccountingRecord, error) {
	if err := ValidJob(id); err != nil {
		return AccountingRecord{}, err
	}
	return coalesce(ctx, c, "sacct "+id.String(), func(ctx context.Context) (AccountingRecord, error) {
		out, err := c.command(ctx, "sacct", "--parsable2", "--allocations", "--duplicates", "--delimiter=\x1f",
			"--jobs="+id.String(), "--format="+strings.Join(AccountingColumns, ","))
		if err != nil {
			return AccountingRecord{}, err
		}
		rows, rejected, err := ParseAccounting("sacct", out, "\x1f", time.UTC)
		if err != nil {
			return AccountingRecord{}, err
		}
		var last *AccountingRecord
		for i := range rows {
			if r := &rows[i]; r.ID == id && r.Step == "" && (last == nil || !r.Submit.Before(last.Submit)) {
				last = r
			}
		}
		switch {
		case len(rejected) > 0: // its AdminComment tears the line: what was read may be the half of it
			return AccountingRecord{}, fmt.Errorf("sacct: job %s: %w: %s", id, ErrForeignText, rejected[0].Reason)
		case last == nil:
			return AccountingRecord{}, fmt.Errorf("sacct: job %s: %w", id, ErrNotFound)
		}
		return *last, nil
	})
}

// AccountEnergy gives a job that ended an energy in Slurm's accounting, as sacct shows it in ConsumedEnergy
// and AllocTRES. What was there is lost. It takes 25.11 or later, and root, SlurmUser or an administrator of
// slurmdbd.
func (c *Client) AccountEnergy(ctx context.Context, id JobID, joules float64) error {
	return c.modifyAccounted(ctx, id, "tres=energy="+wholeJoules(max(0, joules)))
}

// AccountComment gives a job that ended an AdminComment in Slurm's accounting, as [EnergyComment] made it;
// the same users may.
func (c *Client) AccountComment(ctx context.Context, id JobID, comment string) error {
	if err := validComment(comment); err != nil {
		return err
	}
	return c.modifyAccounted(ctx, id, "admincomment="+comment)
}

func (c *Client) modifyAccounted(ctx context.Context, id JobID, setting string) error {
	if err := ValidJob(id); err != nil {
		return err
	}
	_, err := c.command(ctx, "sacctmgr", "--immediate", "modify", "job", "where", "jobid="+id.String(), "set",
		setting)
	return err
}
