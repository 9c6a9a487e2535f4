package config

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var errCalendar = errors.New("is no calendar expression of systemd, as in \"*-*-* 02:00:00\", \"Mon..Fri 22:30\" or " +
	"daily")

// calendar checks a recurring time in the format of systemd.time(7): weekdays, a date, a time and a time zone. Some
// of them may be omitted.
func calendar(s string) error {
	words := strings.Fields(strings.ToLower(s))
	if n := len(words); n > 1 && isZone(strings.Fields(s)[n-1]) {
		words = words[:n-1]
	}
	if len(words) == 1 && namedCalendar(words[0]) {
		return nil
	}
	parts := []func(string) bool{isWeekdays, isDate, isTime}
	for _, word := range words {
		for len(parts) > 0 && !parts[0](word) {
			parts = parts[1:]
		}
		if len(parts) == 0 {
			return errCalendar
		}
		parts = parts[1:]
	}
	if len(words) == 0 {
		return errCalendar
	}
	return nil
}

func namedCalendar(word string) bool {
	switch word {
	case "minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "semi-annually",
		"bi-annually", "biannually", "yearly", "annually", "anually":
		return true
	}
	seconds, ok := strings.CutPrefix(word, "@")
	_, err := strconv.ParseUint(seconds, 10, 31)
	return ok && err == nil
}

func isZone(word string) bool {
	if !regexp.MustCompile(`^[A-Z][A-Za-z0-9_+/-]*$`).MatchString(word) || isWeekdays(strings.ToLower(word)) {
		return false
	}
	if _, err := time.LoadLocation(word); err == nil {
		return true
	}
	_, err := time.LoadLocation("Europe/Berlin")
	return err != nil && strings.Contains(word, "/") // this machine has no time zone data
}

func isWeekdays(word string) bool {
	day := `(mon(day)?|tue(s|sday)?|wed(nesday)?|thu(r|rs|rsday)?|fri(day)?|sat(urday)?|sun(day)?)`
	return regexp.MustCompile(`^` + day + `((\.\.|-|,)` + day + `)*,?$`).MatchString(word)
}

// isDate reports whether a token is year-month-day or month-day. With ~ the days count from the end of the month.
func isDate(word string) bool {
	word = strings.Replace(word, "~", "-", 1)
	fields := strings.Split(word, "-")
	if len(fields) == 3 {
		if !isField(fields[0], 0, 2199, false) {
			return false
		}
		fields = fields[1:]
	}
	return len(fields) == 2 && isField(fields[0], 1, 12, false) && isField(fields[1], 1, 31, false)
}

// isTime reports whether a token is hour:minute, with or without seconds.
func isTime(word string) bool {
	fields := strings.Split(word, ":")
	if len(fields) < 2 || len(fields) > 3 || !isField(fields[0], 0, 23, false) || !isField(fields[1], 0, 59, false) {
		return false
	}
	return len(fields) == 2 || isField(fields[2], 0, 59, true)
}

// isField reports whether a text is a list of *, numbers and ranges, each with or without a step.
func isField(text string, low, high float64, fraction bool) bool {
	for _, part := range strings.Split(text, ",") {
		part, step, stepped := strings.Cut(part, "/")
		if stepped && !within(step, 0, high+1, fraction) || stepped && strings.Trim(step, "0.") == "" {
			return false
		}
		if part == "*" {
			continue
		}
		from, to, isRange := strings.Cut(part, "..")
		if !within(from, low, high, fraction) || isRange && (!within(to, low, high, fraction) || number(to) < number(from)) {
			return false
		}
	}
	return true
}

func within(text string, low, high float64, fraction bool) bool {
	pattern := `^\d{1,4}$`
	if fraction {
		pattern = `^\d{1,2}(\.\d{1,6})?$`
	}
	n := number(text)
	return regexp.MustCompile(pattern).MatchString(text) && n >= low && n < high+1
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return n
}
