package smi

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// nvidiaNames are the elements of nvidia-smi -q -x by the paths of its text.
var nvidiaNames = map[string]string{
	"product_name":         "product name",
	"product_architecture": "product architecture",
	"default_applications_clocks/graphics_clock":              "default applications clocks/graphics",
	"default_applications_clocks/mem_clock":                   "default applications clocks/memory",
	"max_clocks/graphics_clock":                               "max clocks/graphics",
	"max_clocks/mem_clock":                                    "max clocks/memory",
	"max_customer_boost_clocks/graphics_clock":                "max customer boost clocks/graphics",
	"clocks_event_reasons/clocks_event_reason_gpu_idle":       "clocks event reasons/idle",
	"clocks_throttle_reasons/clocks_throttle_reason_gpu_idle": "clocks event reasons/idle",
}

// xmlPath returns the path of an element in the text's words; "" for those that don't matter.
func xmlPath(open []string) string {
	path := strings.Join(open, "/")
	if name, ok := nvidiaNames[path]; ok {
		return name
	}
	section, key, ok := strings.Cut(path, "/")
	switch {
	case !ok:
		return ""
	case section == "module_power_readings":
		return "module power readings/" + key
	case section == "power_readings", section == "gpu_power_readings":
		key = strings.TrimSuffix(strings.ReplaceAll(key, "_", " "), " w")
		return "gpu power readings/" + key
	}
	return ""
}

// readXML reads nvidia-smi -q -x.
func (r *reader) readXML(text []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	decoder.Strict = true
	var open []string // within a gpu
	var s section
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		r.line, _ = decoder.InputPos()
		if err != nil {
			if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
				r.line = syntax.Line
				return r.faultf("%s, want the XML of nvidia-smi -q -x", syntax.Msg)
			}
			return r.faultf("%v, want the XML of nvidia-smi -q -x", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if s.device == nil && t.Name.Local == "gpu" {
				err = r.beginXML(&s, t)
			} else if s.device != nil {
				open = append(open, t.Name.Local)
			}
		case xml.EndElement:
			if len(open) > 0 {
				open = open[:len(open)-1]
			} else {
				s.device = nil
			}
		case xml.CharData:
			if value := strings.TrimSpace(string(t)); s.device != nil && value != "" {
				err = r.setXML(&s, open, value)
			}
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) beginXML(s *section, gpu xml.StartElement) (err error) {
	*s = section{}
	for _, a := range gpu.Attr {
		if a.Name.Local == "id" {
			s.device, err = r.device(strings.ToLower(a.Value))
			return err
		}
	}
	return r.faultf("a gpu without an id, want the XML of nvidia-smi -q -x")
}

func (r *reader) setXML(s *section, open []string, value string) error {
	switch strings.Join(open, "/") {
	case "supported_clocks/supported_mem_clock/value":
		s.mem = 0
		return r.clock(&s.mem, value)
	case "supported_clocks/supported_mem_clock/supported_graphics_clock":
		return r.addPair(s.device, s.mem, value)
	}
	if path := xmlPath(open); path != "" {
		return r.setNVIDIA(s.device, path, value)
	}
	return nil
}
