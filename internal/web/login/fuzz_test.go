package login_test

import (
	"strings"
	"testing"

	"github.com/epplan/epplan/internal/web/login"
)

// Whatever a file of tokens says: it is refused with its line, or lets in who has one of its tokens, and
// nobody without one.
func FuzzReadTokens(f *testing.F) {
	const token = "0123456789abcdef0123"
	for _, text := range []string{
		"admin alice " + token, "# x\n\nreader bob\t" + token + "\r\n", "root a " + token,
		"admin a short", "admin a", "admin a " + token + "\nreader b " + token, "", "\xff", "admin \x1b " + token,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := login.ReadTokens(strings.NewReader(text), "tokens")
		if err != nil {
			if !strings.Contains(err.Error(), "tokens") {
				t.Fatal(err)
			}
			return
		}
		found := 0
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			if len(words) == 3 && !strings.HasPrefix(words[0], "#") {
				one := tokens.Find(words[2])
				if found++; one == nil || one.Name != words[1] {
					t.Fatalf("the token of %q is %+v", words[1], one)
				}
			}
		}
		if found != tokens.Len() || tokens.Find("") != nil ||
			tokens.Find(token+"x") != nil && !strings.Contains(text, token+"x") {
			t.Fatalf("%d tokens, %d lines", tokens.Len(), found)
		}
	})
}
