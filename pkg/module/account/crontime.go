package account

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/schema"
)

// cronField is one of the five time fields of a crontab line.
type cronField struct {
	name        string
	least, most int
	words       []string // names of numbers, from least on
}

// cronTimes are the rules of the fields. No crontab reads /etc/cron.d when it is
// written, and crond never runs a line that it cannot read.
func cronTimes() schema.Rules {
	var rules schema.Rules
	for _, f := range []cronField{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day", 1, 31, nil},
		{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
		{"weekday", 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
	} {
		what := fmt.Sprintf("*, or numbers and ranges from %d to %d", f.least, f.most)
		rules = append(rules, schema.Parses(what, f.check, f.name).If("state", "present").Unless("env", true))
	}
	return rules
}

// check accepts what crond reads: *, numbers and ranges, with commas between,
// each with or without a step. A ~ between two numbers is one of them at random.
func (f cronField) check(text string) error {
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		span, step, stepped := strings.Cut(part, "/")
		if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
			return fmt.Errorf("%s: the step of %q must be a number from 1 on", f.name, part)
		}
		if span == "*" {
			continue
		}
		if err := f.span(span); err != nil {
			return err
		}
	}
	return nil
}

func (f cronField) span(text string) error {
	first, last, isRange := strings.Cut(text, "-")
	if from, to, random := strings.Cut(text, "~"); random {
		first, last, isRange = from, to, from != "" && to != ""
		if !isRange {
			first = from + to
		}
		if first == "" {
			return nil
		}
	}
	from, ok := f.number(first)
	if !ok {
		return f.refuse(first)
	}
	if !isRange {
		return nil
	}
	to, ok := f.number(last)
	switch {
	case !ok:
		return f.refuse(last)
	case f.name == "weekday" && to == 0:
		to = 7
	}
	if to < from {
		return fmt.Errorf("%s: the range %s is reversed: write %s-%d,%d-%s",
			f.name, text, first, f.most, f.least, last)
	}
	return nil
}

func (f cronField) number(text string) (int, bool) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return f.least + i, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.least && n <= f.most && strings.Trim(text, "0123456789") == ""
}

func (f cronField) refuse(text string) error {
	names := ""
	if len(f.words) > 0 {
		names = ", and no name from " + f.words[0] + " to " + f.words[len(f.words)-1]
	}
	return fmt.Errorf("%s: %q is no number from %d to %d%s", f.name, text, f.least, f.most, names)
}
