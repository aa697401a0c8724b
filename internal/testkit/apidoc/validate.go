package apidoc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Validate checks a document against a schema that JSONSchema wrote, and returns the names of members that
// the schema doesn't describe.
func Validate(schemaText, document []byte) (undescribed []string, err error) {
	var root struct {
		schema
		Defs map[string]*schema `json:"$defs"`
	}
	var value any
	if err := errors.Join(json.Unmarshal(schemaText, &root), json.Unmarshal(document, &value)); err != nil {
		return nil, err
	}
	v := &validator{defs: root.Defs, extra: make(map[string]bool)}
	err = v.check(&root.schema, value, "$")
	return slices.Sorted(maps.Keys(v.extra)), err
}

type validator struct {
	defs  map[string]*schema
	extra map[string]bool
}

// check returns the first thing in which a value isn't what its schema says.
func (v *validator) check(s *schema, value any, at string) error {
	if s.Ref != "" {
		def, ok := v.defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if !ok {
			return fmt.Errorf("%s: no %s", at, s.Ref)
		}
		return v.check(def, value, at)
	}
	if len(s.OneOf) > 0 {
		return v.oneOf(s.OneOf, value, at)
	}
	if is := kindOf(value); s.Type != "" && s.Type != is && (s.Type != "number" || is != "integer") {
		return fmt.Errorf("%s is %v, want %s", at, value, s.Type)
	}
	switch x := value.(type) {
	case map[string]any:
		return v.members(s, x, at)
	case []any:
		for i, item := range x {
			if s.Items == nil {
				break
			}
			if err := v.check(s.Items, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case float64:
		if s.Minimum != nil && x < float64(*s.Minimum) {
			return fmt.Errorf("%s is %v, want at least %d", at, x, *s.Minimum)
		}
	}
	return nil
}

// oneOf returns the first schema's error if a value is as none of several says.
func (v *validator) oneOf(all []*schema, value any, at string) (first error) {
	for _, one := range all {
		err := v.check(one, value, at)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// kindOf returns the type of a value in JSON Schema's words.
func kindOf(value any) string {
	switch x := value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case float64:
		if x == math.Trunc(x) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "null"
}

func (v *validator) members(s *schema, object map[string]any, at string) error {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			return fmt.Errorf("%s has no %s", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		member := s.Properties[name]
		if member == nil {
			member = s.Additional
		}
		if member == nil {
			if s.Properties != nil {
				v.extra[name] = true
			}
			continue
		}
		if err := v.check(member, object[name], at+"."+name); err != nil {
			return err
		}
	}
	return nil
}
