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
		// Names such as MYPW, pwd and db_pass.
		regexp.MustCompile(`(?i)(\b(?:[a-z0-9.]+[_-])*[a-z]*(?:pwd|pass|pw)["'\])]*(?:[=:]["']?|\s*[=:]\s*["']))[^\s"',;)]{3,}()`),
		// In addresses, the user may be missing, and the password may have a slash.
		regexp.MustCompile(`(://)[^/\s:@"']*:[^\s@"']+(@)`),
		regexp.MustCompile(`(?i)([?&](?:sig|signature|key|code|auth)=)[^&\s"']+()`),
		regexp.MustCompile(`(?i)((?:account|sharedaccess)key=)[^;\s"']+()`),
		regexp.MustCompile(`((?:hooks\.slack\.com|discord(?:app)?\.com/api/webhooks|[\w.-]*webhook[\w.-]*)/)[\w/@.-]{8,}()`),
		// What programs are given on their command line.
		regexp.MustCompile(`(\s(?:-u|-U|--user|--proxy-user)[ =]?["']?[^\s:"'/=]+:)[^\s"']+()`),
		regexp.MustCompile(`(\b(?:sshpass|mysql\w*|mariadb\w*)\b[^\n|;&]*?\s-p\s?["']?)[^\s"'-][^\s"']*()`),
		regexp.MustCompile(`(\blogin\b[^\n|;&]*?\s-p[ =]?["']?)[^\s"'-][^\s"']*()`),
		regexp.MustCompile(`(\b(?:echo|printf)\s+(?:-\w+\s+)?["']?)[^\n|]+?(["']?\s*\|\s*(?:kinit|sudo|su|docker|podman|passwd|gpg|openssl|cryptsetup|smbclient|ssh-add)\b)`),
		regexp.MustCompile(`(?i)(\bpass(?:in|out)?[: ](?:pass:)?)[^\s"'=(){}:]{4,}()`),
		// Tokens that say by themselves what they are.
		regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b()`),
		regexp.MustCompile(`()\bAIza[\w-]{30,}()`),
		regexp.MustCompile(`()\bAGE-SECRET-KEY-[0-9A-Za-z]+()`),
		regexp.MustCompile(`()\bSG\.[\w-]{6,}(?:\.[\w-]+)?()`),
		regexp.MustCompile(`()\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|[rs]k_(?:live|test)_|xox[abeprs]-|wandb_|dckr_pat_|npm_|pypi-|shpat_|dop_v1_|nvapi-)[\w-]{10,}()`),
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
