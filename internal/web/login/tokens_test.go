package login_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/web/login"
)

const (
	adminToken  = "0123456789abcdef0123"
	readerToken = "fedcba98765432100000"
	tokenLines  = "# who may log in\n\nadmin alice " + adminToken + "\n\treader  bob\t" + readerToken + "\r\n"
)

func TestATokenFileNamesRolesAndNames(t *testing.T) {
	tokens, err := login.ReadTokens(strings.NewReader(tokenLines), "tokens")
	if err != nil || tokens.Len() != 2 {
		t.Errorf("%d tokens, %v", tokens.Len(), err)
	}
}

func TestATokenFileThatIsWrongIsRefusedWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"admin alice": "tokens:1: 2 words, want " +
			"ROLE NAME TOKEN",
		"\nroot alice " +
			adminToken: `tokens:2: role "root", want reader or admin`,
		"admin alice short": "tokens:1: the token of alice has 5 " +
			"bytes, want 16 to 256",
		"admin alice " + strings.Repeat("a", 257):                     "has 257 bytes",
		"admin alice 0123456789abcdéf0123":                            "printable ones of ASCII",
		"admin a\x1bb " + adminToken:                                  `name "a\x1bb"`,
		"admin " + strings.Repeat("n", 65) + " " + adminToken:         "at most 64 printable bytes",
		"admin alice " + adminToken + "\nreader alice " + readerToken: "tokens:2: a second token of alice",
		"admin alice " + adminToken + "\nreader bob " + adminToken:    "tokens:2: bob has the token of alice",
		"admin alice " + adminToken + " # a comment":                  "6 words",
		strings.Repeat("#", 300<<10):                                  "more than 262144 bytes",
		strings.Repeat("x", 100) + " alice " + adminToken:             "…",
		"admin alice 9f86d081884c7d659a2feaa0c55ad015": "tokens:1: the token of alice is " +
			"one that epplan showed as an example",
	} {
		tokens, err := login.ReadTokens(strings.NewReader(text), "tokens")
		if !errors.Is(err, login.ErrTokens) || tokens != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), adminToken) {
			t.Errorf("%.40q: the message repeats a token", text)
		}
	}
}

func TestNoBytesMakeReadingTokensPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{
				"admin", "reader", " ", "\n", "bob", adminToken, "#",
			})), func(words []string) string {
				return strings.Join(words, "")
			})).Draw(t, "text")
		if tokens, err := login.ReadTokens(strings.NewReader(text), "tokens"); (err == nil) == (tokens == nil) {
			t.Fatalf("%v tokens, %v", tokens, err)
		}
	})
}

func TestATokenFileThatOthersMayReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o640: "mode 0640, want 0600",
		0o604: "mode 0604", 0o666: "mode 0666",
	} {
		if err := os.WriteFile(path, []byte(tokenLines), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := login.ReadTokenFile(path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("mode %o: %v, want %q", mode, err, want)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := login.ReadTokenFile(path); !errors.Is(err, login.ErrTokens) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := login.ReadTokenFile(t.TempDir()); err == nil {
		t.Error("a folder was taken for a token file")
	}
}

// What looks like a token in what everybody can read.
var shownTokens = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:admin|reader)[ \t]+[^\s$%]+[ \t]+([!-~]{16,256})`),
	regexp.MustCompile(`(?:^|[^\w/.=-])([0-9a-f]{32,64})\b`),
}

// notTokens are other things of that form.
// JSON in hexadecimal.
var notTokens = []string{"7b2276223a312c226b696e64223a226261746368222c22756964223a317d"}

func TestNoTokenThatIsShownAsAnExampleLogsAnybodyIn(t *testing.T) {
	_, failed := login.ReadTokens(strings.NewReader("admin alice"), "tokens")
	texts := map[string]string{"the error of a wrong line": failed.Error()}
	for _, from := range []string{
		"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples",
		"packaging", "config", "scripts",
	} {
		err := filepath.WalkDir(filepath.Join("../../..", from),
			func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || filepath.Ext(path) == ".png" ||
					filepath.Ext(path) == ".svg" ||
					filepath.Ext(path) == ".go" && strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				texts[path] = string(text)
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(texts) < 50 {
		t.Errorf("only %d texts were looked at", len(texts))
	}
	for path, text := range texts {
		for _, like := range shownTokens {
			for _, found := range like.FindAllStringSubmatch(text, -1) {
				if slices.Contains(notTokens, found[1]) {
					continue
				}
				if _, err := login.ReadTokens(strings.NewReader("admin alice "+found[1]+"\n"),
					"tokens"); err == nil {
					t.Errorf("%s shows %s, which would be taken for a token: add it to those that are "+
						"published, or show its beginning alone", path, found[1])
				}
			}
		}
	}
}
