package queue_test

import (
	"strings"

	"github.com/epplan/epplan/dvfsmodel"
)

// coefficientNames returns those of a job's own model, as batches name them.
func coefficientNames() []string {
	params := dvfsmodel.ParamList()
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	return names
}

// badJSON are JSON batches with one fault each.
var badJSON = []badInput{
	{
		"JSON array of numbers", "[\n  17]",
		`batch:2:3: unexpected number 17, want a job, such as {"id":"a","runtime_s":60}`,
	},
	{
		"JSON junk", `[{"id":@}]`,
		`batch:1:8: "@" is not a JSON value, want text in quotes, a number, true, false or null`,
	},
	{
		"JSON NaN", "[{\"id\":\"a\",\n \"runtime_s\": NaN}]",
		`batch:2:15: "NaN" is not a JSON value, want text in quotes, a number, true, false or null`,
	},
	{
		"JSON misspelt word", `[{"id":"a","x_a": tru}]`,
		`batch:1:19: "tru" is not a JSON value, want text in quotes, a number, true, false or null`,
	},
	{
		"JSON cut off", `{"jobs":[{"id":"a","runtime_s":1}`,
		`batch:1:34: unexpected end of file, want the rest of the JSON`,
	},
	{
		"JSON string without an end", `[{"id":"a`,
		`batch:1:8: string without an end, want a closing "`,
	},
	{
		"JSON line end in a string", "[{\"id\":\"a\n\"}]",
		`batch:1:10: invalid character '\n' in string, want non-control character`,
	},
	{
		"JSON wrong escape", "[{\"id\":\"\\x\"}]",
		"batch:1:9: invalid escape sequence `\\x` in string, " +
			`want one of \" \\ \/ \b \f \n \r \t \u0000`,
	},
	{
		"JSON missing comma", `[{"id":"a" "runtime_s":1}]`,
		`batch:1:12: invalid character '"' after object value, want ',' or '}'`,
	},
	{
		"JSON utilisation with a text", `[{"id":"a","runtime_s":1,"util_pct":[50,"x"]}]`,
		`batch:1:41: util_pct is string "x", want numbers`,
	},
	{
		"JSON utilisation without an end", `[{"id":"a","runtime_s":1,"util_pct":[50}]`,
		`batch:1:40: invalid character '}' after array element, want ',' or ']'`,
	},
	{
		"JSON utilisation that is empty", `[{"id":"a","runtime_s":1,"util_pct":[]}]`,
		"batch:1:37: util_pct has 0 slots, want 1 to 10000, as a profile has all of util_pct, " +
			"slot_s and gpu_mem_gb",
	},
	{
		"JSON utilisation that is a number", `[{"id":"a","runtime_s":1,"util_pct":true}]`,
		"batch:1:37: util_pct is true, want a list of numbers",
	},
	{
		"JSON missing colon", `[{"id" "a"}]`,
		`batch:1:8: invalid character '"' after object name, want ':'`,
	},
	{
		"JSON trailing comma", `[{"id":"a","runtime_s":1},]`,
		`batch:1:26: unexpected ",", want a value on both sides of it`,
	},
	{
		"JSON key without quotes", `[{id:"a"}]`,
		`batch:1:3: "id" is not a JSON value, want text in quotes, a number, true, false or null`,
	},
	{
		"JSON more after the array", `[{"id":"a","runtime_s":1}] 1`,
		"batch:1:28: unexpected number 1, want nothing more",
	},
	{
		"JSON more after the object", `{"jobs":[{"id":"a","runtime_s":1}],"version":1}`,
		`batch:1:36: unexpected string "version", want "}" after the jobs`,
	},
	{
		"JSON jobs is no array", `{"jobs":{"id":"a"}}`,
		`batch:1:9: unexpected "{", want an array of jobs`,
	},
	{
		"JSON late jobs key", `{"version":1,"jobs":[]}`,
		`batch:1:2: unknown key "version", want one of id, name, user, workload, arrival_s, deadline_s, limit_s, runtime_s, runtime_gpu_model, power_w, gpus, gpu_model, nodes, share, cpus, mem_gib, util_pct, slot_s, gpu_mem_gb, kappa, model, or a name that begins with x_`,
	},
	{
		"JSON jobs key in a job", `[{"id":"a","jobs":[]}]`,
		`batch:1:12: unknown key "jobs", want it first in the file, with nothing else beside it`,
	},
	{
		"JSON unknown key", "[{\"id\":\"a\",\n\"runtme\":1}]",
		`batch:2:1: unknown key "runtme", want "runtime_s" (or a name that begins with x_)`,
	},
	{
		"JSON keys for one thing", `[{"id":"a","runtime":1,"elapsed":"00:00:01"}]`,
		`batch:1:24: keys "runtime" and "elapsed" are both runtime_s, want one of them`,
	},
	{
		"JSON dates and numbers",
		`[{"id":"a","runtime":1,"submit":60},{"id":"b","runtime":1,"submit":"2026-03-31"}]`,
		`batch:1:68: arrival_s is a date without a zone, want a number, as at batch:1:33`,
	},
	{
		"JSON coefficient outside the model", `[{"id":"a","p0_w":1}]`,
		`batch:1:12: unknown key "p0_w", want it in an object "model"`,
	},
	{
		"JSON unknown coefficient", `[{"id":"a","model":{"p0":1}}]`,
		`batch:1:21: unknown key "p0" in a model, want one of ` + strings.Join(coefficientNames(), ", "),
	},
	{
		"JSON key twice", `[{"id":"a","id":"b"}]`,
		`batch:1:12: key "id" is there twice, want each once`,
	},
	{
		"JSON x_ key twice", `[{"id":"a","x_a":1,"x_a":2}]`,
		`batch:1:20: key "x_a" is there twice, want each once`,
	},
	{
		"JSON model twice", `[{"id":"a","model":null,"model":null}]`,
		`batch:1:25: key "model" is there twice, want each once`,
	},
	{
		"JSON empty model", `[{"id":"a","model":{}}]`,
		"batch:1:20: the job's model is empty, want all of p0_w, gamma_w, c_w, d_s, delta, t0_s",
	},
	{
		"JSON model is a string", `[{"id":"a","model":"big"}]`,
		`batch:1:20: unexpected string "big", want an object with the model's coefficients`,
	},
	{
		"JSON half a model", `[{"id":"a","model":{"d_s":1,"p0_w":2}}]`,
		"batch:1:36: the job's model has no gamma_w, want all of p0_w, gamma_w, c_w, d_s, delta, t0_s",
	},
	{
		"JSON number in quotes", `[{"id":"a","runtime_s":"5"}]`,
		`batch:1:24: runtime_s is string "5", want a number`,
	},
	{
		"JSON word for a number", `[{"id":"a","runtime_s":true}]`,
		"batch:1:24: runtime_s is true, want a number",
	},
	{
		"JSON array for a text", `[{"id":"a","name":[1]}]`,
		`batch:1:19: name is "[", want a string`,
	},
	{
		"JSON number for a name", `[{"id":"a","name":1}]`,
		"batch:1:19: name is number 1, want a string",
	},
	{
		"JSON number too large", `[{"id":"a","runtime_s":1e999}]`,
		`batch:1:24: runtime_s "1e999" is too large, want a number up to 1e15`,
	},
	{
		"JSON wrong number", `[{"id":"a","runtime_s":01}]`,
		`batch:1:25: invalid character '1' after object value, want ',' or '}'`,
	},
	{
		"JSON no id", "[\n {\"runtime_s\":1}]",
		"batch:2:2: id is empty, want a unique name for the job",
	},
	{
		"JSON duplicate id", "{\"id\":\"a\",\"runtime_s\":1}\n{\"runtime_s\":1, \"id\":\"a\"}",
		`batch:2:22: id "a" is used twice, first at batch:1:1, want unique ids`,
	},
	{
		"JSON deadline before arrival", `[{"id":"a","runtime_s":1,"deadline_s":3,"arrival_s":4}]`,
		"batch:1:39: deadline_s is 3, before the arrival at 4, want a later one",
	},
	{
		"JSON no GPU models", `[{"id":"a","runtime_s":1,"gpus":{}}]`,
		`batch:1:33: gpus is an empty object, want counts such as {"V100":2,"*":4}`,
	},
	{
		"JSON GPU count in quotes", `[{"id":"a","runtime_s":1,"gpus":{"V100":"2"}}]`,
		`batch:1:41: gpus is string "2", want a number`,
	},
	{
		"JSON GPU model twice", `[{"id":"a","runtime_s":1,"gpus":{"V100":2,"V100":2}}]`,
		`batch:1:33: gpus names GPU model "V100" twice, want each once`,
	},
	{
		"JSON x_ object", `[{"id":"a","x_a":{}}]`,
		`batch:1:18: unexpected "{", want a string or a number for "x_a"`,
	},
	{
		"JSON NUL byte", "[{\"id\":\"a\x00\"}]",
		"batch:1:10: byte 0x00 is not text, want UTF-8 or UTF-16 text",
	},
	{
		"JSON control character in an id", "[{\"id\":\"a\\u001b[2J\",\"runtime_s\":1}]",
		`batch:1:8: id "a\x1b[2J" has a control character, want printable text`,
	},
}
