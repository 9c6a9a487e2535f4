package expr

import "time"

// strftime formats a time as Python's strftime does.
func strftime(t time.Time, layout string) string { return "" }
