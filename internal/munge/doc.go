// Package munge proves who sends a request, and that nobody altered it, by
// munge: the service by which machines of a Slurm cluster trust each other's
// users.
//
// [Client] asks the local munged to encode and decode credentials. It speaks
// munged's own protocol at its Unix socket, with no process started:
// docs/performance.md has what that saves.
//
// [Transport] sends HTTP requests, each with a credential that binds method,
// path, query, body and a random nonce. [Authenticate] lets only such requests
// through, each once, and signs the answers, bound to the nonce of the request.
// [Transport] hands on no answer that isn't signed by root or a user that it
// was told of. What isn't signed, such as other headers, reaches nobody.
package munge
