package apidoc

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
)

// schema is a JSON Schema, as far as messages need it.
type schema struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        string             `json:"type,omitempty"`
	Format      string             `json:"format,omitempty"`
	Unit        string             `json:"x-unit,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	OneOf       []*schema          `json:"oneOf,omitempty"`
}

// schemas are those of all messages, by name.
type schemas struct {
	comments *comments
	types    map[string]reflect.Type // whose name it is
	all      map[string]*schema
	at       string // of the schemas in the document
	nulls    bool   // say which values may be null
}

var (
	timeType = reflect.TypeFor[time.Time]()
	rawType  = reflect.TypeFor[json.RawMessage]()
	asJSON   = reflect.TypeFor[json.Marshaler]()
	asText   = reflect.TypeFor[encoding.TextMarshaler]()
)

// of returns the schema of a type; a struct with a name is referred to.
func (s *schemas) of(t reflect.Type) (*schema, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		is, err := s.of(t.Elem())
		if err != nil || !s.nulls {
			return is, err
		}
		return &schema{OneOf: []*schema{is, {Type: "null"}}}, nil
	case t == timeType:
		return &schema{Type: "string", Format: "date-time"}, nil
	case t == rawType:
		return &schema{}, nil
	case t.Implements(asText) || reflect.PointerTo(t).Implements(asText):
		return &schema{Type: "string"}, nil
	case t.Implements(asJSON) || reflect.PointerTo(t).Implements(asJSON):
		return &schema{}, nil
	}
	zero := 0
	switch t.Kind() { //nolint:exhaustive // others have no JSON
	case reflect.Bool:
		return &schema{Type: "boolean"}, nil
	case reflect.String:
		return &schema{Type: "string"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer", Minimum: &zero}, nil
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}, nil
	case reflect.Interface:
		return &schema{}, nil
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{Type: "string", Format: "byte"}, nil
		}
		items, err := s.of(t.Elem())
		return &schema{Type: "array", Items: items}, err
	case reflect.Map:
		each, err := s.of(t.Elem())
		return &schema{Type: "object", Additional: each}, err
	case reflect.Struct:
		return s.structure(t)
	}
	return nil, fmt.Errorf("%s has no JSON", t)
}

// structure refers to the schema of a struct, or is it, without a name.
func (s *schemas) structure(t reflect.Type) (*schema, error) {
	if t.Name() == "" {
		return s.fields(t)
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if other, taken := s.types[name]; taken && other != t {
		name = strings.ToUpper(pkgName(t)[:1]) + pkgName(t)[1:] + name
	}
	ref := &schema{Ref: s.at + name}
	if _, there := s.types[name]; there {
		return ref, nil
	}
	s.types[name] = t
	is, err := s.fields(t)
	if err != nil {
		return nil, err
	}
	is.Description, err = s.comments.typeOf(t)
	s.all[name] = is
	return ref, err
}

func pkgName(t reflect.Type) string { return t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:] }

// fields returns an object with a struct's fields.
func (s *schemas) fields(t reflect.Type) (*schema, error) {
	is := &schema{Type: "object", Properties: make(map[string]*schema)}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" {
			inner, err := s.embedded(f.Type)
			if err != nil {
				return nil, err
			}
			maps.Copy(is.Properties, inner.Properties)
			is.Required = append(is.Required, inner.Required...)
			continue
		}
		if name == "" {
			name = f.Name
		}
		p, err := s.of(f.Type)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if p.Description, err = s.comments.field(t, f.Name); err != nil {
			return nil, err
		}
		p.Unit = unit(name)
		is.Properties[name] = p
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			is.Required = append(is.Required, name)
		}
	}
	return is, nil
}

// embedded returns the fields of a struct within another.
func (s *schemas) embedded(t reflect.Type) (*schema, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is embedded and no struct", t)
	}
	return s.fields(t)
}

// units of keys, by their ends; of two that fit the first counts.
var units = []struct{ end, unit string }{
	{"_per_kwh", ""},
	{"_kwh", "kWh"},
	{"_mhz", "MHz"},
	{"_gib", "GiB"},
	{"_gb", "GB"},
	{"_w", "W"},
	{"_j", "J"},
	{"_us", "µs"},
	{"_ms", "ms"},
	{"_s", "s"},
	{"_pct", "%"},
	{"_v", "V"},
}

// unit is that of a key; "" for none.
func unit(key string) string {
	for _, u := range units {
		if strings.HasSuffix(key, u.end) {
			return u.unit
		}
	}
	return ""
}
