package config

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is the name of a configuration's text, by which what is in force can be
// told from what is in a file.
func Digest(text []byte) string {
	const bytes = 6
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:bytes])
}
