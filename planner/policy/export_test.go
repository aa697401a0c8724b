package policy

// OwnStage is the value that a stage's key has for a policy without options.
func OwnStage(name, key string) string {
	if own, registered := ownStages[name]; registered {
		return own[key]
	}
	return placedStages[key]
}
