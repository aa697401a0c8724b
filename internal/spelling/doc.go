// Package spelling finds the name that a misspelt one was probably meant to
// be, for messages. It is pure, and every room may import it.
package spelling
