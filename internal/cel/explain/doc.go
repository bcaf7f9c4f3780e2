// Package explain finds out, when a condition is compiled, what it demands of an
// object, and says in the words of the API conventions why an object does not
// meet it: which field is wrong and how.
//
// An [Explanation] stands beside the program that it explains: [Compiler] gives
// both for the conditions of a policy, [OfRules] the explanations for the rules of
// a schema.
package explain
