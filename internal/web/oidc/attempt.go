package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// attempt is a login that somebody began: what has to come back, and what happens then.
type attempt struct {
	Issuer   string
	State    string // in the issuer's redirect
	Nonce    string // in its token
	Verifier string // of PKCE
	Redirect string
	Next     string
	Ends     time.Time
}

// sealer keeps attempts from being read and changed where browsers keep them. The key is of
// this process.
type sealer struct{ aead cipher.AEAD }

func newSealer() *sealer {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the right size of blocks
	}
	return &sealer{aead}
}

func (s *sealer) seal(a *attempt) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("an attempt to log in: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), nil //nolint:gosec // it draws a nonce itself
}

var errNoAttempt = errors.New("no attempt to log in of this epd")

func (s *sealer) open(sealed string) (*attempt, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, errNoAttempt
	}
	text, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return nil, errNoAttempt
	}
	a := &attempt{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, errNoAttempt
	}
	return a, nil
}
