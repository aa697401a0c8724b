package embed

import (
	"regexp"
	"sync"
)

// scrubbedMark stands where a secret was.
const scrubbedMark = "[scrubbed]"

// secretPatterns are what looks like one. Groups 1 and 2 are kept. They are compiled on
// first use: most programs that hold this package, such as hooks, never scrub.
var secretPatterns = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(
			`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)()`,
		),
		regexp.MustCompile(
			`(?i)(\b[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*["'\])]*\s*(?:=|:|,|\s)\s*["']?)(?:bearer\s+)?[\d.]*[^\s"',;)\d.][^\s"',;)]{3,}()`,
		),
		regexp.MustCompile(
			`(\b[A-Z0-9_]+_(?:PASS|PWD|PAT|DSN|WEBHOOK(?:_URL)?)["'\])]*\s*[=:]\s*["']?)[^\s"',;)]{4,}()`,
		),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=,]\s*["']?\w+\s+)[^\s"']+()`),
		regexp.MustCompile(`(?i)(\bbearer\s+)[\w.~+/=-]{8,}()`),
		regexp.MustCompile(`(://)[^/\s:@"']+:[^/\s@"']+(@)`),
		regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b()`),
		regexp.MustCompile(`()\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-|wandb_)[\w-]{10,}()`),
		regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*()`),
		regexp.MustCompile(`()\b[0-9a-fA-F]{32,}\b()`),
	}
})

// Scrub is a text without what looks like a password, key or token. It would rather
// take out too much.
func Scrub(text string) string {
	for _, s := range secretPatterns() {
		text = s.ReplaceAllString(text, "${1}"+scrubbedMark+"${2}")
	}
	return text
}
