// Package spelling finds the name that a misspelt one was probably meant to
// be, for messages, and tells characters that nobody sees. It is pure, and every room may import it.
package spelling
