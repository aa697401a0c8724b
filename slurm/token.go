package slurm

import (
	"fmt"
	"strings"
)

// tokenPrefix marks a planner's word in a job's AdminComment.
const tokenPrefix = "epplan:"

// ValidToken accepts the id behind epplan: 1 to 64 letters, digits, dashes or underscores.
func ValidToken(id string) error {
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
		if ok && ValidToken(candidate) == nil {
			id, found = candidate, true
			continue
		}
		kept = append(kept, part)
	}
	return id, strings.Join(kept, ";"), found
}

// MergeToken puts the planner's word behind the text of others, which is kept
// as it is; an older word of ours is replaced. An empty id takes ours away.
func MergeToken(comment, id string) (string, error) {
	_, foreign, _ := ParseToken(comment)
	if id == "" {
		return foreign, nil
	}
	if err := ValidToken(id); err != nil {
		return "", err
	}
	merged := tokenPrefix + id
	if foreign != "" {
		merged = foreign + ";" + merged
	}
	return merged, validComment(merged)
}
