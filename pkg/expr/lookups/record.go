package lookups

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/configparser"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/pyregex"
)

// withOptions parses the "key file=x section=y" form: a name, then options that are added to the named arguments.
func withOptions(term string, p *expr.Bound) (string, map[string]string, error) {
	opts := map[string]string{}
	var name []string
	for _, word := range strings.Fields(term) {
		k, v, ok := strings.Cut(word, "=")
		if ok && slices.Contains(p.Names(), k) {
			opts[k] = v
			continue
		}
		name = append(name, word)
	}
	for _, k := range p.Names() {
		if _, set := opts[k]; !set && p.Has(k) {
			opts[k] = p.Str(k, "")
		}
	}
	return strings.Join(name, " "), opts, p.Err
}

// lookupRecords looks up each term in its file, or in the file with the default name.
func lookupRecords(defaultFile string, find func(text, key string, opts map[string]string) ([]any,
	error)) func(*expr.Call, []any, *expr.Bound) ([]any, error) {
	return func(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
		var out []any
		err := eachTerm(terms, func(term string) error {
			key, opts, err := withOptions(term, p)
			if err != nil {
				return err
			}
			file := cmp.Or(opts["file"], defaultFile)
			text, err := readFound(c, file)
			if err != nil {
				return err
			}
			found, err := find(text, key, opts)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			out = append(out, found...)
			return nil
		})
		return out, err
	}
}

// iniValues returns the value of a key, or of all keys that match it as a pattern.
func iniValues(text, key string, opts map[string]string) ([]any, error) {
	section := cmp.Or(opts["section"], "global")
	if opts["type"] == "properties" {
		section = "java_properties"
		text = "[" + section + "]\n" + text
	}
	rules := configparser.Rules{Exact: isYes(opts["case_sensitive"]),
		Bare: isYes(cmp.Or(opts["allow_no_value"], opts["allow_none"]))}
	file, wrong := configparser.Parse(text, rules)
	if len(wrong) > 0 {
		return nil, wrongINI(wrong[0])
	}
	options, found := file.Section(section)
	if !found {
		return nil, fmt.Errorf("there is no section %q", section)
	}
	if isYes(opts["re"]) {
		return matchingOptions(options, key)
	}
	if !rules.Exact {
		key = strings.ToLower(key)
	}
	for _, o := range options {
		if o.Name == key {
			return []any{optionValue(o)}, nil
		}
	}
	return []any{opts["default"]}, nil
}

// wrongINI omits the content of the line, because the file can contain passwords.
func wrongINI(p *configparser.Problem) error {
	if p.Kind == configparser.NoSection || p.Kind == configparser.NoOption {
		return fmt.Errorf("line %d is no [section], and no key = value below one", p.Line)
	}
	return fmt.Errorf("line %d: %w", p.Line, p)
}

func matchingOptions(options []*configparser.Option, pattern string) ([]any, error) {
	re, err := filters.NewPatterns().Get(pattern, pyregex.AtStart)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, o := range options {
		found, err := re.Matches(o.Name)
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, optionValue(o))
		}
	}
	return out, nil
}

// optionValue returns None for an option without a sign and a value.
func optionValue(o *configparser.Option) any {
	if o.Bare {
		return nil
	}
	return o.Value
}

func isYes(option string) bool {
	return strings.EqualFold(option, "true") || option == "yes"
}

// csvCell returns the cell of the row that starts with key.
func csvCell(text, key string, opts map[string]string) ([]any, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	r.Comma = '\t'
	switch d := []rune(opts["delimiter"]); {
	case opts["delimiter"] == "TAB" || opts["delimiter"] == `\t` || len(d) == 0:
	case len(d) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", d[0]):
		r.Comma = d[0]
	default:
		return nil, fmt.Errorf("argument delimiter must be one character, not %q", opts["delimiter"])
	}
	col := 1
	if text, ok := opts["col"]; ok {
		n, ok := expr.WholeNumber(text)
		if !ok || n < 0 {
			return nil, fmt.Errorf("argument col must be the number of a column, not %q", text)
		}
		col = n
	}
	records, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range records {
		if len(row) == 0 || row[0] != key {
			continue
		}
		if col >= len(row) {
			return nil, fmt.Errorf("the row of %q has %d columns, and col asks for number %d, counted from 0", key, len(row),
				col)
		}
		return []any{row[col]}, nil
	}
	if v, ok := opts["default"]; ok {
		return []any{v}, nil
	}
	return nil, nil
}
