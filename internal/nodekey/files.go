package nodekey

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm"
	"github.com/epplan/epplan/statedir"
)

// Where keys are unless told otherwise.
const (
	DefaultKey     = "/etc/epplan/key"
	DefaultTrusted = "/etc/epplan/trusted-keys"
)

// Role is what a machine's epd is.
type Role string

// The roles.
const (
	Node       Role = "node"
	Controller Role = "controller"
)

// ErrFile tells of a file of keys that can't be used.
var ErrFile = errors.New("keys")

const (
	maxFile     = 8 << 20
	secretMode  = 0o600
	trustedMode = 0o644
)

// Public is the key of a machine as others know it.
type Public struct {
	Role Role
	Name string // of the node in Slurm; of a controller as one likes
	Key  ed25519.PublicKey
}

// String returns the line of a list.
func (p Public) String() string {
	return string(p.Role) + " " + p.Name + " " + base64.StdEncoding.EncodeToString(p.Key)
}

// who names a key.
func (p Public) subject() string { return string(p.Role) + " " + p.Name }

// Secret is a machine's own key.
type Secret struct {
	Public
	private ed25519.PrivateKey
}

// NewSecret draws a key for a machine.
func NewSecret(role Role, name string) (*Secret, error) {
	if err := validName(role, name); err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	return &Secret{Public{role, name, public}, private}, nil
}

func validName(role Role, name string) error {
	if role != Node && role != Controller {
		return fmt.Errorf("%w: role %q, want node or controller", ErrFile, slurm.Printable(string(role), 40))
	}
	if err := slurm.ValidNode(name); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}

// Write puts a key into a new file that only its owner can read. A file that is there stays as it is.
func (s *Secret) Write(path string) error {
	if err := statedir.Check(filepath.Dir(path)); err != nil {
		return err
	}
	text := string(s.Role) + " " + s.Name + " " + base64.StdEncoding.EncodeToString(s.private.Seed()) + "\n"
	f, err := os.CreateTemp(filepath.Dir(path), ".key-") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is a second name by then, or useless
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // where there is one, it fails
		return err
	}
	return statedir.Sync(filepath.Dir(path))
}

// ReadSecret reads a machine's own key. A file that others can read is no secret.
func ReadSecret(path string) (*Secret, error) {
	text, mode, err := readTrusted(path)
	if err != nil {
		return nil, err
	}
	if mode&^secretMode != 0 {
		return nil, fmt.Errorf("%w: %s has mode %04o, want 0600: others can read it; to mend it, make a new key",
			ErrFile, path, mode)
	}
	line, rest, _ := strings.Cut(text, "\n")
	role, name, seed, err := parseLine(path, 1, line, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("%w: %s:2: want one key", ErrFile, path)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, _ := private.Public().(ed25519.PublicKey)
	return &Secret{Public{role, name, public}, private}, nil
}

// ReadTrusted reads the keys of those who are believed.
func ReadTrusted(path string) ([]Public, error) {
	text, _, err := readTrusted(path)
	if err != nil {
		return nil, err
	}
	return ParseTrusted(path, text)
}

// ParseTrusted reads a list of keys: a role, a name and a key in each line, and comments after #.
func ParseTrusted(source, text string) ([]Public, error) {
	var list []Public
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		role, name, key, err := parseLine(source, i+1, line, ed25519.PublicKeySize)
		if err != nil {
			return nil, err
		}
		p := Public{role, name, key}
		for _, other := range list {
			if other.subject() == p.subject() || bytes.Equal(other.Key, p.Key) {
				return nil, fmt.Errorf("%w: %s:%d: %s and %s: want one key for each, and another one", ErrFile, source,
					i+1, other.subject(), p.subject())
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// parseLine reads "node n1 KEY".
func parseLine(
	source string, number int, line string, size int,
) (role Role, name string, key []byte, err error) {
	words := strings.Fields(line)
	if len(words) != 3 { //nolint:mnd // role, name, key
		return "", "", nil, fmt.Errorf("%w: %s:%d: want a role, a name and a key", ErrFile, source, number)
	}
	role, name = Role(words[0]), words[1]
	if err := validName(role, name); err != nil {
		return "", "", nil, fmt.Errorf("%s:%d: %w", source, number, err)
	}
	key, err = base64.StdEncoding.Strict().DecodeString(words[2])
	if err != nil || len(key) != size {
		return "", "", nil, fmt.Errorf("%w: %s:%d: the key isn't %d bytes in base64", ErrFile, source, number,
			size)
	}
	return role, name, key, nil
}

// readTrusted reads a file that nobody but root and the process's user may have written.
func readTrusted(path string) (text string, mode fs.FileMode, err error) {
	if err := statedir.Check(filepath.Dir(path)); err != nil {
		return "", 0, err
	}
	f, err := statedir.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrFile, path, maxFile)
	}
	return string(data), info.Mode().Perm(), err
}

// Enrol adds keys to a list, all or none. One whose owner has another key already takes its place if that
// is wanted, and is refused otherwise.
func Enrol(list, keys []Public, replace bool) ([]Public, error) {
	list = slices.Clone(list)
	for _, k := range keys {
		at := slices.IndexFunc(list, func(p Public) bool { return p.subject() == k.subject() })
		same := slices.IndexFunc(list, func(p Public) bool { return bytes.Equal(p.Key, k.Key) })
		switch {
		case same >= 0 && same == at:
		case same >= 0:
			return nil, fmt.Errorf("%w: %s has the key of %s: want one of its own", ErrFile, k.subject(),
				list[same].subject())
		case at >= 0 && !replace:
			return nil, fmt.Errorf("%w: %s has another key already, which --replace revokes", ErrFile, k.subject())
		case at >= 0:
			list[at] = k
		default:
			list = append(list, k)
		}
	}
	return list, nil
}

// WriteTrusted replaces a list at once.
func WriteTrusted(path string, list []Public) error {
	if err := statedir.Check(filepath.Dir(path)); err != nil {
		return err
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b Public) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	var text strings.Builder
	for _, p := range list {
		text.WriteString(p.String() + "\n")
	}
	return statedir.WriteFile(path, []byte(text.String()), trustedMode)
}
