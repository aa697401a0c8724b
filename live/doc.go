// Package live is the vocabulary of the live side: what Slurm, the controller, the agents
// and the records say to each other, each word once, with the JSON that it has on the
// wire. It knows the model's quantities and nothing else of the project.
package live
