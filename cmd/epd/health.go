package main

import (
	"os"
	"path/filepath"

	"github.com/epplan/epplan/internal/epdapi"
)

// health returns where this epd's files are and whom it asks.
func (p *program) health() *epdapi.Health {
	absolute := func(path string) string {
		if full, err := filepath.Abs(path); err == nil && path != "" {
			return full
		}
		return path
	}
	submit := p.String("submit-socket")
	if l := p.passed["submit-socket"]; l != nil {
		submit = l.Addr().String()
	}
	health := &epdapi.Health{
		UID: uint32(max(0, os.Geteuid())), State: absolute(p.String("state")),
		Config:       absolute(p.String("config")),
		SubmitSocket: absolute(submit), MungeSocket: p.String("munge-socket"),
		Controllers: controllerHosts(p.Context),
	}
	if p.String("auth") == authKeys {
		health.Key, health.TrustedKeys = absolute(p.String("key")), absolute(p.String("trusted-keys"))
	}
	return health
}
