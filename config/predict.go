package config

import (
	"net/url"
	"slices"
)

// Predict says how epd predicts what jobs take, and which servers it may ask for that.
type Predict struct {
	Enabled bool
	Jobs    int // ended jobs that are learnt from, the latest ones
	// AllowHosts are the hosts that source code may be sent to.
	AllowHosts []string
	Cache      string // folder for embeddings; "": they aren't kept
	Embedding  Endpoint
	Align      Endpoint // a chat-completion server that rewrites code unlike any before
	Rounds     int      // rewrites of a job's code at most
}

// Endpoint is a server that speaks OpenAI's API.
type Endpoint struct {
	URL      string // "": none is asked
	Model    string
	KeyFile  string // holds its key; "": none is sent
	TimeoutS float64
}

func defaultPredict() Predict {
	const jobs, patience, rounds = 20_000, 20, 3
	return Predict{
		Enabled: true, Jobs: jobs, Embedding: Endpoint{TimeoutS: patience},
		Align: Endpoint{TimeoutS: 2 * patience}, Rounds: rounds,
	}
}

func (p *Predict) fields() []field {
	const mostJobs, mostRounds = 200_000, 10
	return slices.Concat([]field{
		boolField("enabled", "Whether epd predicts each job's run time, energy and power at its submission.",
			&p.Enabled),
		intField("jobs",
			"Latest jobs, recorded or imported, that predictions learn from. Each takes about 1 KB of memory,\n"+
				"and 4 KB more while epd learns.", &p.Jobs,
			100, mostJobs),
		lineListField("allow_hosts",
			"Hosts that may be sent source code, such as [\"llm.example.org\"]. Empty: no server is asked.",
			&p.AllowHosts),
		textField("cache", "Folder to keep embeddings, by the hash of what was sent.", &p.Cache),
	}, p.Embedding.fields("embedding", "an embedding server (OpenAI's /v1/embeddings)"),
		p.Align.fields("align", "a chat-completion server (OpenAI's /v1/chat/completions) that\n"+
			"rewrites code unlike all that was learnt"),
		[]field{intField("align_rounds", "Most rewrites of a job's code.", &p.Rounds, 1, mostRounds)})
}

// fields returns those of an endpoint, whose keys begin with a word.
func (e *Endpoint) fields(word, what string) []field {
	return []field{
		textField(word+"_url", "Address of "+what+".", &e.URL),
		textField(word+"_model", "Model to ask for.", &e.Model),
		textField(word+"_key_file",
			"File with the key, readable by epd alone.", &e.KeyFile),
		numberField(word+"_timeout_s", "Seconds that an answer may take.", &e.TimeoutS,
			numberRange{max: 3600, above: true}),
	}
}

// checkTogether notes servers that aren't allowed to be asked.
func (p *Predict) checkTogether(d *document) {
	p.Embedding.check(d, "predict.embedding_url", p.AllowHosts)
	p.Align.check(d, "predict.align_url", p.AllowHosts)
}

// check notes an address that can't be asked, or mustn't.
func (e *Endpoint) check(d *document, key string, allowed []string) {
	if e.URL == "" {
		return
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		d.faultAt(key, "%s is %s, want an address such as http://localhost:8080/v1", key, quoteName(e.URL))
	case !slices.Contains(allowed, u.Hostname()) && !slices.Contains(allowed, u.Host):
		d.faultAt(key, "%s names the host %s, want it in allow_hosts, too", key, quoteName(u.Host))
	}
}
