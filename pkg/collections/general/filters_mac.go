package general

import (
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

var hexByte = regexp.MustCompile(`^[a-f0-9]{2}$`)

// filterRandomMAC appends random bytes to the beginning of a MAC address until it has six. With a seed, it
// generates the same bytes as community.general.
func filterRandomMAC(c *expr.Call, in any, p *expr.Bound) (any, error) {
	text, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("random_mac needs a text, got %s", expr.DescribeType(in))
	}
	prefix := strings.ToLower(text)
	parts := strings.Split(prefix, ":")
	if len(parts) > 5 {
		return nil, fmt.Errorf("Invalid value (%s) for random_mac: at most 5 bytes with colons between them are its "+
			"beginning", expr.Shorten(prefix)) //nolint:staticcheck // the text users know
	}
	for _, part := range parts {
		if !hexByte.MatchString(part) {
			return nil, fmt.Errorf("Invalid value (%s) for random_mac: %s is no byte in hexadecimal", expr.Shorten(prefix),
				value.Repr(part)) //nolint:staticcheck // the text users know
		}
	}
	const from, to = 0x1000000000, 0xffffffffff
	drawn := fmt.Sprintf("%x", from+filters.NewGenerator(c, in, p.Value("seed", nil)).Below(to-from+1))
	for len(parts) < 6 {
		parts, drawn = append(parts, drawn[:2]), drawn[2:]
	}
	return strings.Join(parts, ":"), nil
}
