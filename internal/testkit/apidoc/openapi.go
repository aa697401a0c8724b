package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/epplan/epplan/internal/epdapi"
)

// Document is the API in OpenAPI 3.1.
type Document struct {
	OpenAPI    string                            `json:"openapi"`
	Info       Info                              `json:"info"`
	Servers    []Server                          `json:"servers"`
	Tags       []Tag                             `json:"tags"`
	Paths      map[string]map[string]*PathMethod `json:"paths"`
	Components struct {
		Schemas map[string]*schema `json:"schemas"`
	} `json:"components"`
}

// Info says what is described.
type Info struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// Server is where paths are served.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

// Tag groups operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// PathMethod is an operation.
type PathMethod struct {
	ID         string             `json:"operationId"`
	Summary    string             `json:"summary"`
	Tags       []string           `json:"tags"`
	Access     map[string]string  `json:"x-access"` // by server: who may ask
	Parameters []parameter        `json:"parameters,omitempty"`
	Body       *body              `json:"requestBody,omitempty"`
	Responses  map[string]*answer `json:"responses"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description"`
	Required    bool    `json:"required,omitempty"`
	Schema      *schema `json:"schema"`
}

type body struct {
	Required bool               `json:"required"`
	Content  map[string]content `json:"content"`
}

type answer struct {
	Description string             `json:"description"`
	Content     map[string]content `json:"content,omitempty"`
}

type content struct {
	Schema *schema `json:"schema"`
}

const (
	mediaType   = "application/json"
	description = "HTTP with JSON over Unix sockets: the kernel says who asks. Between agents and the " +
		"controller it goes over TCP, signed by munge both ways. " +
		"Keys end in their unit. Users see what concerns them alone. Fields that aren't known " +
		"are passed over."
)

var inPath = regexp.MustCompile(`\{(\w+)\}`)

// faults are the statuses of answers that are a Fault.
var faults = map[string]string{
	"400": "A request that will never do.",
	"403": "Not allowed to ask that.",
	"404": "There is no such thing, or not for whoever asks.",
	"503": "It may be tried again.",
}

// OpenAPI describes operations. The source below root gives what types and
// fields mean.
func OpenAPI(root string, operations []Operation) (*Document, error) {
	d := &Document{
		OpenAPI: "3.1.0",
		Info:    Info{Title: "epd", Description: description, Version: "1"},
		Servers: []Server{{
			"http://epd", "any host name will do over a Unix socket: " +
				epdapi.AgentSocket + ", " + epdapi.ControllerSocket + ", " + epdapi.PublicSocket,
		}},
		Tags: []Tag{
			{Agent, "On a GPU node, at " + epdapi.AgentSocket}, {
				Controller, "Beside slurmctld, at " + epdapi.ControllerSocket +
					", and for all users at " + epdapi.PublicSocket,
			},
		},
		Paths: make(map[string]map[string]*PathMethod),
	}
	s := &schemas{
		comments: newComments(root), types: make(map[string]reflect.Type), all: make(map[string]*schema),
		at: "#/components/schemas/",
	}
	fault, err := s.of(of[epdapi.ErrorAnswer]())
	if err != nil {
		return nil, err
	}
	for i := range operations {
		if err := d.add(s, &operations[i], fault); err != nil {
			return nil, err
		}
	}
	d.Components.Schemas = s.all
	return d, nil
}

// add adds an operation; of two servers with one path the first is kept, and
// who may ask the other one noted.
func (d *Document) add(s *schemas, o *Operation, fault *schema) error {
	if d.Paths[o.Path] == nil {
		d.Paths[o.Path] = make(map[string]*PathMethod)
	}
	method := strings.ToLower(o.Method)
	if both := d.Paths[o.Path][method]; both != nil {
		both.Tags, both.Access[o.Server] = append(both.Tags, o.Server), o.Who
		return nil
	}
	m := &PathMethod{
		ID: o.ID(), Summary: o.Summary, Tags: []string{o.Server}, Access: map[string]string{o.Server: o.Who},
	}
	for _, part := range inPath.FindAllStringSubmatch(o.Path, -1) {
		m.Parameters = append(m.Parameters, parameter{
			part[1], "path", "which one", true, &schema{Type: "string"},
		})
	}
	for _, q := range o.Query {
		m.Parameters = append(m.Parameters, parameter{
			q.Name, "query", q.Meaning, false, &schema{Type: "string"},
		})
	}
	if o.Request != nil {
		request, err := s.of(o.Request)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Pattern(), err)
		}
		m.Body = &body{true, map[string]content{mediaType: {request}}}
	}
	response := new(schema)
	for _, t := range o.Responses {
		one, err := s.of(t)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Pattern(), err)
		}
		response.OneOf = append(response.OneOf, one)
	}
	if len(response.OneOf) == 1 {
		response = response.OneOf[0]
	}
	m.Responses = map[string]*answer{"200": {"The answer.", map[string]content{mediaType: {response}}}}
	for status, meaning := range faults {
		m.Responses[status] = &answer{meaning, map[string]content{mediaType: {fault}}}
	}
	d.Paths[o.Path][method] = m
	return nil
}

// JSON returns the document as a file has it.
func (d *Document) JSON() ([]byte, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	err := to.Encode(d)
	return out.Bytes(), err
}
