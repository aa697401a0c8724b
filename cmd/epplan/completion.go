package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag is what the scripts add to a command line to ask what may
// come next.
const completionFlag = "--generate-bash-completion"

// completions are scripts that ask the program itself what may follow: a
// command, or a flag once its first dash is there. After a flag come files.
var completions = map[string]string{
	"bash": `_epplan() {
  local cur=${COMP_WORDS[COMP_CWORD]} line=("${COMP_WORDS[@]:0:COMP_CWORD}")
  COMPREPLY=()
  if [[ $cur == -* ]]; then
    line+=("${cur/%--/-}")
  elif [[ ${line[COMP_CWORD - 1]} == -* ]]; then
    return
  fi
  COMPREPLY=($(compgen -W "$("${line[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o default -F _epplan epplan
`,
	"zsh": `#compdef epplan
_epplan() {
  local cur=${words[CURRENT]}
  local -a line opts
  line=("${(@)words[1,CURRENT-1]}")
  if [[ $cur == -* ]]; then
    line+=("${cur/%--/-}")
  elif [[ ${line[-1]} == -* ]]; then
    _files
    return
  fi
  opts=("${(@f)$("${line[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n ${opts[1]} ]]; then _describe 'values' opts; else _files; fi
}
compdef _epplan epplan
`,
}

func (t *terminal) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell completion script",
		ArgsUsage: "bash|zsh|fish",
		Description: "Source what is printed from the shell's start-up file: . epplan.bash\n" +
			"Example: epplan completion bash > epplan.bash",
		Action: func(c *cli.Context) error {
			if err := takes(c, 1, 1, "a shell: bash, zsh or fish"); err != nil {
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
		return strings.ReplaceAll(script, "`", ""), nil // quotes of placeholders in flags' usage
	}
	return "", usagef("unknown shell %q, want bash, zsh or fish", shell)
}
