package completion

import "strings"

// Shells returns those for which there is a script.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// scripts ask the program itself. They are for a program named PROGRAM.
var scripts = map[string]string{
	"bash": `_PROGRAM() {
  local program=${COMP_WORDS[0]/#\~/$HOME}
  mapfile -t COMPREPLY < <("$program" "${COMP_WORDS[@]:1:COMP_CWORD}" ` + Flag + ` 2>/dev/null)
}
complete -o default -F _PROGRAM PROGRAM
`,
	"zsh": `#compdef PROGRAM
_PROGRAM() {
  local -a candidates
  candidates=("${(@f)$("${words[1]/#\~/$HOME}" "${(@)words[2,CURRENT]}" ` + Flag + ` 2>/dev/null)}")
  if [[ -n ${candidates[1]} ]]; then compadd -a candidates; else _files; fi
}
if [[ ${funcstack[1]} == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
`,
	"fish": `function __PROGRAM_candidates
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l candidates ($words[1] $words[2..-1] "$current" ` + Flag + ` 2>/dev/null)
  set -q candidates[1]; and printf '%s\n' $candidates; or __fish_complete_path "$current"
end
complete -c PROGRAM -f -a '(__PROGRAM_candidates)'
`,
}

// Script returns the script of a shell for a program; "" for shells that have none.
func Script(shell, program string) string {
	return strings.ReplaceAll(scripts[shell], "PROGRAM", program)
}
