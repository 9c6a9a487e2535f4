package general

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// unitFilters returns the filters of community.general that convert a duration such as 1h 30m to a number.
func unitFilters() []expr.Filter {
	specs := []expr.Filter{{Names: "to_time_unit", Of: "community.general", Params: "unit year month",
		Do: func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
			return inUnit(in, p.Str("unit", "ms"), p)
		}}}
	for name, unit := range map[string]string{
		"milliseconds": "ms", "seconds": "s", "minutes": "m", "hours": "h", "days": "d", "weeks": "w", "months": "mo",
		"years": "y",
	} {
		specs = append(specs, expr.Filter{Names: "to_" + name, Of: "community.general", Params: "year month",
			Do: func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
				return inUnit(in, unit, p)
			}})
	}
	return specs
}

// shortUnit returns the short name of a unit, which may be a plural.
func shortUnit(name string) string {
	switch strings.TrimRight(name, "s") {
	case "millisecond", "msec":
		return "ms"
	case "second", "sec":
		return "s"
	case "minute", "min":
		return "m"
	case "hour":
		return "h"
	case "day":
		return "d"
	case "week":
		return "w"
	case "month":
		return "mo"
	case "year":
		return "y"
	}
	return name
}

// milliseconds returns the milliseconds per unit. p defines the number of days in a year and a month.
func milliseconds(p *expr.Bound) map[string]float64 {
	const day = 24 * 60 * 60 * 1000
	return map[string]float64{
		"ms": 1, "s": 1000, "m": 60 * 1000, "h": 60 * 60 * 1000, "d": day, "w": 7 * day,
		"mo": float64(p.Int("month", 30)) * day, "y": float64(p.Int("year", 365)) * day,
	}
}

var timePart = regexp.MustCompile(`^(-?\d+)(\w+)`)

// inUnit adds up the parts of a duration. The result has at most twelve decimal places.
func inUnit(in any, unit string, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	units := milliseconds(p)
	switch {
	case p.Err != nil:
		return nil, p.Err
	case text == "0":
		return 0, nil
	}
	per, known := units[shortUnit(unit)]
	if !known || per == 0 {
		return nil, fmt.Errorf("%s is not a unit of time that has a length: ms, s, m, h, d, w, mo and y are, and their names",
			value.Repr(unit))
	}
	sum := 0.0
	for _, part := range strings.Fields(text) {
		m := timePart.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%s in %s is no number with a unit, as 30m is", value.Repr(part),
				value.Repr(expr.Shorten(text)))
		}
		each, known := units[shortUnit(m[2])]
		if !known {
			return nil, fmt.Errorf("%s has the unit %s: ms, s, m, h, d, w, mo and y are known, and their names",
				value.Repr(part), value.Repr(m[2]))
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: the number is too large", value.Repr(part))
		}
		sum += n * each
	}
	return strconv.ParseFloat(strconv.FormatFloat(sum/per, 'f', 12, 64), 64)
}
