package filters

import (
	"fmt"
	"strings"
	"unicode"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func filterFormat(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	if p.Named.Len() > 0 {
		if len(p.Rest) > 0 {
			return nil, fmt.Errorf("takes either positional or named arguments, not both")
		}
		return expr.FormatPercent(s, p.Named)
	}
	args := make([]any, len(p.Rest))
	for i, a := range p.Rest {
		if args[i], err = expr.Defined(a); err != nil {
			return nil, err
		}
	}
	return expr.FormatPercent(s, args)
}

// commentStyle is the layout of a block comment; see filterComment.
type commentStyle struct{ beginning, decoration, end string }

func commentStyles() map[string]commentStyle {
	return map[string]commentStyle{
		"plain":  {decoration: "# "},
		"erlang": {decoration: "% "},
		"c":      {decoration: "// "},
		"cblock": {beginning: "/*", decoration: " * ", end: " */"},
		"xml":    {beginning: "<!--", decoration: " - ", end: "-->"},
	}
}

// commentParams are the texts around a comment, by argument name.
type commentParams struct {
	newline, beginning, prefix, decoration, postfix, end string
	prefixCount, postfixCount                            int
}

func filterComment(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	name := p.Str("style", "plain")
	style, ok := commentStyles()[name]
	if !ok {
		return nil, fmt.Errorf("Invalid style %q (there are plain, erlang, c, cblock, xml)", name)
	}
	o, err := commentArgs(style, p)
	if err != nil {
		return nil, err
	}
	if lines := strings.Count(text, o.newline) + 1; lines > expr.MaxText/max(1, len(o.decoration)) {
		return nil, expr.ErrTextTooBig
	}
	return o.around(text), nil
}

func commentArgs(style commentStyle, p *expr.Bound) (*commentParams, error) {
	decoration := style.decoration
	if v, ok := p.Named.Get("decoration"); ok {
		decoration = value.Str(v)
	}
	edge := strings.TrimRightFunc(decoration, unicode.IsSpace)
	o := &commentParams{
		newline: "\n", beginning: style.beginning, prefix: edge, decoration: decoration,
		postfix: edge, end: style.end, prefixCount: 1, postfixCount: 1,
	}
	texts := map[string]*string{
		"newline": &o.newline, "beginning": &o.beginning, "prefix": &o.prefix,
		"decoration": &o.decoration, "postfix": &o.postfix, "end": &o.end,
	}
	counts := map[string]*int{"prefix_count": &o.prefixCount, "postfix_count": &o.postfixCount}
	for k, v := range p.Named.All() {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		name := value.Str(k)
		if text, ok := texts[name]; ok {
			*text = value.Str(v)
			continue
		}
		n, ok := expr.WholeNumber(v)
		count, known := counts[name]
		switch {
		case !known:
			return nil, p.Unknown(name)
		case !ok || n < 0 || n > expr.MaxItems:
			return nil, fmt.Errorf("argument %s must be a small whole number, not %s", name, value.Repr(v))
		}
		*count = n
	}
	if o.newline == "" {
		return nil, fmt.Errorf("argument newline must not be empty")
	}
	return o, nil
}

func (o *commentParams) around(text string) string {
	var b strings.Builder
	if o.beginning != "" {
		b.WriteString(o.beginning + o.newline)
	}
	prefix := o.prefix
	if prefix != "" && prefix != o.newline {
		prefix += o.newline
	}
	b.WriteString(strings.Repeat(prefix, o.prefixCount))
	body := o.decoration + strings.ReplaceAll(text, o.newline, o.newline+o.decoration)
	bare := strings.TrimRightFunc(o.decoration, unicode.IsSpace)
	b.WriteString(strings.ReplaceAll(body, o.decoration+o.newline, bare+o.newline))
	b.WriteString(strings.Repeat(o.newline+o.postfix, o.postfixCount))
	if o.end != "" {
		b.WriteString(o.newline + o.end)
	}
	return b.String()
}
