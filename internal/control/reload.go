package control

import (
	"fmt"
	"net/http"

	"github.com/epplan/epplan/internal/epdapi"
)

func (c *Controller) postReload(*http.Request) (any, error) {
	if c.options.Load == nil {
		return nil, fmt.Errorf("%w: this epd has no configuration to read again", ErrRequest)
	}
	before := c.Settings().Version
	if err := c.Reload(c.options.Load); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return epdapi.ReloadAnswer{Version: c.Settings().Version, Before: before}, nil
}
