package embed

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// cachePath returns where the embedding of a text is kept: by the hash of text, model and server.
func (c *Client) cachePath(text string) string {
	h := sha256.New()
	for _, part := range []string{c.server.Endpoint(), c.o.Model, text} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // never fails
	}
	name := hex.EncodeToString(h.Sum(nil))
	return filepath.Join(c.o.Cache, name[:2], name+".json")
}

// loadCached returns a kept embedding; nil where there is none that can be used.
func (c *Client) loadCached(text string) []float64 {
	if c.o.Cache == "" {
		return nil
	}
	data, err := os.ReadFile(c.cachePath(text))
	if err != nil {
		return nil
	}
	var e []float64
	if json.Unmarshal(data, &e) != nil || c.check(e) != nil {
		return nil // asked for again and replaced
	}
	return e
}

// storeCached keeps an embedding, readable by its owner only.
func (c *Client) storeCached(text string, e []float64) error {
	if c.o.Cache == "" {
		return nil
	}
	name := c.cachePath(text)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keeping an embedding: %w", err)
	}
	data, err := json.Marshal(e)
	if err == nil {
		err = renameio.WriteFile(name, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping an embedding: %w", err)
	}
	return nil
}
