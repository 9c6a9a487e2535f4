// Package language holds the language to what people know of it: every case is
// one file below testdata, run in this process through the command line.
package language
