package install

import "github.com/epplan/epplan/slurm"

// HookScript returns the site's further Prolog or Epilog.
func (s *Site) HookScript(hook slurm.Hook) string { return s.hookScript(hook) }
