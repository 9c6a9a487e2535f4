package filters

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// Text of playbooks is never escaped automatically, so `safe` does nothing and `forceescape` is `escape`.
func htmlFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "escape e forceescape", Do: onText(escapeHTML)},
		{Names: "safe", Do: onText(func(s string) string { return s })},
		{Names: "striptags", Do: onText(stripTags)},
		{Names: "xmlattr", Params: "autospace", Do: filterXMLAttr},
		{Names: "tojson", Params: "indent", Do: filterToJSONInHTML},
	}
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func stripTags(s string) string {
	for _, pattern := range []string{`(?s)<!--.*?-->`, `(?s)<.*?>`} {
		s = regexp.MustCompile(pattern).ReplaceAllString(s, "")
	}
	return html.UnescapeString(strings.Join(strings.Fields(s), " "))
}

func filterXMLAttr(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	d, err := expr.AsDict(in)
	if err != nil {
		return nil, err
	}
	var attrs []string
	for k, v := range d.All() {
		v, err := value.Force(v)
		if err != nil {
			return nil, err
		}
		if v == nil || value.IsUndefined(v) {
			continue
		}
		name := value.Str(k)
		if strings.ContainsAny(name, " \t\n\r\f/>=") {
			return nil, fmt.Errorf("%q is no name for an attribute", name)
		}
		attrs = append(attrs, escapeHTML(name)+`="`+escapeHTML(value.Str(v))+`"`)
	}
	out := strings.Join(attrs, " ")
	if out != "" && p.Flag("autospace", true) {
		out = " " + out
	}
	return out, nil
}

func filterToJSONInHTML(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	indent, err := indentWidth(p, 0)
	if err != nil {
		return nil, err
	}
	s, err := value.JSON(in, value.JSONOptions{SortKeys: true, ASCII: true, Indent: indent})
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`).Replace(s), err
}
