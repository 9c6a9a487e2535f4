package expr

import (
	"time"

	"kubekey/pkg/value"
)

// timeMethods are the methods of a datetime.
func timeMethods() []methodSpec {
	at := func(do func(t time.Time) any) func(any, *bound) (any, error) {
		return func(v any, _ *bound) (any, error) { return do(v.(time.Time)), nil }
	}
	return []methodSpec{
		{name: "strftime", params: "format!", do: func(v any, p *bound) (any, error) {
			return strftime(v.(time.Time), p.str("format", "")), nil
		}},
		{name: "timestamp", do: at(func(t time.Time) any { return float64(t.UnixMicro()) / 1e6 })},
		{name: "isoformat", do: at(func(t time.Time) any { return value.ISOFormat(t) })},
		{name: "weekday", do: at(func(t time.Time) any { return (int(t.Weekday()) + 6) % 7 })},
		{name: "isoweekday", do: at(func(t time.Time) any { return (int(t.Weekday())+6)%7 + 1 })},
		{name: "date", do: at(func(t time.Time) any { return t.Format("2006-01-02") })},
		{name: "time", do: at(func(t time.Time) any { return t.Format("15:04:05") })},
	}
}
