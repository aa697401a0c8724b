// Package tutorial holds the test that types what docs/tutorial.md says, on a
// copy of the project that knows nothing else, and writes its transcript.
package tutorial
