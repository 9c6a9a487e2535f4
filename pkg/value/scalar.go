package value

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// What a plain scalar is, in the order in which it is tried. The patterns are
// those of YAML 1.1 that playbooks were always read by, but for numbers to the
// base of 60 (12:30:45): those stay text, as people mean them.
var (
	yamlNull  = regexp.MustCompile(`^(?:~|null|Null|NULL)?$`)
	yamlBool  = regexp.MustCompile(`^(?:(true|True|TRUE|yes|Yes|YES|on|On|ON)|false|False|FALSE|no|No|NO|off|Off|OFF)$`)
	yamlInt   = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$`)
	yamlFloat = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
)

// Scalar turns a scalar node into a value, by the rules of YAML 1.1: yes, no,
// on and off are booleans, 0644 is octal, 08, 0o17 and 1e5 are text (a float has a
// point). Dates and times stay text; so do integers beyond 64 bits, whose
// digits would be lost. An explicit tag (!!int) that does not fit is an error.
// Application tags (!unsafe, !vault) are handled by the caller.
func Scalar(n *yaml.Node) (any, error) {
	if n.Style&yaml.TaggedStyle != 0 {
		return tagged(n)
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, nil
	}
	return plain(n.Value), nil
}

func plain(text string) any {
	if yamlNull.MatchString(text) {
		return nil
	}
	if m := yamlBool.FindStringSubmatch(text); m != nil {
		return m[1] != ""
	}
	if yamlInt.MatchString(text) {
		return intOf(text)
	}
	if yamlFloat.MatchString(text) {
		return floatOf(text)
	}
	return text
}

// intOf returns an int, or the text itself when it does not fit into one.
func intOf(text string) any {
	digits := strings.ReplaceAll(text, "_", "")
	sign := strings.TrimRight(digits[:1], "0123456789")
	digits = digits[len(sign):]
	if len(digits) > 1 && digits[0] == '0' && digits[1] != 'x' && digits[1] != 'b' {
		digits = "0o" + digits[1:]
	}
	if i, err := strconv.ParseInt(strings.TrimPrefix(sign, "+")+digits, 0, 64); err == nil {
		return int(i)
	}
	return text
}

func floatOf(text string) any {
	switch strings.ToLower(strings.TrimPrefix(text, "+")) {
	case ".inf":
		return math.Inf(1)
	case "-.inf":
		return math.Inf(-1)
	case ".nan":
		return math.NaN()
	}
	if f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64); err == nil {
		return f
	}
	return text
}

// tagged is the value of a scalar whose type is written before it.
func tagged(n *yaml.Node) (any, error) {
	v := plain(n.Value)
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil, nil
	case "!!bool":
		if _, ok := v.(bool); ok {
			return v, nil
		}
	case "!!int":
		if _, ok := v.(int); ok {
			return v, nil
		}
	case "!!float":
		switch v := v.(type) {
		case int:
			return float64(v), nil
		case float64:
			return v, nil
		}
	case "!!binary":
		text, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err == nil {
			return string(text), nil
		}
	default:
		return n.Value, nil
	}
	return nil, &YAMLError{n.Line, n.Column,
		fmt.Sprintf("%q is not a valid %s", n.Value, strings.TrimPrefix(n.ShortTag(), "!!"))}
}
