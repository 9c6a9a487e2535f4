// Package schema ties Go structs to the arguments of playbooks: one struct
// gives strict decoding with positions, defaults, the check of literal
// arguments before a run, and the table in the manual.
//
// A field is an argument when it has a `kk` tag:
//
//	Dest string      `kk:"dest,required,alias=path" doc:"absolute path on the host"`
//	Mode string      `kk:"mode" default:"0644"`
//	State string     `kk:"state" default:"file" choices:"file,absent,directory"`
//	Rest *value.Dict `kk:",rest"`
//
// Types: string, bool, int, float64, []string, []any, map[string]string,
// *value.Dict, any, time.Duration (seconds), redact.Secret, FileMode, pointers to these
// (nil when not given), and structs and slices of structs (nested options).
package schema
