// Package align has source code that is unlike all that was learnt from rewritten in
// the style of what is nearest to it, by a server that speaks OpenAI's
// /v1/chat/completions, and checks each rewrite: it must be like what was learnt from,
// and say the same numbers (PREDICT section 3).
//
// What the server answers is data: it is compared and measured, never run, and what
// doesn't pass is thrown away. Secrets are scrubbed from what is sent.
package align
