package munge_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/epplan/epplan/internal/munge"
	"github.com/epplan/epplan/internal/testkit/mungetest"
)

func TestACredentialSaysWhoMadeItAndWhat(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	// munged tells whole seconds, of time(2), which stands still between two ticks of the
	// kernel's clock (10 ms at most) where Go's goes on.
	before := time.Now().Add(-20 * time.Millisecond).Truncate(time.Second)
	for _, payload := range []string{
		"", "hello", "quotes ' \" and\nlines\x00\xff",
		strings.Repeat("x", 4096),
	} {
		text, err := m.Encode(t.Context(), []byte(payload), munge.CredentialTerms{TTL: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c, err := m.Decode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if c.UID != me() || int(c.GID) != os.Getgid() || string(c.Payload) != payload ||
			c.TTL != 20*time.Second {
			t.Errorf("%.20q came back as %+v", payload, c)
		}
		if c.Encoded.Before(before) || c.Decoded.Before(c.Encoded) || c.Age() > 10*time.Second {
			t.Errorf("made at %v, decoded at %v", c.Encoded, c.Decoded)
		}
	}
}

// run runs one of munge's own commands as a user.
func run(t *testing.T, uid uint32, in, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(in)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestMungesOwnCommandsAndTheClientUnderstandEachOther(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	c, err := m.Decode(t.Context(), strings.TrimSpace(run(t, 0, "from munge", "munge", "--socket", d.Socket)))
	if err != nil || string(c.Payload) != "from munge" {
		t.Errorf("munge's credential: %q, %v", c.Payload, err)
	}
	text, err := m.Encode(t.Context(), []byte("to unmunge"), munge.CredentialTerms{TTL: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, 0, text, "unmunge", "--socket", d.Socket); !strings.Contains(out, "Success") ||
		!strings.HasSuffix(out, "to unmunge") {
		t.Errorf("unmunge says %s", out)
	}
}

// nobody is a user without rights.
const nobody = 65534

func TestAnotherUsersCredentialTellsThatUser(t *testing.T) {
	d := mungetest.Start(t, nil)
	c, err := munge.New(d.Socket).Decode(t.Context(),
		strings.TrimSpace(run(t, nobody, "me", "munge", "--socket", d.Socket)))
	if err != nil || c.UID != nobody || c.GID != nobody {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestACredentialForAnotherUserIsRefused(t *testing.T) {
	m := munge.New(mungetest.Start(t, nil).Socket)
	other := uint32(nobody)
	text, err := m.Encode(t.Context(), []byte("secret"), munge.CredentialTerms{For: &other})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := m.Decode(t.Context(), text); !errors.Is(err, munge.ErrNotForUs) || c.Payload != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestACredentialCountsOnce(t *testing.T) {
	m := munge.New(mungetest.Start(t, nil).Socket)
	text, err := m.Encode(t.Context(), []byte("once"), munge.CredentialTerms{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Decode(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	if c, err := m.Decode(t.Context(), text); !errors.Is(err, munge.ErrReplayed) ||
		string(c.Payload) != "once" {
		t.Errorf("the second time: %+v, %v", c, err)
	}
}

func TestACredentialFromClocksThatDifferIsRefusedWithTheDifference(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	for _, c := range []struct {
		off  time.Duration
		want error
		says string
	}{
		{-312 * time.Second, munge.ErrExpired, "312 s old, at most 60 s"},
		{312 * time.Second, munge.ErrRewound, "312 s ahead (compare the machines' clocks: chronyc tracking)"},
		{-30 * time.Second, nil, ""},
		{30 * time.Second, nil, ""},
	} {
		text := mungetest.Mint(d.Key, mungetest.Credential{
			UID: 7, Encoded: time.Now().Add(c.off), TTL: time.Minute, Payload: []byte("p"),
		})
		got, err := m.Decode(t.Context(), text)
		if !errors.Is(err, c.want) {
			t.Errorf("%v off: %v, want %v", c.off, err, c.want)
		}
		if got.UID != 7 || (got.Age()+c.off).Abs() > 3*time.Second {
			t.Errorf("%v off: %+v", c.off, got)
		}
		if err == nil {
			continue
		}
		// A second or two may go by between minting and decoding.
		if text := regexp.MustCompile(`31[0-4] s`).ReplaceAllString(err.Error(),
			"312 s"); !strings.Contains(text, c.says) {
			t.Errorf("%v off: %v, want %q", c.off, err, c.says)
		}
	}
}

func TestACredentialExpiresByMungesClock(t *testing.T) {
	m := munge.New(mungetest.Start(t, nil).Socket)
	text, err := m.Encode(t.Context(), []byte("brief"), munge.CredentialTerms{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(2100 * time.Millisecond) // munge counts in whole seconds
	if _, err := m.Decode(t.Context(), text); !errors.Is(err, munge.ErrExpired) {
		t.Errorf("got %v", err)
	}
}

func TestACredentialOfAnotherKeyOrAnAlteredOneIsRefused(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	ours := mungetest.Credential{
		Encoded: time.Now(), TTL: time.Minute, Payload: []byte("something long enough"),
	}
	text := mungetest.Mint(d.Key, ours)
	for name, c := range map[string]string{
		"another key": mungetest.Mint(mungetest.NewKey(), ours),
		"altered":     text[:90] + flip(text[90]) + text[91:],
	} {
		if got, err := m.Decode(t.Context(), c); !errors.Is(err, munge.ErrKey) || got.Payload != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := m.Decode(t.Context(), text); err != nil {
		t.Errorf("as it was: %v", err)
	}
}

// flip is another letter.
func flip(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

func TestWhatIsNoCredentialIsRefused(t *testing.T) {
	m := munge.New(mungetest.Start(t, nil).Socket)
	for _, text := range []string{
		"", "MUNGE", "MUNGE:", "MUNGE::", "MUNGE:AAAA", "munge:AAAA:", "MUNGE:AAAA:", "MUNGE:AwAA:",
		"MUNGE:AA\nAA:",
		"MUNGE:AAAA:\x00", "MUNGE:$(id):", "MUNGE:" + strings.Repeat("A", 8<<10) + ":", "MUNGE:====:",
		" MUNGE:AAAA:",
	} {
		if got, err := m.Decode(t.Context(), text); !errors.Is(err, munge.ErrInvalid) || got.Payload != nil {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
}

// inside returns what a credential's base64 says, nil if it is none.
func inside(text string) []byte {
	text, found := strings.CutPrefix(text, "MUNGE:")
	text, ended := strings.CutSuffix(text, ":")
	raw, err := base64.StdEncoding.DecodeString(text)
	if !found || !ended || err != nil {
		return nil
	}
	return raw
}

func TestNoGarbageIsTakenForACredential(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	good := mungetest.Mint(d.Key, mungetest.Credential{
		Encoded: time.Now(), TTL: time.Minute, Payload: []byte("payload"),
	})
	// Most bytes are refused before munged sees them, base64's letters only by it.
	letter := rapid.OneOf(rapid.Byte(),
		rapid.SampledFrom([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")))
	rapid.Check(t, func(r *rapid.T) {
		text := []byte(good)
		at := rapid.IntRange(0, len(text)-1).Draw(r, "at")
		text[at] = letter.Filter(func(b byte) bool { return b != text[at] }).Draw(r, "byte")
		if rapid.Bool().Draw(r, "cut") {
			text = text[:at]
		}
		if bytes.Equal(inside(string(text)), inside(good)) {
			// munged doesn't look at the bits of the last letter that base64 leaves over:
			// this is the same credential, written otherwise.
			return
		}
		if c, err := m.Decode(t.Context(), string(text)); err == nil {
			r.Fatalf("%q decodes to %+v", text, c)
		} else if errors.Is(err, munge.ErrUnavailable) {
			r.Fatalf("%q: %v", text, err)
		}
	})
}

func TestAPayloadBeyondTheBoundIsRefused(t *testing.T) {
	m := munge.New("/nowhere")
	if _, err := m.Encode(t.Context(), make([]byte, 4097), munge.CredentialTerms{}); !errors.Is(err,
		munge.ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestAMungedThatIsDownIsUnavailableUntilItIsBack(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	d.Stop(t)
	if _, err := m.Encode(t.Context(), []byte("x"), munge.CredentialTerms{}); !errors.Is(err,
		munge.ErrUnavailable) {
		t.Errorf("encode: %v", err)
	}
	if _, err := m.Decode(t.Context(), "MUNGE:AAAA:"); !errors.Is(err, munge.ErrUnavailable) {
		t.Errorf("decode: %v", err)
	}
	d.Again(t)
	if _, err := m.Encode(t.Context(), []byte("x"), munge.CredentialTerms{}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// fakeMunged answers each connection with the bytes given, and then hangs.
func fakeMunged(t *testing.T, answer []byte) *munge.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			_, _ = c.Write(answer) // the caller may have gone
			open = append(open, c)
		}
		for _, c := range open {
			_ = c.Close()
		}
	}()
	return munge.New(path)
}

// reply returns a message of munged's protocol.
func reply(version, kind byte, size uint32, body ...byte) []byte {
	m := []byte{0, 0x60, 0x6d, 0x4b, version, kind, 0}
	return append(binary.BigEndian.AppendUint32(m, size), body...)
}

func TestAMungedThatAnswersNonsenseIsUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		answer []byte
		says   string
	}{
		"another protocol": {[]byte("HTTP/1.1 200 OK\r\n\r\n"), "magic"},
		"another version":  {reply(5, 3, 0), "version 5, want 4"},
		"another message":  {reply(4, 5, 0), "type 5, want 3"},
		"far too much":     {reply(4, 3, 1<<31), "2147483648 bytes"},
		"a short body":     {reply(4, 3, 2, 0, 9), "no sense"},
		"a long body":      {reply(4, 3, 8, 0, 0, 0, 0, 0, 0, 1, 1), "no sense"},
		"no credential":    {reply(4, 3, 8, 0, 0, 0, 0, 0, 2, 'h', 'i'), "no credential"},
		"an error":         {reply(4, 3, 6, 1, 0, 0, 0, 0, 0), "error 1"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := fakeMunged(t, c.answer).Encode(t.Context(), []byte("x"), munge.CredentialTerms{})
			if text != "" || !errors.Is(err, munge.ErrUnavailable) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	m := fakeMunged(t, reply(4, 5, 6, 0, 0, 1, 1, 1, 0))
	if c, err := m.Decode(t.Context(), "MUNGE:AAAA:"); !errors.Is(err, munge.ErrUnavailable) {
		t.Errorf("a short answer to decode: %+v, %v", c, err)
	}
}

func TestAMungedWithAFullQueueIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	queue, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(queue) //nolint:errcheck // the test is over
	if err := errors.Join(syscall.Bind(queue, &syscall.SockaddrUnix{Name: path}),
		syscall.Listen(queue, 0)); err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	waiting := 0
	for ; ; waiting++ {
		c, err := d.DialContext(t.Context(), "unix", path)
		if errors.Is(err, syscall.EAGAIN) {
			break
		} else if err != nil || waiting > 100 {
			t.Fatalf("%d callers fill no queue: %v", waiting, err)
		}
		defer c.Close() //nolint:errcheck // nothing was buffered
	}
	const credential = "MUNGE:AAAA:"
	answer := reply(4, 3, uint32(6+len(credential)),
		append([]byte{0, 0, 0, 0, 0, byte(len(credential))}, credential...)...)
	served, over := make(chan struct{}), make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() {
		defer close(served)
		for range waiting + 1 {
			if c, _, err := syscall.Accept(queue); err == nil {
				_, _ = syscall.Write(c, answer) // those who only waited don't read it
				defer syscall.Close(c)          //nolint:errcheck // nothing was buffered
			}
		}
		<-over
	})
	defer func() {
		close(over)
		<-served
	}()
	if text, err := munge.New(path).Encode(t.Context(), []byte("x"), munge.CredentialTerms{}); err != nil ||
		text != credential {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestAMungedThatHangsIsGivenUpWithTheContext(t *testing.T) {
	m := fakeMunged(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := m.Encode(ctx, []byte("x"), munge.CredentialTerms{}); !errors.Is(err, munge.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := m.Decode(ctx, "MUNGE:AAAA:"); !errors.Is(err, munge.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second { // munged never answers
		t.Errorf("it took %v", took)
	}
}

func TestManyCallersAtOnceAllGetTheirCredentials(t *testing.T) {
	m := munge.New(mungetest.Start(t, nil).Socket)
	const callers = 400 // more than munged's queue holds
	errs := make(chan error, callers)
	for i := range uint32(callers) {
		go func() {
			payload := binary.BigEndian.AppendUint32(nil, i)
			text, err := m.Encode(t.Context(), payload, munge.CredentialTerms{})
			if err == nil {
				var c munge.Credential
				if c, err = m.Decode(t.Context(), text); err == nil && !bytes.Equal(c.Payload, payload) {
					err = errors.New("somebody else's payload")
				}
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzMungedsAnswer(f *testing.F) {
	f.Add(reply(4, 5, 6, 0, 0, 1, 1, 1, 0))
	f.Add(reply(4, 3, 8, 0, 0, 0, 0, 0, 2, 'h', 'i'))
	f.Add(reply(4, 5, 40, append(make([]byte, 36), 0, 0, 0, 0)...))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if body, err := munge.ReadMessage(bytes.NewReader(answer), 3); err == nil {
			if text, err := munge.ParseEncoded(body); err == nil && !strings.HasPrefix(text, "MUNGE:") {
				t.Errorf("%q is taken for a credential", text)
			}
		}
		if body, err := munge.ReadMessage(bytes.NewReader(answer), 5); err == nil {
			if c, err := munge.ParseDecoded(body); err == nil &&
				(body[0] != 0 || len(c.Payload) > len(body)) {
				t.Errorf("%x decodes to %+v", body, c)
			}
		}
	})
}

func TestACredentialSaysWhereItWasMade(t *testing.T) {
	d := mungetest.Start(t, nil)
	m := munge.New(d.Socket)
	c, err := m.Decode(t.Context(), strings.TrimSpace(run(t, 0, "x", "munge", "--socket", d.Socket)))
	if err != nil || !c.Origin.IsValid() {
		t.Fatalf("made at %v, %v", c.Origin, err)
	}
	other := strings.TrimSpace(run(t, 0, "x", "munge", "--socket", d.Socket))
	if said := run(t, 0, other, "unmunge", "--socket", d.Socket); !strings.Contains(said, c.Origin.String()) {
		t.Errorf("made at %v, and munge says:\n%s", c.Origin, said)
	}
}
