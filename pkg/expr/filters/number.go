package filters

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func numberFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "int", Params: "default base", Do: filterInt},
		{Names: "float", Params: "default", Do: filterFloat},
		{Names: "abs", Do: filterAbs},
		{Names: "round", Params: "precision method", Do: filterRound},
		{Names: "log", Params: "base", Do: filterLog},
		{Names: "pow", Params: "exponent!", Do: filterPow},
		{Names: "root", Params: "base", Do: filterRoot},
		{Names: "random", Params: "start step seed", Do: filterRandom},
		{Names: "human_readable", Params: "isbits unit", Do: filterHumanReadable},
		{Names: "human_to_bytes", Params: "default_unit isbits", Do: filterHumanToBytes},
		{Names: "filesizeformat", Params: "binary", Do: filterFileSize},
	}
}

func filterInt(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	fallback, base := p.Value("default", 0), p.Int("base", 10)
	if p.Err != nil {
		return nil, p.Err
	}
	switch v := in.(type) {
	case int:
		return v, nil
	case bool:
		n, _ := expr.WholeNumber(v)
		return n, nil
	case float64:
		return truncated(v, fallback)
	case string:
		if n, ok := pythonInt(v, base); ok {
			return n, nil
		}
		if f, ok := pythonFloat(v); ok {
			return truncated(f, fallback)
		}
	}
	return fallback, nil
}

func truncated(f float64, fallback any) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fallback, nil
	}
	if math.Abs(f) >= 1<<63 {
		return nil, fmt.Errorf("%s does not fit into 64 bits", value.Float(f))
	}
	return int(f), nil
}

// pythonInt parses an int as Python's int(text, base): surrounding blanks, a sign, single underscores between
// digits, and the prefix of its base are allowed.
func pythonInt(s string, base int) (int, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	sign, digits := "", s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, digits = s[:1], s[1:]
	}
	if base != 0 {
		for prefix, b := range map[string]int{"0x": 16, "0o": 8, "0b": 2} {
			if b == base {
				digits = strings.TrimPrefix(digits, prefix)
			}
		}
		if strings.HasPrefix(digits, "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__") {
			return 0, false
		}
		digits = strings.ReplaceAll(digits, "_", "")
	}
	if base < 0 || base == 1 || base > 36 || strings.HasPrefix(digits, "+") || strings.HasPrefix(digits, "-") {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+digits, base, 64)
	return int(n), err == nil
}

// pythonFloat parses a float as Python's float(text): no hexadecimal.
func pythonFloat(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "xXpP") || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func filterFloat(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	if f, ok := expr.FloatOf(in); ok {
		return f, nil
	}
	if s, ok := in.(string); ok {
		if f, ok := pythonFloat(s); ok {
			return f, nil
		}
	}
	return p.Value("default", 0.0), nil
}

func filterAbs(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	switch v := in.(type) {
	case int:
		return max(v, -v), nil
	case float64:
		return math.Abs(v), nil
	}
	n, ok := expr.WholeNumber(in)
	if _, text := in.(string); !ok || text {
		return nil, fmt.Errorf("needs a number, not %s", expr.DescribeType(in))
	}
	return n, nil
}

func filterRound(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	f, err := expr.NeedNumber(in)
	if err != nil {
		return nil, err
	}
	digits, method := p.Int("precision", 0), p.Str("method", "common")
	digits = max(-400, min(digits, 400))
	switch method {
	case "common":
		return roundCommon(in, f, digits), nil
	case "ceil":
		return scaled(f, digits, math.Ceil), nil
	case "floor":
		return scaled(f, digits, math.Floor), nil
	}
	return nil, fmt.Errorf("argument method must be common, ceil or floor, not %q", method)
}

func scaled(f float64, digits int, round func(float64) float64) float64 {
	by := math.Pow(10, float64(digits))
	if by == 0 || math.IsInf(by, 0) {
		return f
	}
	return round(f*by) / by
}

// roundCommon rounds the exact decimal value, halves to even, as Python does. An int remains an int.
func roundCommon(in any, f float64, digits int) any {
	n, isInt := in.(int)
	if b, ok := in.(bool); ok {
		n, isInt = 0, true
		if b {
			n = 1
		}
	}
	if isInt && digits >= 0 {
		return n
	}
	var out float64
	if digits >= 0 {
		out, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
	} else {
		by := math.Pow(10, float64(-digits))
		out = math.RoundToEven(f/by) * by
		if math.IsInf(by, 0) {
			out = 0
		}
	}
	if isInt {
		return int(out)
	}
	return out
}

// mathNumber returns an operand of log, pow or root.
func mathNumber(v any) (float64, error) {
	f, ok := expr.FloatOf(v)
	if !ok {
		return 0, fmt.Errorf("can only be used on numbers, not on %s", expr.DescribeType(v))
	}
	return f, nil
}

func filterLog(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	x, err := mathNumber(in)
	if err != nil {
		return nil, err
	}
	base, err := mathNumber(p.Value("base", math.E))
	if err != nil {
		return nil, err
	}
	if x <= 0 || base <= 0 || base == 1 {
		return nil, fmt.Errorf("no logarithm of %s to the base %s", value.Str(in), value.Str(base))
	}
	switch base {
	case 10:
		return math.Log10(x), nil
	case math.E:
		return math.Log(x), nil
	}
	return math.Log(x) / math.Log(base), nil
}

func filterPow(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	x, err := mathNumber(in)
	if err != nil {
		return nil, err
	}
	y, err := mathNumber(p.Value("exponent", nil))
	if err != nil {
		return nil, err
	}
	return finite(math.Pow(x, y), "power")
}

func filterRoot(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	x, err := mathNumber(in)
	if err != nil {
		return nil, err
	}
	base, err := mathNumber(p.Value("base", 2))
	if err != nil {
		return nil, err
	}
	if base == 2 {
		return finite(math.Sqrt(x), "root")
	}
	return finite(math.Pow(x, 1/base), "root")
}

func finite(f float64, what string) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the %s is not a real number", what)
	}
	return f, nil
}

// filterRandom picks an item of a list, or a number below the input.
func filterRandom(c *expr.Call, in any, p *expr.Bound) (any, error) {
	g := NewGenerator(c, in, p.Value("seed", nil))
	if end, ok := in.(int); ok {
		start, step := p.Int("start", 0), p.Int("step", 1)
		if p.Err != nil {
			return nil, p.Err
		}
		return randomNumber(g, start, end, step)
	}
	list, err := expr.Items(in)
	switch {
	case err != nil:
		return nil, fmt.Errorf("random can only be used on sequences and integers: %w", err)
	case p.Has("start") || p.Has("step"):
		return nil, fmt.Errorf("start and step can only be used with integer values before the bar, not with %s",
			expr.DescribeType(in))
	case len(list) == 0:
		return nil, fmt.Errorf("cannot pick from an empty list")
	}
	return list[g.Below(len(list))], nil
}

func randomNumber(g generator, start, end, step int) (any, error) {
	if step == 0 {
		return nil, fmt.Errorf("argument step must not be zero")
	}
	span := float64(end) - float64(start)
	n := math.Ceil(span / float64(step))
	if n < 1 || n >= 1<<62 {
		return nil, fmt.Errorf("there is no number from %d up to %d by %d", start, end, step)
	}
	return start + step*g.Below(int(n)), nil
}

// units are the prefixes of sizes by their power of 1024.
const units = "BKMGTPEZY"

func filterHumanReadable(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	size, err := sizeNumber(in)
	if err != nil {
		return nil, err
	}
	base, unit := "Bytes", strings.ToUpper(p.Str("unit", ""))
	if p.Flag("isbits", false) {
		base = "bits"
	}
	power := 0
	for i := len(units) - 1; i >= 0; i-- {
		if unit == "" && size >= math.Pow(1024, float64(i)) || unit != "" && unit[0] == units[i] {
			power = i
			break
		}
	}
	suffix := base
	if power > 0 {
		suffix = units[power:power+1] + base[:1]
	}
	return fmt.Sprintf("%.2f %s", size/math.Pow(1024, float64(power)), suffix), nil
}

func sizeNumber(in any) (float64, error) {
	if s, ok := in.(string); ok {
		f, ok := pythonFloat(s)
		if !ok {
			return 0, fmt.Errorf("human_readable() can't interpret following string: %s", s)
		}
		return f, nil
	}
	return expr.NeedNumber(in)
}

func filterHumanToBytes(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	text := strings.TrimSpace(value.Str(in))
	digits := strings.TrimRightFunc(text, unicode.IsLetter)
	unit := text[len(digits):]
	size, ok := pythonFloat(digits)
	if !ok || size < 0 || strings.ContainsAny(digits, "eE") {
		return nil, fmt.Errorf("%q is not a size such as 10M or 1.5 GB", text)
	}
	if unit == "" {
		unit = p.Str("default_unit", "")
	}
	scale, err := unitScale(unit, p.Flag("isbits", false))
	if err != nil {
		return nil, err
	}
	return truncated(math.RoundToEven(size*scale), 0)
}

func unitScale(unit string, bits bool) (float64, error) {
	if unit == "" {
		return 1, nil
	}
	class, word := "B", "byte"
	if bits {
		class, word = "b", "bit"
	}
	power := strings.Index(units, strings.ToUpper(unit[:1]))
	if power < 0 {
		return 0, fmt.Errorf("no unit %q (units are %s)", unit, strings.Join(strings.Split(units, ""), ", "))
	}
	if len(unit) > 1 && !strings.Contains(strings.ToLower(unit), word) && unit[1:2] != class {
		return 0, fmt.Errorf("no unit %q (expected %s%s or %s)", unit, units[power:power+1], class, units[power:power+1])
	}
	return math.Pow(1024, float64(power)), nil
}

func filterFileSize(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	size, err := sizeNumber(in)
	if err != nil {
		return nil, err
	}
	base, suffix := 1000.0, "B"
	if p.Flag("binary", false) {
		base, suffix = 1024, "iB"
	}
	switch {
	case math.IsNaN(size):
		return nil, fmt.Errorf("needs a number, not nan")
	case size == 1:
		return "1 Byte", nil
	case size < base:
		return fmt.Sprintf("%.0f Bytes", math.Trunc(size)), nil
	}
	prefixes, power := "kMGTPEZY", 0
	if base == 1024 {
		prefixes = "KMGTPEZY"
	}
	for size /= base; size >= base && power < len(prefixes)-1; power++ {
		size /= base
	}
	return fmt.Sprintf("%.1f %s%s", size, prefixes[power:power+1], suffix), nil
}
