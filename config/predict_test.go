package config

import (
	"strings"
	"testing"
)

func TestServersForCodeAreOffUntilTheirHostIsAllowed(t *testing.T) {
	if p := Default().Predict; !p.Enabled || p.Embedding.URL != "" || p.Align.URL != "" ||
		len(p.AllowHosts) != 0 {
		t.Errorf("by default: %+v", p)
	}
	good := "[predict]\nembedding_url = \"http://localhost:8080/v1\"\nembedding_model = \"m\"\n" +
		"allow_hosts = [\"localhost\"]\nalign_url = \"https://localhost/v1\"\nalign_timeout_s = 7\n"
	c, err := Load(strings.NewReader(good), "c.toml", nil)
	if err != nil || c.Predict.Embedding.Model != "m" || c.Predict.Align.TimeoutS != 7 {
		t.Fatalf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"[predict]\nembedding_url = \"http://localhost:8080\"\n": "c.toml:2:17: predict.embedding_url " +
			"names the host \"localhost:8080\", want it in allow_hosts, too",
		"[predict]\nalign_url = \"ftp://x\"\nallow_hosts = [\"x\"]\n": "c.toml:2:13: predict.align_url is " +
			"\"ftp://x\", want an address",
		"[predict]\nembeding_url = \"\"\n": "c.toml:2:1: unknown key " +
			"embeding_url in [predict], did you mean embedding_url?",
		"[predict]\njobs = 5\n": "c.toml:2:8: predict.jobs is 5, " +
			"want a whole number from 100 to 200000",
		"[predict]\nenabled = 1\n": "c.toml:2:11: predict.enabled is 1, " +
			"want true or false",
		"[predict]\nembedding_timeout_s = 0\n": "c.toml:2:23: " +
			"predict.embedding_timeout_s is 0",
	} {
		if _, err := Load(strings.NewReader(text), "c.toml", nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
