// Package boost fits gradient-boosted regression trees that predict a quantile,
// the median by default: sums of small trees, each of which corrects what the
// ones before it left.
//
// Features are numbers; NaN is "not known" and finds its own way through every
// tree. They are cut into at most 255 bins once, so that fitting looks at small
// histograms and never sorts rows again. Splits follow the gradient of the pinball
// loss (for the median the sign of the residual), and each leaf then takes the
// quantile of its residuals, so one absurd run time moves nothing. The same rows,
// settings and seed give the same model. Pure.
package boost
