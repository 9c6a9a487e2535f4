package sql

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/value"
)

// queries reads the argument query: a text or a list of them.
func queries(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, q := range list {
		text := strings.TrimRight(strings.TrimSpace(value.Str(q)), "; \n")
		if text == "" {
			return nil, fmt.Errorf("query is empty")
		}
		out = append(out, text)
	}
	return out, nil
}

// reading are the first words of statements that are read-only.
var reading = []string{"SELECT", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "VALUES", "TABLE"}

func reads(statement string) bool {
	word := strings.ToUpper(firstWord.FindString(statement))
	return slices.Contains(reading, word)
}

var firstWord = regexp.MustCompile(`^\w+`)

// fill inserts quoted arguments into a statement: %s in order, or %(NAME)s; %% is a percent sign. Without arguments
// the statement is not modified.
func fill(statement string, positional []any, named *value.Dict, quote func(any) string) (string, error) {
	if len(positional) == 0 && named.Len() == 0 {
		return statement, nil
	}
	var err error
	next := 0
	out := placeholder.ReplaceAllStringFunc(statement, func(p string) string {
		switch {
		case p == "%%":
			return "%"
		case p == "%s":
			if next++; next > len(positional) {
				err = fmt.Errorf("query has more than %d places for positional_args", len(positional))
				return p
			}
			return quote(positional[next-1])
		}
		v, ok := named.Get(p[2 : len(p)-2])
		if !ok {
			err = fmt.Errorf("named_args has no %s", p[2:len(p)-2])
		}
		return quote(v)
	})
	if err == nil && next < len(positional) {
		err = fmt.Errorf("query has %d places for %d positional_args", next, len(positional))
	}
	return out, err
}

var placeholder = regexp.MustCompile(`%%|%s|%\(\w+\)s`)

// literal quotes a value for a statement.
func literal(text func(string) string) func(any) string {
	return func(v any) string {
		switch v := v.(type) {
		case nil:
			return "NULL"
		case bool:
			return strings.ToUpper(fmt.Sprint(v))
		case string:
			return text(v)
		}
		if s := value.Str(v); number.MatchString(s) {
			return s
		}
		return text(value.Str(v))
	}
}

var number = regexp.MustCompile(`^-?\d+(\.\d+)?$`)

// clientError returns the error message of a failed database client, or nil if it succeeded.
func clientError(a hostscript.Answer) error {
	if !a.Has("error") {
		return nil
	}
	return errors.New(cmp.Or(strings.TrimSpace(a.Get("error")), "the client failed without saying why"))
}
