package epdapi

import (
	"context"

	"github.com/epplan/epplan/slurm/hooks"
)

// PathCode is where users tell what the source code looks like that a script runs,
// before they submit it.
const PathCode = "/v1/code"

// Forecast is what a job is expected to take, wherever it runs and at the clocks that
// jobs like it ran at.
type Forecast struct {
	Time   PredictedRange `json:"time_s"`
	Energy PredictedRange `json:"energy_j"` // of its GPUs
	Power  PredictedRange `json:"power_w"`  // of each GPU, mean
	// Code reports whether source code counted, else only the script did.
	Code bool `json:"code"`
	// Strange reports whether what was read is unlike all that was learnt from; Score is
	// its distance, 1 where that begins; 0 where nothing was compared.
	Strange bool    `json:"ood"`
	Score   float64 `json:"ood_score"`
	// Footprint is what the energy comes to in the hours in which the job is expected
	// to run; nil: constant factors count.
	Footprint *ForecastFootprint `json:"footprint,omitempty"`
}

// PredictedRange is a predicted quantity: nine of ten truths lie from Low to High.
type PredictedRange struct {
	Value float64 `json:"value"`
	Low   float64 `json:"lo"`
	High  float64 `json:"hi"`
	Rung  string  `json:"rung"` // what it rests on
}

// ForecastFootprint is what the energy of a run comes to, by factors over time.
type ForecastFootprint struct {
	Carbon   PredictedRange `json:"carbon_g"`
	Water    PredictedRange `json:"water_l"`
	Cost     PredictedRange `json:"cost"`
	Currency string         `json:"currency"`
}

// ForecastScore tells how predictions of a target turned out.
type ForecastScore struct {
	Target      string  `json:"target"`       // time, energy or power
	Rung        string  `json:"rung"`         // empty: any
	Jobs        int     `json:"jobs"`         // submissions: an array counts as one
	Coverage    float64 `json:"coverage"`     // part of the truths within their interval
	MedianError float64 `json:"median_error"` // relative, of the last ones
}

// ForecastStatus is how predictions fare.
type ForecastStatus struct {
	Enabled  bool            `json:"enabled"`
	Version  int64           `json:"version"` // of the last training; 0: there was none
	Jobs     int             `json:"jobs"`    // that it learnt from
	Imported int             `json:"imported"`
	Scripts  int             `json:"scripts"`
	Codes    int             `json:"codes"`
	Missed   int64           `json:"missed"` // submissions for which there was no time
	Scores   []ForecastScore `json:"scores"`
	// Since the start: trainings, codes that were rewritten, and questions to servers
	// that failed or that no rewrite passed.
	Trainings int64 `json:"trainings"`
	Aligned   int64 `json:"aligned"`
	AskErrors int64 `json:"ask_errors"`
}

// Code is what the source code looks like that a script runs: features, from which no
// text can be had again.
type Code struct {
	Files  int       `json:"files"`      // that were read, the script among them
	Vector []float32 `json:"vector"`     // the built-in embedding of all of them
	Digest hooks.Hex `json:"digest_hex"` // SHA-256 of what was read
	// Text is what was read, for the embedding server that the administrator chose,
	// where epd asks for it and the user allows it; it is never stored.
	Text hooks.Hex `json:"text_hex,omitempty"`
}

// CodeRequest is a submission with what is known of the code that it runs.
type CodeRequest struct {
	hooks.Submission
	Code *Code `json:"code,omitempty"`
}

// CodeAnswer says what epd made of it.
type CodeAnswer struct {
	Kept bool `json:"kept"`
	// WantsText asks for the text: an embedding server is configured.
	WantsText bool `json:"wants_text"`
}

// Announce tells what the code of a job looks like that is about to be submitted.
func (c *Client) Announce(ctx context.Context, r *CodeRequest) (*CodeAnswer, error) {
	return post[CodeAnswer](ctx, c, PathCode, r)
}
