// Package joint fits all applications that were measured on one GPU model together.
//
// Each application has a fit of its own first: one of dvfsmodel's forms ([dvfsmodel.Fit]) or, where
// power caps differ, a model of a capped GPU. What those leave isn't noise: a GPU has steps that no
// form has, such as clocks at which the voltage goes up, and they are the same for all
// applications. So the residuals of ln energy, and those of ln time, are one Gaussian process over
// all applications of the table,
//
//	r(a, x) = s(x) + o(a, x) + ε
//
// at application a and setting x, the logarithms of core clock, memory clock and cap. With d the
// distance of two settings, the covariances are
//
//	s, which applications share     step²·[x = x'] + shared²·exp(−d²/2·sharedReach²)
//	o, which an application has     own²·exp(−d²/2·ownReach²)·w(a, x)·w(a, x')
//	ε, noise                        noise²·w(a, x)², independent
//
// where w is 1 but for energy at settings to which a form's fit gave a weight below 1: there it is
// the root of its inverse. The six hyperparameters are those of the largest likelihood, with weak
// priors. What is expected of r is added to the application's fit, and settings are chosen by the
// sum.
//
// With n applications of k settings each, nothing is larger than the number of distinct settings: s
// given the applications' residuals y is normal with precision S⁻¹ + Σ Zᵀ(O+E)⁻¹Z and mean that
// precision's inverse times Σ Zᵀ(O+E)⁻¹y, Z choosing an application's settings and S, O, E the
// covariances above. One application less is one term less, and a setting left out is one row less
// of an application's k.
//
// The model of a capped GPU has, for clocks over the highest ones, free power P(g) = P0 + A·g·V(g)²
// with a voltage V that is flat up to a knee; a cap C lets pass P/(1+(P/C)^q)^(1/q); the clock that
// runs is the one whose free power that is; and time is T·(1−w+w·h(g)), h being 1/g up to a knee
// and flat from there on. Its parameters are the most plausible ones, given priors that hold for
// any GPU and residuals with Student's distribution, because a few caps don't determine all of
// them.
//
// The package is pure: no clocks, no files, no random numbers.
package joint
