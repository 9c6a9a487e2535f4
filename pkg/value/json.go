package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrTooDeep is returned for data nested deeper than 100 levels.
var ErrTooDeep = errors.New("nested too deep (more than 100 levels)")

// FromJSON decodes one JSON document; objects keep their order, numbers
// without fraction are ints.
func FromJSON(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := decodeJSON(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("extra data after the JSON value at byte %d", dec.InputOffset())
	}
	return v, nil
}

func decodeJSON(dec *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, ErrTooDeep
	}
	tok, err := dec.Token()
	if err == io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Number:
		return jsonNumber(t)
	case json.Delim:
		if t == '[' {
			return decodeArray(dec, depth)
		}
		return decodeObject(dec, depth)
	}
	return tok, nil
}

func jsonNumber(n json.Number) (any, error) {
	if i, err := strconv.Atoi(n.String()); err == nil {
		return i, nil
	}
	return strconv.ParseFloat(n.String(), 64)
}

func decodeArray(dec *json.Decoder, depth int) (any, error) {
	out := []any{}
	for dec.More() {
		v, err := decodeJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := dec.Token()
	return out, err
}

func decodeObject(dec *json.Decoder, depth int) (any, error) {
	out := NewDict()
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	_, err := dec.Token()
	return out, err
}

// JSONOptions are the layout options of Python's json.dumps.
type JSONOptions struct {
	Indent   int  // spaces per level; 0 writes one line
	SortKeys bool // keys in order of code points
	ASCII    bool // escape non-ASCII characters
	Compact  bool // "," and ":" without blanks
}

// JSON encodes a value as json.dumps does: ", " and ": " as separators, keys converted to strings.
func JSON(v any, o JSONOptions) (string, error) {
	w := jsonWriter{JSONOptions: o}
	err := w.write(v, 0)
	return w.b.String(), err
}

type jsonWriter struct {
	JSONOptions
	b strings.Builder
}

func (w *jsonWriter) write(v any, depth int) error {
	if depth > maxDepth {
		return ErrTooDeep
	}
	v, err := Force(v)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strconv.FormatBool(v))
	case int:
		w.b.WriteString(strconv.Itoa(v))
	case float64:
		w.b.WriteString(jsonFloat(v))
	case string:
		w.quote(v)
	case time.Time:
		w.quote(ISOFormat(v))
	case []any:
		return w.list(v, depth)
	case *Dict:
		return w.dict(v, depth)
	case *Undefined:
		return v
	case Sealed:
		return w.dict(NewDict("__ansible_vault", v.Text), depth) // as Ansible writes it
	default:
		return fmt.Errorf("a value of type %s cannot be written as JSON", TypeName(v))
	}
	return nil
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	return Float(f)
}

func (w *jsonWriter) list(list []any, depth int) error {
	if len(list) == 0 {
		w.b.WriteString("[]")
		return nil
	}
	w.b.WriteByte('[')
	for i, e := range list {
		w.separate(i, depth+1)
		if err := w.write(e, depth+1); err != nil {
			return err
		}
	}
	w.newline(depth)
	w.b.WriteByte(']')
	return nil
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.b.WriteString("{}")
		return nil
	}
	type pair struct {
		key string
		v   any
	}
	pairs := make([]pair, 0, d.Len())
	for k, v := range d.All() {
		pairs = append(pairs, pair{jsonKey(k), v})
	}
	if w.SortKeys {
		sort.SliceStable(pairs, func(i, j int) bool { return pairs[i].key < pairs[j].key })
	}
	w.b.WriteByte('{')
	for i, p := range pairs {
		w.separate(i, depth+1)
		w.quote(p.key)
		if w.Compact {
			w.b.WriteByte(':')
		} else {
			w.b.WriteString(": ")
		}
		if err := w.write(p.v, depth+1); err != nil {
			return err
		}
	}
	w.newline(depth)
	w.b.WriteByte('}')
	return nil
}

func jsonKey(k any) string {
	switch k := k.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(k)
	}
	return Str(k)
}

func (w *jsonWriter) separate(i, depth int) {
	switch {
	case i > 0 && (w.Compact || w.Indent > 0):
		w.b.WriteByte(',')
	case i > 0:
		w.b.WriteString(", ")
	}
	w.newline(depth)
}

func (w *jsonWriter) newline(depth int) {
	if w.Indent > 0 {
		w.b.WriteByte('\n')
		w.b.WriteString(strings.Repeat(" ", w.Indent*depth))
	}
}

func (w *jsonWriter) quote(s string) {
	w.b.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(r)
		case r == '\n':
			w.b.WriteString(`\n`)
		case r == '\r':
			w.b.WriteString(`\r`)
		case r == '\t':
			w.b.WriteString(`\t`)
		case r == '\b':
			w.b.WriteString(`\b`)
		case r == '\f':
			w.b.WriteString(`\f`)
		case r < ' ' || (w.ASCII && r > 0x7e && r < 0x10000):
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.ASCII && r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			w.b.WriteRune(r)
		}
		i += size
	}
	w.b.WriteByte('"')
}
