package sbom

import (
	"regexp"
	"strings"
)

// licenceID is an identifier in an SPDX licence expression.
var licenceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*\+?$`)

// isLicence reports whether a text has the form of an SPDX licence expression, appendix IV of SPDX 2.3.
// That its identifiers are in the list of licences is not checked.
func isLicence(s string) bool {
	s = strings.NewReplacer("(", " ( ", ")", " ) ").Replace(s)
	depth, operand := 0, false // operand: the last word was one
	for _, w := range strings.Fields(s) {
		switch {
		case w == "(" && !operand:
			depth++
		case w == ")" && operand && depth > 0:
			depth--
		case (w == "AND" || w == "OR" || w == "WITH") && operand:
			operand = false
		case w != "AND" && w != "OR" && w != "WITH" && !operand && licenceID.MatchString(w):
			operand = true
		default:
			return false
		}
	}
	return operand && depth == 0
}
