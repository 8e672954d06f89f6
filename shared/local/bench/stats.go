package main

import (
	"cmp"
	"math"
	"slices"
)

// series are repeated measurements of one thing.
type series []float64

// at is the value that the fraction q of all are at or below (nearest rank); NaN of none.
func (s series) at(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.SortedFunc(slices.Values(s), cmp.Compare[float64])
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func (s series) median() float64 { return s.at(0.5) }
