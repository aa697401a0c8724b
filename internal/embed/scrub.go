package embed

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/epplan/epplan/spelling"
)

// scrubbedMark stands where a secret was.
const scrubbedMark = "[scrubbed]"

// secretPatterns are what looks like one. Groups 1 and 2 are kept. They are compiled on
// first use: most programs that hold this package, such as hooks, never scrub.
var secretPatterns = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)(<add\s+key="\w*password"\s*value=")[^"]+()`),
		regexp.MustCompile(
			`(?s)()-----BEGIN[A-Z0-9 _-]*PRIVATE KEY(?: BLOCK)?-----.*?` +
				`(?:-----END [A-Z0-9 _-]*PRIVATE KEY(?: BLOCK)?-----|$)()`,
		),
		regexp.MustCompile(
			`(?i)(\b[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*["'\])]*\s*(?:[:?]?=|:|,|\s)\s*["']?)(?:bearer\s+)?[\d.]*[^\s"',;)\d.][^\s"',;)]{3,}()`,
		),
		// In quotes, whatever it is; and what is short or a number only where nothing else has such a name.
		regexp.MustCompile(
			`(?i)(\b[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|_pass|_pwd)[\w.-]*["'\])]*\s*(?:[:?]?=|:|,)\s*)(?:"[^"\n]+"|'[^'\n]+')()`,
		),
		regexp.MustCompile(`(?i)(\b[\w.-]*(?:passw(?:or)?d|passphrase|secret)[\w.-]*["'\])]*=["']?)[^\s"',;)]+()`),
		regexp.MustCompile(`(?i)(\b[\w.-]*(?:passw(?:or)?d|passphrase|secret)[\w.-]*["'\])]*\s*[:?]?[=:]\s*)\d[^\s"',;)]*()`),
		regexp.MustCompile(`(?i)(\b[\w.-]*token["'\])]*\s*[=:]\s*["']?)\d{6,}\b()`),
		regexp.MustCompile(
			`(\b[A-Z0-9_]+_(?:PASS|PWD|PAT|DSN|WEBHOOK(?:_URL)?)["'\])]*\s*[=:]\s*["']?)[^\s"',;)]{4,}()`,
		),
		regexp.MustCompile(`(?i)(\bauthorization["']?\s*[:=,]\s*["']?\w+\s+)[^\s"']+()`),
		regexp.MustCompile(`(?i)(\bbearer\s+)[\w.~+/=-]{8,}()`),
		// Names such as MYPW, pwd and db_pass.
		regexp.MustCompile(`(?i)(\b(?:[a-z0-9.]+[_-])*[a-z]*(?:pwd|pass|pw)["'\])]*(?:[=:]["']?|\s*[=:]\s*["']))[^\s"',;)]{3,}()`),
		// In addresses, the user may be missing, and the password may have a slash.
		regexp.MustCompile(`(://)[^/\s:@"']*:[^\s@"']+(@)`),
		regexp.MustCompile(`(https?://)[^/\s:@"']{8,}(@)`),
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
		regexp.MustCompile(`()\b(?:A3T[0-9A-Z]|AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b()`),
		regexp.MustCompile(`(?i)()\b(?:` + strings.Join(tokenBeginnings, "|") + `)[\w.~+/=:-]{8,}()`),
		regexp.MustCompile(`()\bA3(?:-[0-9A-Z]{5,11}){4,}()`),                    // 1Password
		regexp.MustCompile(`()[\w~.-]{3}\dQ~[\w~.-]{31,}()`),                     // Azure
		regexp.MustCompile(`()\b\d{5,16}(?::A[\w-]{30,}|\|[\w-]{20,})()`),        // Telegram, Facebook
		regexp.MustCompile(`()\b(?:\w{6}_\w{29}_mmk|\w{14}\.atlasv1\.[\w-]+)()`), // MaxMind, Terraform
		regexp.MustCompile(`()\bs\.[0-9A-Za-z]{24}\b()`),                         // Vault
		regexp.MustCompile(`()\bAIza[\w-]{30,}()`),
		regexp.MustCompile(`()\bAGE-SECRET-KEY-[0-9A-Za-z]+()`),
		regexp.MustCompile(`()\bSG\.[\w-]{6,}(?:\.[\w-]+)?()`),
		regexp.MustCompile(`()\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|[rs]k_(?:live|test|prod)_|xox[a-z][.-]|wandb_|dckr_pat_|npm_|pypi-|shpat_|dop_v1_|nvapi-)[\w.-]{8,}()`),
		regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*()`),
		regexp.MustCompile(`()\b[0-9a-fA-F]{32,}\b()`),
	}
})

// Scrub returns a text without what looks like a password, key or token, and without characters that nobody
// sees, between which one may hide. It would rather take out too much.
func Scrub(text string) string {
	text = strings.Map(visibleRune, text)
	for _, s := range secretPatterns() {
		text = s.ReplaceAllString(text, "${1}"+scrubbedMark+"${2}")
	}
	text = keyedValue().ReplaceAllStringFunc(text, func(found string) string {
		if at := keyedValue().FindStringSubmatchIndex(found); hasLettersAndDigits(found[at[3]:]) {
			return found[:at[3]] + scrubbedMark
		}
		return found
	})
	return longWord().ReplaceAllStringFunc(text, func(word string) string {
		if isRandomLooking(word) {
			return scrubbedMark
		}
		return word
	})
}

// visibleRune returns a character if it is seen, or parts words or lines; -1: it is neither.
func visibleRune(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r':
		return r
	case unicode.IsSpace(r):
		return ' '
	case !spelling.IsShown(r):
		return -1
	}
	return r
}

// keyedValue is what stands behind a name such as license_key, or behind that of a service; longWord may be a
// token of one that nobody thought of.
var (
	keyedValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)((?:\b|_)(?:[\w.-]*(?:auth|creds?|key|session|cookie)|(?:` +
			strings.Join(secretServices, "|") + `)[\w .-]{0,20})["'\x60\])]*\s*` +
			`(?:=>|\|\||[:?]?=|:|,|>)[\s"'\x60=]{0,5})[\w+/=.~|:-]{10,}`)
	})
	longWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w+-]{20,}`) })
)

// hasLettersAndDigits reports whether a text has letters and digits.
func hasLettersAndDigits(text string) bool {
	return strings.ContainsAny(text, "0123456789") && strings.ContainsFunc(text, unicode.IsLetter)
}

// isRandomLooking reports whether a word looks as if it had been drawn at random: letters, digits at
// several places among them, and hardly anything that parts words.
func isRandomLooking(word string) bool {
	const lettersByMark = 12 // what is drawn from 64 characters has 30 for each - or _
	digits, marks, before := 0, 0, false
	for _, r := range word {
		is := '0' <= r && r <= '9'
		if is && !before {
			digits++
		}
		if r == '_' || r == '-' || r == '+' {
			marks++
		}
		before = is
	}
	return digits > 1 && marks*lettersByMark <= len(word) && strings.ContainsFunc(word, unicode.IsLetter)
}

// secretServices are services whose keys say by nothing else that they are some, and tokenBeginnings what
// tokens of others begin with: those that rules of gitleaks 8.30 know.
var (
	secretServices = []string{
		"adafruit", "adobe", "airtable", "algolia", "alibaba", "artifactory", "asana", "atlassian", "beamer",
		"bintray", "bitbucket", "bittrex", "cloudflare", "codecov", "cohere", "coinbase", "confluent",
		"contentful", "contribsys", "datadog", "discord", "dnkey", "drone_?ci", "dropbox", "etsy", "facebook",
		"fastly", "finicity", "finnhub", "flickr", "freshbooks", "gitter", "gocardless", "heroku", "hubspot",
		"intercom", "jfrog", "kraken", "kucoin", "launchdarkly", "linked[_-]?in", "lob", "looker",
		"mailchimp", "mailgun", "mapbox", "mattermost", "message[_-]?bird", "netlify", "new[_-]?relic",
		"new-?york-?times", "nytimes", "okta", "plaid", "private_?ai", "rapid_?api", "sendbird", "sentry",
		"snyk", "sonar", "squarespace", "sumo", "telegram", "telegr", "travis", "twitch", "twitter",
		"typeform", "xray", "yandex", "zendesk",
	}
	tokenBeginnings = []string{
		"absk", "akcp", "api_org_", "aqvn", "atatt3", "bedrock-api-key-", "clojars_", "cmvmd", "dapi",
		"dnkey-", "do[opr]_v1_", `dp\.pt\.`, `dt0c01\.`, "duffel_", "ez[at]k", "ext_", "fio-u-",
		"flw(?:pub|sec)k_test-", "f[mo]\\d[a-z]?_",
		"gl(?:agent|cbt|dt|ffct|ft|imt|oas|ptt|rt|soat)-", "gl(?:c|sa)_", "gr1348941", "hrku-", `hv[bs]\.`,
		"ico-", "lin_api_", "ltai", "nr(?:ak|ii|js)-", "ntn_", "ops_ey", "p8e-", `[ps]at\.`, "pnu_", "pplx-",
		"pscale_", "rdme_", "rubygems_", "sgp_", "sha256~", "shippo_", "shp(?:at|ca|pa|ss)_", "sm_[aps]at_",
		"sntry[su]_", "sq0[a-z]{3}-", "t1\\.", "tfp_", "tk-us-", "xapp-", "xkeysib-", "zxlk", "4b1d",
	}
)
