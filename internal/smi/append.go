package smi

import (
	"bytes"
	"fmt"

	"github.com/epplan/epplan/config"
)

// Append adds the models to a file of [[gpu]] tables or to a configuration. It fails if either
// couldn't be read with them, such as where the file has a table for one of them already.
func Append(there []byte, file string, models []Model) ([]byte, error) {
	text := bytes.TrimRight(there, "\n")
	if len(text) > 0 {
		text = append(text, '\n')
	}
	text = append(text, Text(models)...)
	if _, err := config.ReadProfiles(bytes.NewReader(text), file); err == nil {
		return text, nil
	} else if len(there) == 0 {
		return nil, fmt.Errorf("tables of these GPUs: %w", err)
	}
	if _, err := config.Load(bytes.NewReader(text), file, config.BuiltinProfiles()); err != nil {
		return nil, fmt.Errorf("%s with the tables of these GPUs: %w", file, err)
	}
	return text, nil
}
