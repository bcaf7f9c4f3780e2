// Package applicability answers, as policy files are loaded, whether what they say can ever apply: whether a match block can
// match a request, a rule can fail or pass, and a path can be reached. Each question is a function of what the files and the
// configuration say, and returns findings; nothing of the set is changed.
package applicability
