package control

import (
	"fmt"

	"github.com/epplan/epplan/internal/epdapi"
)

// reload reads the configuration again, for whoever asks.
func (c *Controller) reload() (*epdapi.ReloadAnswer, error) {
	if c.options.Load == nil {
		return nil, fmt.Errorf("%w: this epd has no configuration to read again", epdapi.ErrRequest)
	}
	before := c.Settings().Version
	if err := c.Reload(c.options.Load); err != nil {
		return nil, fmt.Errorf("%w: %w", epdapi.ErrRequest, err)
	}
	s := c.Settings()
	answer := &epdapi.ReloadAnswer{Version: s.Version, Before: before}
	for _, warning := range s.Warnings {
		answer.Warnings = append(answer.Warnings, warning.Error())
	}
	return answer, nil
}
