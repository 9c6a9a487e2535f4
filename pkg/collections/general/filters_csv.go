package general

import (
	"encoding/csv"
	"fmt"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

// filterFromCSV converts each row to a dictionary. It follows the rules of Python's csv module, except that a quote
// in the middle of a text is kept.
func filterFromCSV(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord, r.LazyQuotes = -1, !p.Flag("strict", false)
	r.TrimLeadingSpace = p.Flag("skipinitialspace", false)
	switch dialect := p.Str("dialect", "excel"); dialect {
	case "excel", "unix":
	case "excel-tab":
		r.Comma = '\t'
	default:
		return nil, fmt.Errorf("Dialect '%s' is not supported: name excel, excel-tab or unix",
			dialect) //nolint:staticcheck // the text users know
	}
	if d := []rune(p.Str("delimiter", "")); len(d) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", d[0]) {
		r.Comma = d[0]
	} else if len(d) > 0 {
		return nil, fmt.Errorf("argument delimiter must be one character, not %q", string(d))
	}
	names := p.Value("fieldnames", nil)
	if p.Err != nil {
		return nil, p.Err
	}
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("Unable to process file: %w", err) //nolint:staticcheck // the text users know
	}
	var header []any
	if names != nil {
		if header, err = expr.Items(names); err != nil {
			return nil, fmt.Errorf("argument fieldnames: %w", err)
		}
	} else if len(rows) > 0 {
		header, rows = value.List(rows[0]), rows[1:]
	}
	out := make([]any, len(rows))
	for i, row := range rows {
		if out[i], err = csvRow(header, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// csvRow uses None as the value of missing cells. Cells without a column name are listed under the key None.
func csvRow(header []any, row []string) (*value.Dict, error) {
	d := value.NewDict()
	for i, name := range header {
		key, ok := filters.Hashable(name)
		if !ok {
			return nil, fmt.Errorf("%s is no name of a field", value.Repr(name))
		}
		if i < len(row) {
			d.Set(key, row[i])
		} else {
			d.Set(key, nil)
		}
	}
	if len(row) > len(header) {
		d.Set(nil, value.List(row[len(header):]))
	}
	return d, nil
}
