package install

import "github.com/epplan/epplan/slurm/hooks"

// HookScript returns the site's further Prolog or Epilog.
func (s *Site) HookScript(hook hooks.Hook) string { return s.hookScript(hook) }
