package filters

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func timeFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "strftime", Params: "second utc", Do: filterStrftime},
		{Names: "to_datetime", Params: "format", Do: filterToDatetime},
	}
}

// filterStrftime formats a time (seconds since 1970, default now). The value before the bar is the format.
func filterStrftime(c *expr.Call, in any, p *expr.Bound) (any, error) {
	layout, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	at := c.Env.Options().Now()
	if second := p.Value("second", nil); second != nil {
		f, ok := expr.FloatOf(second)
		if s, text := second.(string); text {
			f, ok = pythonFloat(s)
		}
		if !ok || math.IsNaN(f) || math.Abs(f) > 1e11 {
			return nil, fmt.Errorf("Invalid value for epoch value (%s): it must be seconds since 1970", value.Repr(second))
		}
		whole, part := math.Modf(f)
		at = time.Unix(int64(whole), int64(part*1e9))
	}
	if p.Flag("utc", false) {
		at = at.UTC()
	}
	return expr.Strftime(at, layout), nil
}

func filterToDatetime(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	layout := p.Str("format", "%Y-%m-%d %H:%M:%S")
	t, err := ParseTime(s, layout, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("time data %q does not match format %q: %w", expr.Shorten(s), expr.Shorten(layout), err)
	}
	return t, nil
}

// timeParts has the fields that strptime has read so far.
type timeParts struct {
	year, month, day, hour, minute, second, nano, yearDay int
	pm, twelve                                            bool
	zone                                                  *time.Location
	unix                                                  *int
	rest                                                  string
}

// ParseTime parses a time as Python's datetime.strptime does. zone applies when the text names none.
func ParseTime(s, layout string, zone *time.Location) (time.Time, error) {
	p := &timeParts{year: 1900, month: 1, day: 1, zone: zone, rest: s}
	for i := 0; i < len(layout); i++ {
		ch := layout[i]
		switch {
		case ch == '%' && i+1 < len(layout):
			i++
			if err := p.directive(layout[i]); err != nil {
				return time.Time{}, err
			}
		case unicode.IsSpace(rune(ch)):
			p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
		case p.rest == "" || p.rest[0] != ch:
			return time.Time{}, fmt.Errorf("expected %q before %q", ch, p.rest)
		default:
			p.rest = p.rest[1:]
		}
	}
	if p.rest != "" {
		return time.Time{}, fmt.Errorf("%q remains", p.rest)
	}
	return p.time()
}

func (p *timeParts) time() (time.Time, error) {
	if p.unix != nil {
		return time.Unix(int64(*p.unix), 0).UTC(), nil
	}
	if p.twelve {
		p.hour %= 12
		if p.pm {
			p.hour += 12
		}
	}
	if p.yearDay > 0 {
		return time.Date(p.year, 1, p.yearDay, p.hour, p.minute, p.second, p.nano, p.zone), nil
	}
	t := time.Date(p.year, time.Month(p.month), p.day, p.hour, p.minute, p.second, p.nano, p.zone)
	if t.Day() != p.day {
		return t, fmt.Errorf("day %d is out of range for the month", p.day)
	}
	return t, nil
}

// timeField describes a numeric field of a time: its maximum number of digits and its range.
type timeField struct {
	into             *int
	digits, min, max int
}

func (p *timeParts) field(ch byte) (timeField, bool) {
	switch ch {
	case 'Y':
		return timeField{&p.year, 4, 1, 9999}, true
	case 'm':
		return timeField{&p.month, 2, 1, 12}, true
	case 'd', 'e':
		return timeField{&p.day, 2, 1, 31}, true
	case 'H':
		return timeField{&p.hour, 2, 0, 23}, true
	case 'I':
		p.twelve = true
		return timeField{&p.hour, 2, 1, 12}, true
	case 'M':
		return timeField{&p.minute, 2, 0, 59}, true
	case 'S':
		return timeField{&p.second, 2, 0, 61}, true
	case 'j':
		return timeField{&p.yearDay, 3, 1, 366}, true
	}
	return timeField{}, false
}

func (p *timeParts) directive(ch byte) error {
	if f, ok := p.field(ch); ok {
		return p.number(f)
	}
	switch ch {
	case 'y':
		if err := p.number(timeField{&p.year, 2, 0, 99}); err != nil {
			return err
		}
		p.year += 1900
		if p.year < 1969 {
			p.year += 100
		}
		return nil
	case 'f':
		return p.fraction()
	case 's':
		p.unix = new(int)
		return p.number(timeField{p.unix, 11, 0, 99_999_999_999})
	case 'b', 'B', 'h':
		n, err := p.name(12, func(i int) string { return time.Month(i + 1).String() })
		p.month = n + 1
		return err
	case 'a', 'A':
		_, err := p.name(7, func(i int) string { return time.Weekday(i).String() })
		return err
	case 'p':
		n, err := p.name(2, func(i int) string { return [...]string{"AM", "PM"}[i] })
		p.pm, p.twelve = n == 1, true
		return err
	case 'z', 'Z':
		return p.offset()
	case '%':
		if !strings.HasPrefix(p.rest, "%") {
			return fmt.Errorf("expected %% before %q", p.rest)
		}
		p.rest = p.rest[1:]
		return nil
	}
	return p.composed(ch)
}

// composed reads directives that are shorthand for several others.
func (p *timeParts) composed(ch byte) error {
	layouts := map[byte]string{'T': "H:M:S", 'R': "H:M", 'D': "m/d/y", 'F': "Y-m-d"}
	layout, ok := layouts[ch]
	if !ok {
		return fmt.Errorf("bad directive %%%c in the format", ch)
	}
	for i := range len(layout) {
		if i%2 == 0 {
			if err := p.directive(layout[i]); err != nil {
				return err
			}
			continue
		}
		if !strings.HasPrefix(p.rest, layout[i:i+1]) {
			return fmt.Errorf("expected %q before %q", layout[i], p.rest)
		}
		p.rest = p.rest[1:]
	}
	return nil
}

func (p *timeParts) digits(most int) string {
	n := 0
	for n < len(p.rest) && n < most && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

func (p *timeParts) number(f timeField) error {
	text := p.digits(f.digits)
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("expected a number before %q", p.rest)
	}
	if n < f.min || n > f.max {
		return fmt.Errorf("%d is not from %d to %d", n, f.min, f.max)
	}
	*f.into = n
	return nil
}

func (p *timeParts) fraction() error {
	text := p.digits(6)
	n, err := strconv.Atoi((text + "000000000")[:9])
	if err != nil || text == "" {
		return fmt.Errorf("expected digits before %q", p.rest)
	}
	p.nano = n
	return nil
}

// name reads a full or three-letter name in any case.
func (p *timeParts) name(n int, nth func(int) string) (int, error) {
	for _, short := range []bool{false, true} {
		for i := range n {
			name := nth(i)
			if short {
				name = name[:min(3, len(name))]
			}
			if len(p.rest) >= len(name) && strings.EqualFold(p.rest[:len(name)], name) {
				p.rest = p.rest[len(name):]
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("no name is known at %q", p.rest)
}

// offset reads Z, UTC, GMT, +hhmm and +hh:mm.
func (p *timeParts) offset() error {
	for _, name := range []string{"UTC", "GMT", "Z"} {
		if rest, ok := strings.CutPrefix(p.rest, name); ok {
			p.rest = rest
			return nil
		}
	}
	if p.rest == "" || p.rest[0] != '+' && p.rest[0] != '-' {
		return fmt.Errorf("expected a time zone before %q", p.rest)
	}
	sign := 1
	if p.rest[0] == '-' {
		sign = -1
	}
	p.rest = p.rest[1:]
	var hours, minutes int
	if err := p.number(timeField{&hours, 2, 0, 23}); err != nil {
		return err
	}
	p.rest = strings.TrimPrefix(p.rest, ":")
	if err := p.number(timeField{&minutes, 2, 0, 59}); err != nil {
		return err
	}
	p.zone = time.FixedZone("", sign*(hours*3600+minutes*60))
	return nil
}
