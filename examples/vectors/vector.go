// SPDX-License-Identifier: Apache-2.0

package main

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// dimensions is the number of numbers in a vector.
const dimensions = 64

// embed is a stub of an embedding, so that the example runs everywhere. It uses the hashing trick:
// each word, and each three characters of a word, add to one of the numbers. So embed compares the
// spelling of words, but not their meaning. It returns nil if there are no words.
func embed(inputs map[string]string) []float64 {
	v := make([]float64, dimensions)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		words := strings.FieldsFunc(strings.ToLower(inputs[name]), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		for _, word := range words {
			add(v, word, 1)
			for part := []rune(" " + word + " "); len(part) >= 3; part = part[1:] {
				add(v, string(part[:3]), 0.3)
			}
		}
	}
	length := math.Sqrt(dot(v, v))
	if length == 0 {
		return nil
	}
	for i := range v {
		v[i] = math.Round(v[i]/length*1e5) / 1e5
	}
	return v
}

// add adds the weight of a feature to one number of the vector. The hash of the feature chooses the
// number and the sign. With signs, two features that share a number may also cancel out.
func add(v []float64, feature string, weight float64) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(feature)) // a hash never returns an error
	sum := h.Sum32()
	if sum>>31 == 1 {
		weight = -weight
	}
	v[sum%dimensions] += weight
}

func dot(a, b []float64) (sum float64) {
	for i := range min(len(a), len(b)) {
		sum += a[i] * b[i]
	}
	return sum
}

// cosine returns how similar two vectors are: 1 for the same direction, and 0 if they have nothing
// in common.
func cosine(a, b []float64) float64 {
	if lengths := math.Sqrt(dot(a, a) * dot(b, b)); lengths > 0 && len(a) == len(b) {
		return dot(a, b) / lengths
	}
	return 0
}
