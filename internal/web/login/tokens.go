package login

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/epplan/epplan/queue"
	"golang.org/x/sys/unix"
)

// Bounds of a token file.
const (
	maxTokenFile = 256 << 10
	maxTokens    = 1000
	maxTokenName = 64
	minToken     = 16
	maxToken     = 256
	maxSecret    = 4 << 10
)

// ErrTokens tells that a token file can't be used; it is wrapped with where and why.
var ErrTokens = errors.New("token file")

// Tokens are who may log in.
type Tokens struct{ all []Token }

// Token is one of them.
type Token struct {
	Role   Role
	Name   string
	digest [sha256.Size]byte
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int {
	if t == nil {
		return 0
	}
	return len(t.all)
}

// Find returns who a secret stands for. It takes as long whichever token it is, and
// if it is none.
func (t *Tokens) Find(secret string) (found *Token) {
	if t == nil {
		return nil
	}
	digest := sha256.Sum256([]byte(secret))
	for i := range t.all {
		if subtle.ConstantTimeCompare(digest[:], t.all[i].digest[:]) == 1 {
			found = &t.all[i]
		}
	}
	return found
}

// roleOf reports whether a token is still there as it was.
func (t *Tokens) roleOf(digest [sha256.Size]byte) (role Role, ok bool) {
	for i := range t.Len() {
		if t.all[i].digest == digest {
			return t.all[i].Role, true
		}
	}
	return Anonymous, false
}

// ReadTokenFile reads a token file, which must be a file of root or of epd's own
// user that nobody else may read: [ErrTokens] says what is wrong otherwise.
func ReadTokenFile(path string) (*Tokens, error) {
	f, err := openPrivate(path, "tokens")
	if err != nil {
		return nil, fmt.Errorf("%w%w", ErrTokens, err)
	}
	defer f.Close() //nolint:errcheck // read only
	return ReadTokens(f, path)
}

// ReadSecretFile returns the secret in a file, which must be private as a token file is.
func ReadSecretFile(path string) (string, error) {
	f, err := openPrivate(path, "secret")
	if err != nil {
		return "", fmt.Errorf("secret file%w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("secret file %s: %w", path, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(text) > maxSecret || !isPrintableASCII(secret) {
		return "", fmt.Errorf("secret file %s: want one line with the secret, of printable ASCII", path)
	}
	return secret, nil
}

// openPrivate opens a file of root or of epd's own user that nobody else may read.
func openPrivate(path, secrets string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	var info unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &info)
	mode := info.Mode & 0o777
	switch {
	case err != nil:
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("it isn't a file")
	case mode&0o077 != 0:
		err = fmt.Errorf("mode %04o, want 0600: others may read it; chmod 600 it, and change the %s", mode, secrets)
	case info.Uid != 0 && int(info.Uid) != os.Geteuid():
		err = fmt.Errorf("it belongs to uid %d, want root or epd's own user", info.Uid)
	}
	if err != nil {
		_ = f.Close() // nothing was read
		return nil, fmt.Errorf(" %s: %w", path, err)
	}
	return f, nil
}

// ReadTokens reads lines of a role (reader or admin), a name and a token, with
// spaces between them. Empty lines, and those that begin with #, say nothing. It
// stops at the first line that is wrong, and never repeats a token in its error.
func ReadTokens(r io.Reader, name string) (*Tokens, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxTokenFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w %s: %w", ErrTokens, name, err)
	case len(text) > maxTokenFile:
		return nil, fmt.Errorf("%w %s: more than %d bytes", ErrTokens, name, maxTokenFile)
	}
	t := &Tokens{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTokenFile+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := t.add(line); err != nil {
			return nil, fmt.Errorf("%w: %s:%d: %w", ErrTokens, name, n, err)
		}
	}
	return t, nil
}

// add takes one line.
func (t *Tokens) add(line string) error {
	const want = "want ROLE NAME TOKEN, such as admin, alice and what openssl rand -hex 24 prints"
	words := strings.Fields(line)
	if len(words) != 3 {
		return fmt.Errorf("%d words, %s", len(words), want)
	}
	one := Token{Name: words[1], digest: sha256.Sum256([]byte(words[2]))}
	switch words[0] {
	case "reader":
		one.Role = Reader
	case "admin":
		one.Role = Admin
	default:
		return fmt.Errorf("role %q, want reader or admin", shortText(words[0]))
	}
	switch {
	case len(one.Name) > maxTokenName || queue.Printable(one.Name) != one.Name:
		return fmt.Errorf("name %q, want at most %d printable bytes", shortText(one.Name), maxTokenName)
	case len(words[2]) < minToken || len(words[2]) > maxToken || !isPrintableASCII(words[2]):
		return fmt.Errorf("the token of %s has %d bytes, want %d to %d printable ones of ASCII: openssl "+
			"rand -hex 24 makes one",
			one.Name, len(words[2]), minToken, maxToken)
	case slices.Contains(publishedTokens(), words[2]):
		const said = "the token of %s is one that epplan showed as an example, and so no secret: openssl " +
			"rand -hex 24 makes one"
		return fmt.Errorf(said, one.Name)
	case len(t.all) == maxTokens:
		return fmt.Errorf("more than %d tokens", maxTokens)
	}
	for i := range t.all {
		switch {
		case t.all[i].Name == one.Name:
			return fmt.Errorf("a second token of %s", one.Name)
		case t.all[i].digest == one.digest:
			return fmt.Errorf("%s has the token of %s", one.Name, t.all[i].Name)
		}
	}
	t.all = append(t.all, one)
	return nil
}

// publishedTokens returns the tokens that stood in messages and pages of epplan: whoever can
// read may log in with them. A page that shows another one fails a test.
func publishedTokens() []string {
	return []string{"9f86d081884c7d659a2feaa0c55ad015", "d75df287082e4844f5cc8b36b6d4ad39"}
}

// isPrintableASCII reports whether a text is printable ASCII without spaces.
func isPrintableASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// shortText returns the beginning of a word for a message.
func shortText(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
