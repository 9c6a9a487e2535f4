package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timedelta is the difference of two times, like Python's.
type timedelta time.Duration

// split returns days (floored, can be negative), seconds of the day and microseconds.
func (t timedelta) split() (days, seconds, micros int) {
	us := time.Duration(t).Microseconds()
	const day = int64(24 * time.Hour / time.Microsecond)
	days = int(us / day)
	us %= day
	if us < 0 {
		days--
		us += day
	}
	return days, int(us / 1e6), int(us % 1e6)
}

// Attr implements Attrs.
func (t timedelta) Attr(name string) (any, bool) {
	days, seconds, micros := t.split()
	switch name {
	case "days":
		return days, true
	case "seconds":
		return seconds, true
	case "microseconds":
		return micros, true
	case "total_seconds":
		return Func(func(*Call, Args) (any, error) { return time.Duration(t).Seconds(), nil }), true
	}
	return nil, false
}

// TypeName returns Python's name of the type.
func (t timedelta) TypeName() string { return "timedelta" }

// String formats as "1 day, 2:03:04".
func (t timedelta) String() string {
	days, seconds, micros := t.split()
	s := fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if micros != 0 {
		s += fmt.Sprintf(".%06d", micros)
	}
	switch days {
	case 0:
		return s
	case 1, -1:
		return fmt.Sprintf("%d day, %s", days, s)
	}
	return fmt.Sprintf("%d days, %s", days, s)
}

func timeAttr(t time.Time, key any) (any, bool) {
	switch key {
	case "year":
		return t.Year(), true
	case "month":
		return int(t.Month()), true
	case "day":
		return t.Day(), true
	case "hour":
		return t.Hour(), true
	case "minute":
		return t.Minute(), true
	case "second":
		return t.Second(), true
	case "microsecond":
		return t.Nanosecond() / 1000, true
	}
	return nil, false
}

// Strftime formats a time as Python's strftime does, in the C locale. Unknown directives are kept unchanged.
func Strftime(t time.Time, layout string) string {
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		i++
		bare := layout[i] == '-' && i+1 < len(layout)
		if bare {
			i++
		}
		s := strftimeOne(t, layout[i])
		if bare {
			if s = strings.TrimLeft(s, "0 "); s == "" {
				s = "0"
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

// strftimeLayout returns the directives that Go's layouts can express.
func strftimeLayout(c byte) string {
	switch c {
	case 'a':
		return "Mon"
	case 'A':
		return "Monday"
	case 'b', 'h':
		return "Jan"
	case 'B':
		return "January"
	case 'c':
		return "Mon Jan _2 15:04:05 2006"
	case 'd':
		return "02"
	case 'D', 'x':
		return "01/02/06"
	case 'e':
		return "_2"
	case 'F':
		return "2006-01-02"
	case 'H':
		return "15"
	case 'I':
		return "03"
	case 'j':
		return "002"
	case 'm':
		return "01"
	case 'M':
		return "04"
	case 'p':
		return "PM"
	case 'r':
		return "03:04:05 PM"
	case 'R':
		return "15:04"
	case 'S':
		return "05"
	case 'T', 'X':
		return "15:04:05"
	case 'y':
		return "06"
	case 'Y':
		return "2006"
	case 'z':
		return "-0700"
	case 'Z':
		return "MST"
	}
	return ""
}

func strftimeOne(t time.Time, c byte) string {
	if layout := strftimeLayout(c); layout != "" {
		return t.Format(layout)
	}
	year, week := t.ISOWeek()
	switch c {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'G':
		return strconv.Itoa(year)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
	}
	return "%" + string(c)
}
