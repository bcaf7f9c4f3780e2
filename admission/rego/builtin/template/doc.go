// Package template is Go's text/template (1.26.8, with its license) as strings.render_template needs it. It calls no
// methods of values: JSON values have none that a template may call, and a program that looks methods up by name keeps
// all exported methods of all its types, as the linker cannot know which are called. OPA has the same copy for the same
// reason, where other modules cannot import it.
//
// Beside methods, what text/template has for other uses is left out: options, delimiters, files, copies, locks, and an
// order of the keys of maps that are not strings.
package template
