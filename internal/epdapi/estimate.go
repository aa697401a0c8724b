package epdapi

// Estimate is what a submission would take, on each GPU model on which its
// workload ran.
type Estimate struct {
	Workload string `json:"workload"` // key of what repeats
	GPUs     int    `json:"gpus"`     // 0: it asks for none
	Shared   bool   `json:"shared"`   // it asks for parts of GPUs
	Scripted bool   `json:"scripted"` // the workload is a script's, not a name's
	Known    bool   `json:"known"`    // it ran before, on some GPU model
	Reason   string `json:"reason"`   // why it isn't known; empty: it is
	Mode     string `json:"mode"`     // of its partition
	// Limited reports whether a time limit is known; if not, clocks are chosen as if
	// there were none.
	Limited bool `json:"limited"`
	// Part of the jobs that run at default clocks at random.
	HoldOut float64 `json:"hold_out"`
	// And at constant ones, on GPU models that have some.
	ConstantArm   float64         `json:"constant_arm,omitempty"`
	ConfigVersion string          `json:"config_version"`
	Wishes        *Wishes         `json:"wishes"` // nil: none
	Models        []EstimateModel `json:"gpu_models"`
	Factors       Factors         `json:"factors"`
	// Forecast is what it is expected to take, known or not; nil: nothing is
	// predicted.
	Forecast *Forecast `json:"forecast"`
	// WantsText asks for the text of the code, see [CodeAnswer].
	WantsText bool `json:"wants_text,omitempty"`
}

// EstimateModel is an estimate on one GPU model.
type EstimateModel struct {
	GPUModel string `json:"gpu_model"`
	Reason   string `json:"reason"` // why these clocks, or why none are known
	Apply    bool   `json:"apply"`  // the clocks would be set
	Model    *Model `json:"model"`  // nil: there is none, and no points
	Default  *Point `json:"default_clocks"`
	Chosen   *Point `json:"chosen_clocks"` // that would be set, or would be if the mode allowed it
}
