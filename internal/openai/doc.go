// Package openai asks servers that speak OpenAI's HTTP API, such as llama.cpp, vLLM,
// Ollama or TEI: only hosts that are allowed, over HTTPS unless they are this machine,
// with a key from a file that appears in no message, and again where there was no
// answer.
package openai
