package munge

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// munged's protocol: a header, then a body whose numbers are big-endian. It is
// the same since munge 0.5 (2007); the version says so.
const (
	wireMagic   = 0x00606d4b
	wireVersion = 4

	encodeRequest = 2
	encodeReply   = 3
	decodeRequest = 4
	decodeReply   = 5

	defaultAlgorithm = 1 // of ciphers, codes and compressions: what munged is configured for
	anyUser          = 0xffffffff

	headerSize = 11
	maxMessage = 64 << 10 // of what munged answers
)

// munged's error numbers that mean something to a caller.
const (
	wireOK           = 0
	wireBadArgument  = 2
	wireBadCred      = 8
	wireBadRealm     = 13
	wireCredInvalid  = 14
	wireExpired      = 15
	wireRewound      = 16
	wireReplayed     = 17
	wireUnauthorized = 18
)

// frameMessage puts the header before a body.
func frameMessage(kind byte, body []byte) []byte {
	m := make([]byte, 0, headerSize+len(body))
	m = binary.BigEndian.AppendUint32(m, wireMagic)
	m = append(m, wireVersion, kind, 0) // not a retry
	m = appendSized(m, body)
	return m
}

// appendSized appends a length and as many bytes.
func appendSized(m, data []byte) []byte {
	m = binary.BigEndian.AppendUint32(m, uint32(len(data))) //nolint:gosec // bounded by maxPayload and maxCredential
	return append(m, data...)
}

func readMessage(r io.Reader, want byte) ([]byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	magic, size := binary.BigEndian.Uint32(h[:]), binary.BigEndian.Uint32(h[headerSize-4:])
	switch {
	case magic != wireMagic:
		return nil, fmt.Errorf("it isn't munged: magic %#x", magic)
	case h[4] != wireVersion:
		return nil, fmt.Errorf("munged speaks version %d, want %d", h[4], wireVersion)
	case h[5] != want:
		return nil, fmt.Errorf("munged sends a message of type %d, want %d", h[5], want)
	case size > maxMessage:
		return nil, fmt.Errorf("munged sends %d bytes, at most %d make sense", size, maxMessage)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(r, body)
	return body, err
}

// bodyReader takes a body apart. Reading beyond its end spoils it.
type bodyReader struct {
	rest     []byte
	tooShort bool
}

func (f *bodyReader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(f.rest)) {
		f.rest, f.tooShort = nil, true
		return nil
	}
	data := f.rest[:n]
	f.rest = f.rest[n:]
	return data
}

func (f *bodyReader) u8() byte {
	if b := f.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *bodyReader) u32() uint32 {
	const size = 4
	if b := f.bytes(size); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (f *bodyReader) time() time.Time { return time.Unix(int64(f.u32()), 0) }

// readFault reads the error number and text that every reply begins with.
func (f *bodyReader) readFault() (byte, string) {
	number := f.u8()
	text := f.bytes(uint32(f.u8()))
	if n := len(text); n > 0 && text[n-1] == 0 {
		text = text[:n-1]
	}
	return number, string(text)
}

// isComplete reports whether a body was neither too short nor too long.
func (f *bodyReader) isComplete() bool { return !f.tooShort && len(f.rest) == 0 }

// parseEncoded reads what munged answers to an encode request.
func parseEncoded(body []byte) (string, error) {
	f := bodyReader{rest: body}
	number, text := f.readFault()
	credential := f.bytes(f.u32())
	switch {
	case !f.isComplete():
		return "", fmt.Errorf("%w: its answer makes no sense", ErrUnavailable)
	case number != wireOK:
		return "", fmt.Errorf("%w: error %d: %q", ErrUnavailable, number, text)
	}
	if n := len(credential); n > 0 && credential[n-1] == 0 {
		credential = credential[:n-1]
	}
	if !isWellFormed(string(credential)) {
		return "", fmt.Errorf("%w: it gives something that is no credential", ErrUnavailable)
	}
	return string(credential), nil
}

// parseDecoded reads what munged answers to a decode request.
func parseDecoded(body []byte) (Credential, error) {
	f := bodyReader{rest: body}
	number, text := f.readFault()
	f.bytes(3)              // cipher, code, compression
	f.bytes(uint32(f.u8())) // realm
	c := Credential{TTL: time.Duration(f.u32()) * time.Second}
	c.Origin, _ = netip.AddrFromSlice(f.bytes(uint32(f.u8())))
	c.Origin = c.Origin.Unmap()
	c.Encoded, c.Decoded = f.time(), f.time()
	c.UID, c.GID = f.u32(), f.u32()
	f.bytes(8) // who may decode
	c.Payload = f.bytes(f.u32())
	if !f.isComplete() {
		return Credential{}, fmt.Errorf("%w: its answer makes no sense", ErrUnavailable)
	}
	switch number {
	case wireOK:
		return c, nil
	case wireExpired:
		return c, TooOldError(c.Age(), c.TTL)
	case wireRewound:
		return c, FromFutureError(c.Age())
	case wireReplayed:
		return c, ErrReplayed
	case wireCredInvalid:
		return Credential{}, ErrKey
	case wireUnauthorized:
		return Credential{}, ErrNotForUs
	}
	if number == wireBadArgument || (number >= wireBadCred && number <= wireBadRealm) {
		return Credential{}, fmt.Errorf("%w: %q", ErrInvalid, text)
	}
	return Credential{}, fmt.Errorf("%w: error %d: %q", ErrUnavailable, number, text)
}
