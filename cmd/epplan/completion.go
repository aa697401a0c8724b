package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"
)

// completions are scripts that ask the program itself what may follow.
var completions = map[string]string{
	"bash": `_epplan() {
  local words
  words=("${COMP_WORDS[@]:0:$COMP_CWORD}")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "${COMP_WORDS[$COMP_CWORD]}"))
}
complete -o default -F _epplan epplan
`,
	"zsh": `#compdef epplan
_epplan() {
  local -a opts
  opts=("${(@f)$("${words[@]:0:#words[@]-1}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "${opts[1]}" ]]; then _describe 'values' opts; else _files; fi
}
compdef _epplan epplan
`,
}

func (t *terminal) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a shell completion script",
		ArgsUsage:   "bash|zsh|fish",
		Description: "Example: epplan completion bash > /etc/bash_completion.d/epplan",
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "one: bash, zsh or fish"); err != nil {
				return err
			}
			script, err := t.completion(c.Args().First())
			if err != nil {
				return err
			}
			return t.print(func(w io.Writer) error {
				_, err := io.WriteString(w, script)
				return err
			})
		},
	}
}

func (t *terminal) completion(shell string) (string, error) {
	if script, ok := completions[shell]; ok {
		return script, nil
	}
	if shell == "fish" {
		script, err := t.app().ToFishCompletion()
		if err != nil {
			return "", fmt.Errorf("fish completion: %w", err)
		}
		return script, nil
	}
	return "", usagef("unknown shell %q, want bash, zsh or fish", shell)
}
