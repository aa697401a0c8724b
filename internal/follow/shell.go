package follow

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/epplan/epplan/slurm/hooks"
)

// shellState is what is known of a script's state: its folder below the one in which it
// was submitted, and variables with plain texts.
type shellState struct {
	dir        string
	unknownDir bool // it went somewhere that can't be told
	vars       map[string]string
}

// followLines goes through the lines of a script.
func (f *sourceFollower) followLines(s *shellState, script string, depth int) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	n := 0
	for line := range strings.Lines(script) {
		if n++; n > maxLines {
			f.skip("the script's lines", "are more than some thousand")
			return
		}
		var command []string
		for _, word := range hooks.ShellWords(line) {
			bare := strings.TrimRight(word, ";&|)")
			if bare = strings.TrimLeft(bare, "("); bare != "" {
				command = append(command, bare)
			}
			if bare == "" || strings.ContainsAny(word[len(word)-1:], ";&|)") {
				f.followCommand(s, command, depth)
				command = nil
			}
		}
		f.followCommand(s, command, depth)
	}
}

// followCommand looks at one command.
func (f *sourceFollower) followCommand(s *shellState, words []string, depth int) {
	words = s.assign(words)
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "cd", "pushd":
		if len(words) > 1 {
			s.cd(words[len(words)-1])
		}
		return
	case "source", ".":
		if len(words) > 1 {
			f.followScript(s, s, words[1], depth)
		}
		return
	}
	f.followProgram(s, words, depth)
}

// followProgram finds what a command runs behind whatever starts it: the file of an
// interpreter, or else the first word that is a file.
func (f *sourceFollower) followProgram(s *shellState, words []string, depth int) {
	launched := false // by something that runs Python files
	for i, word := range words {
		word = s.expand(word)
		name := path.Base(word)
		switch {
		case isShell(name):
			if file := firstFile(words[i+1:]); file != "" {
				f.followScript(s.subshell(), s, file, depth)
			}
			return
		case isInterpreter(name):
			f.followInterpreted(s, words[i+1:])
			return
		case slices.Contains(launchers, name):
			launched = true
		case launched && (word == "-m" || word == "--module") && i+1 < len(words):
			if !s.unknownDir {
				f.readModule(s.dir, s.expand(words[i+1]))
			}
			return
		case strings.HasPrefix(word, "-") || isImage(word):
		case isSource(word) || strings.HasPrefix(word, "./"):
			if at, ok := s.resolve(word); ok {
				if _, read := f.readNamed(at); read || strings.HasPrefix(word, "./") {
					return
				}
			}
		}
	}
}

// followInterpreted reads what an interpreter is given.
func (f *sourceFollower) followInterpreted(s *shellState, words []string) {
	for i := 0; i < len(words); i++ {
		word := s.expand(words[i])
		switch {
		case word == "-m" || word == "--module":
			if i+1 < len(words) && !s.unknownDir {
				f.readModule(s.dir, s.expand(words[i+1]))
				if next := path.Base(s.expand(words[i+1])); slices.Contains(modules, next) {
					f.followProgram(s, append([]string{"torchrun"}, words[i+2:]...), maxDepth)
				}
			}
			return
		case word == "-c" || word == "-e" || word == "-":
			return
		case word == "-W" || word == "-X":
			i++
		case strings.HasPrefix(word, "-"):
		default:
			if at, ok := s.resolve(word); ok {
				f.readNamed(at)
			}
			return
		}
	}
}

// followScript follows a script that another runs, in a shell of its own or the same one.
func (f *sourceFollower) followScript(in, from *shellState, file string, depth int) {
	at, ok := from.resolve(from.expand(file))
	if !ok || depth >= maxDepth {
		return
	}
	if text, read := f.readNamed(at); read {
		f.followLines(in, text, depth+1)
	}
}

// firstFile returns the first word that is no option of a shell.
func firstFile(words []string) string {
	for _, word := range words {
		switch {
		case word == "-c":
			return "" // its words are there, as far as they are plain
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+"):
			return word
		}
	}
	return ""
}

// assign takes assignments before a command, and returns the command.
func (s *shellState) assign(words []string) []string {
	if len(words) > 0 && slices.Contains([]string{"export", "declare", "local", "readonly"}, words[0]) {
		for _, word := range words[1:] {
			s.set(word)
		}
		return nil
	}
	n := 0
	for n < len(words) && isAssignment(words[n]) {
		n++
	}
	if n == len(words) { // else they are for the command alone
		for _, word := range words {
			s.set(word)
		}
	}
	return words[n:]
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && isName(name)
}

func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}) && (name[0] < '0' || name[0] > '9')
}

// maxVars bounds what is remembered of a script's variables.
const maxVars, maxValue = 1000, 4096

// set takes an assignment, or forgets the variable where its value isn't plain.
func (s *shellState) set(word string) {
	name, value, ok := strings.Cut(word, "=")
	if !ok || !isName(name) {
		return
	}
	value = s.expand(value)
	if strings.ContainsAny(value, "$`*?") || len(value) > maxValue || len(s.vars) >= maxVars {
		delete(s.vars, name)
		return
	}
	s.vars[name] = value
}

// expand puts plain variables into a word: $NAME, ${NAME} and ${NAME:-OTHER}. What
// can't be told stays.
func (s *shellState) expand(word string) string {
	if !strings.Contains(word, "$") {
		return word
	}
	var out strings.Builder
	for i := 0; i < len(word) && out.Len() <= maxValue; {
		if word[i] != '$' {
			out.WriteByte(word[i])
			i++
			continue
		}
		name, length := variable(word[i:])
		name, other, hasOther := strings.Cut(name, ":-")
		value, known := s.vars[name]
		switch {
		case length > 0 && known:
			out.WriteString(value)
		case length > 0 && hasOther && !strings.Contains(other, "$"):
			out.WriteString(other)
		default:
			length = max(1, length)
			out.WriteString(word[i : i+length])
		}
		i += length
	}
	return out.String()
}

// variable returns the name of a variable at the beginning of a text, and the length of the
// reference to it; 0: there is none.
func variable(text string) (name string, length int) {
	if strings.HasPrefix(text, "${") {
		end := strings.IndexByte(text, '}')
		if end < 0 {
			return "", 0
		}
		return text[2:end], end + 1
	}
	n := 1
	for n < len(text) && isName("_"+text[n:n+1]) {
		n++
	}
	if n == 1 {
		return "", 0
	}
	return text[1:n], n
}

// cd goes to a folder, or nobody knows where.
func (s *shellState) cd(to string) {
	to = s.expand(to)
	at, ok := s.resolve(to)
	if !ok {
		s.unknownDir = !slices.Contains([]string{"$PWD", "$SLURM_SUBMIT_DIR", "${SLURM_SUBMIT_DIR}"}, to)
		return
	}
	s.dir = at
	s.vars["PWD"] = at
}

// resolve returns where a file lies, below the folder that is read from.
func (s *shellState) resolve(name string) (string, bool) {
	if s.unknownDir || name == "" || strings.ContainsAny(name, "$`*?\x00") || path.IsAbs(name) ||
		strings.HasPrefix(name, "~") || len(name) > maxValue {
		return "", false
	}
	at := path.Join(s.dir, name)
	if at == ".." || strings.HasPrefix(at, "../") {
		return "", false
	}
	return at, true
}

// subshell returns a shell that this one starts.
func (s *shellState) subshell() *shellState {
	return &shellState{dir: s.dir, unknownDir: s.unknownDir, vars: maps.Clone(s.vars)}
}

var (
	launchers = []string{"torchrun", "accelerate", "deepspeed", "horovodrun", "launch"}
	modules   = []string{
		"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
		"torch.utils.bottleneck", "cProfile",
	}
	suffixes = []string{
		".py", ".sh", ".bash", ".r", ".jl", ".pl", ".lua", ".m", ".js", ".rb", ".cu", ".c", ".cpp", ".f90",
		".rs", ".go", ".ipynb",
	}
)

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", "ksh"}, name)
}

// isInterpreter reports whether a program runs a file of source code.
func isInterpreter(name string) bool {
	if version, ok := strings.CutPrefix(name, "python"); ok {
		return strings.Trim(version, "0123456789.") == ""
	}
	return slices.Contains([]string{
		"Rscript", "julia", "perl", "lua", "node", "octave", "ruby", "pypy", "pypy3", "ipython",
	}, name)
}

func isSource(word string) bool { return slices.Contains(suffixes, strings.ToLower(path.Ext(word))) }

func isImage(word string) bool {
	return slices.Contains([]string{".sif", ".img", ".simg", ".sqsh"}, path.Ext(word))
}
