// Package textfile opens the tables and texts that people hand to epplan: batches,
// measurements, logs, series of factors. It decodes UTF-8 and UTF-16 ([Open]), finds the
// separator of a table and cuts it into cells ([Rows], [Table]), reads numbers with
// decimal commas ([Numbers]), and finds the unit that the name of a column states
// ([Quantity]).
//
// Memory for one row is bounded, so that a huge line ends in an error and not in a full
// memory. Nothing is read ahead of what a caller asks for but the rest of a block, so that
// rows of a pipe are seen as they come.
//
// The package is pure and below every other room but spelling.
package textfile
