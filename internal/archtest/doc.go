// Package archtest holds the rules of the house as tests: which rooms there
// are, who may import whom, what pure packages must not touch, what needs a doc
// comment, how long a function may be. It has no other code.
//
// Each rule is a function from facts about a module to a list of violations.
// It is applied to this module, and to a small module or list of packages that
// breaks it, so that a rule that can't fail is noticed.
package archtest
