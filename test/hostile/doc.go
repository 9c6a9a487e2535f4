// Package hostile lets hosts say what would be code if anybody evaluated it, and passes it on
// through every module and every keyword: nothing of it may ever run.
package hostile
