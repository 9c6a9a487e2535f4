package methods

import (
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// timeMethods are the methods of a datetime.
func timeMethods() []expr.Method {
	at := func(do func(t time.Time) any) func(any, *expr.Bound) (any, error) {
		return func(v any, _ *expr.Bound) (any, error) { return do(v.(time.Time)), nil }
	}
	return []expr.Method{
		{Name: "strftime", Params: "format!", Do: func(v any, p *expr.Bound) (any, error) {
			return expr.Strftime(v.(time.Time), p.Str("format", "")), nil
		}},
		{Name: "timestamp", Do: at(func(t time.Time) any { return float64(t.UnixMicro()) / 1e6 })},
		{Name: "isoformat", Do: at(func(t time.Time) any { return value.ISOFormat(t) })},
		{Name: "weekday", Do: at(func(t time.Time) any { return (int(t.Weekday()) + 6) % 7 })},
		{Name: "isoweekday", Do: at(func(t time.Time) any { return (int(t.Weekday())+6)%7 + 1 })},
		{Name: "date", Do: at(func(t time.Time) any { return t.Format("2006-01-02") })},
		{Name: "time", Do: at(func(t time.Time) any { return t.Format("15:04:05") })},
	}
}
