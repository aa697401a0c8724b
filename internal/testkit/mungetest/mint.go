package mungetest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"
)

// Credential is what a minted credential says.
type Credential struct {
	UID, GID uint32
	Encoded  time.Time
	TTL      time.Duration
	Payload  []byte
}

// Mint makes a credential without a munged, as only root can who knows the key:
// of any user, and at any time. Munge's format 3, not encrypted.
func Mint(key []byte, c Credential) string {
	const (
		version, noCipher, hmacSHA256, noZip = 3, 0, 5, 0
		saltSize                             = 8
		anybody                              = 0xffffffff
	)
	outer := []byte{version, noCipher, hmacSHA256, noZip, 0} // no realm
	inner := make([]byte, saltSize)
	_, _ = rand.Read(inner) // never fails
	address := []byte{4, 127, 0, 0, 1}
	inner = append(inner, address...)
	for _, n := range []uint32{
		uint32(c.Encoded.Unix()), uint32(c.TTL / time.Second), c.UID, c.GID,
		anybody, anybody, uint32(len(c.Payload)),
	} {
		inner = binary.BigEndian.AppendUint32(inner, n)
	}
	inner = append(inner, c.Payload...)
	macKey := sha1.Sum(append(slices.Clone(key), '2'))
	mac := hmac.New(sha256.New, macKey[:])
	mac.Write(outer)
	mac.Write(inner)
	whole := slices.Concat(outer, mac.Sum(nil), inner)
	return "MUNGE:" + base64.StdEncoding.EncodeToString(whole) + ":"
}
