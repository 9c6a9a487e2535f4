// Package methods implements the methods of strings, lists, dicts and times, and the global functions.
package methods

import "kubekey/pkg/expr"

// Rows returns the methods of all types.
func Rows() expr.Methods {
	return expr.Methods{Str: stringMethods(), List: listMethods(), Dict: dictMethods(), Datetime: timeMethods()}
}
