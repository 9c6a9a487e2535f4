package expr

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/pyregex"
	"kubekey/pkg/value"
)

// withOptions reads the "key file=x section=y" form: a name, then options
// that add to the named arguments.
func withOptions(term string, p *bound) (string, map[string]string, error) {
	opts := map[string]string{}
	var name []string
	for _, word := range strings.Fields(term) {
		k, v, ok := strings.Cut(word, "=")
		if ok && slices.Contains(p.sig.params, k) {
			opts[k] = v
			continue
		}
		name = append(name, word)
	}
	for _, k := range p.sig.params {
		if _, set := opts[k]; !set && p.has(k) {
			opts[k] = p.str(k, "")
		}
	}
	return strings.Join(name, " "), opts, p.err
}

// lookupRecords looks each term up in the file that it names, or in the one
// of the default name.
func lookupRecords(defaultFile string, find func(text, key string, opts map[string]string) ([]any, error)) func(*Call, []any, *bound) ([]any, error) {
	return func(c *Call, terms []any, p *bound) ([]any, error) {
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

// iniValues are the values of a key, or of all keys that match it as a pattern.
func iniValues(text, key string, opts map[string]string) ([]any, error) {
	section := cmp.Or(opts["section"], "global")
	if opts["type"] == "properties" {
		section = ""
	}
	exact := isYes(opts["case_sensitive"])
	values, err := iniSection(text, section, exact)
	if err != nil {
		return nil, err
	}
	if isYes(opts["re"]) {
		re, err := pyregex.Compile(key, pyregex.AtStart, matchTime)
		if err != nil {
			return nil, badPattern(key, err)
		}
		var out []any
		for k, v := range values.All() {
			found, err := re.Matches(value.Str(k))
			if err != nil {
				return nil, err
			}
			if found {
				out = append(out, v)
			}
		}
		return out, nil
	}
	if v, ok := values.Get(iniKey(key, exact)); ok {
		return []any{v}, nil
	}
	return []any{opts["default"]}, nil
}

func isYes(option string) bool {
	return strings.EqualFold(option, "true") || option == "yes"
}

// iniKey is a key as it is compared: small, unless its case counts.
func iniKey(key string, exact bool) string {
	if exact {
		return key
	}
	return strings.ToLower(key)
}

// iniSection are the keys of a section; those of [DEFAULT] are in all. The
// section "" is what comes before the first one.
func iniSection(text, section string, exact bool) (*value.Dict, error) {
	d, current, last, depth := value.NewDict(), "", "", 0
	own, found := map[string]bool{}, section == "" || section == "DEFAULT"
	for _, line := range splitLines(text) {
		trimmed := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case last != "" && indent > depth: // the value above goes on
			d.Set(last, d.String(last)+"\n"+trimmed)
			continue
		}
		last = ""
		switch {
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			current = trimmed[1 : len(trimmed)-1]
			found = found || current == section
			continue
		case current != section && current != "DEFAULT":
			continue
		}
		i := strings.IndexAny(trimmed, "=:")
		if i < 0 {
			continue
		}
		k := iniKey(strings.TrimSpace(trimmed[:i]), exact)
		if current == section && own[k] {
			return nil, fmt.Errorf("the key %q is more than once in section %q", k, section)
		}
		if current == section || !d.Has(k) {
			last, depth, own[k] = k, indent, current == section
			d.Set(k, strings.TrimSpace(trimmed[i+1:]))
		}
	}
	if !found {
		return nil, fmt.Errorf("there is no section %q", section)
	}
	return d, nil
}

// csvCell is the cell of the row that starts with key.
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
		n, ok := wholeNumber(text)
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
			return nil, fmt.Errorf("the row of %q has %d columns, and col asks for number %d, counted from 0", key, len(row), col)
		}
		return []any{row[col]}, nil
	}
	if v, ok := opts["default"]; ok {
		return []any{v}, nil
	}
	return nil, nil
}
