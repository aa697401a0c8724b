// Package embed asks a server for embeddings of source code: any that speaks OpenAI's
// /v1/embeddings, such as llama.cpp, vLLM, Ollama or TEI.
//
// Nothing is sent unless the server's host is on the list of allowed ones, over HTTPS
// unless it is this machine, and secrets are scrubbed from the text before. Answers
// are kept on disk by the hash of what was sent, so that a text is sent once.
package embed
