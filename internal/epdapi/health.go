package epdapi

// Health is what an epd tells of itself to those who look after it, for epplan
// doctor: where its files are and whom it asks.
type Health struct {
	UID          uint32   `json:"uid"`
	State        string   `json:"state_dir"`
	Config       string   `json:"config_file,omitempty"`
	SubmitSocket string   `json:"submit_socket,omitempty"`
	MungeSocket  string   `json:"munge_socket,omitempty"` // empty: munge's own
	Key          string   `json:"key_file,omitempty"`     // by which it proves who it is; empty: by munge
	TrustedKeys  string   `json:"trusted_keys_file,omitempty"`
	Controllers  []string `json:"controllers,omitempty"` // of an agent, HOST:PORT
}
