package redact

import (
	"regexp"
	"strings"
)

// secretEnds are what names of secrets end in, in any case.
var secretEnds = []string{
	"password", "passwd", "passphrase", "_pass", "secret", "token", "apikey", "api_key", "accesskey", "access_key",
	"secretkey", "secret_key", "credential", "credentials", "private_key_content",
}

var plainWord = regexp.MustCompile(`(?i)^(?:none|null|true|false|omit)?$|^[*!]+$`)

// IsSecretName reports whether a variable of this name holds a secret: names
// that end in password, token, secret and the like.
func IsSecretName(name string) bool {
	for _, end := range secretEnds {
		if n := len(name) - len(end); n >= 0 && strings.EqualFold(name[n:], end) {
			return true
		}
	}
	return strings.EqualFold(name, "pass")
}

// IsSecret reports whether the value of a variable of this name is to be
// hidden: not what is no secret yet, a template, or none at all, such as the
// "*" and "!" of accounts that nobody logs into.
func IsSecret(name, value string) bool {
	if strings.Contains(value, "PRIVATE KEY-----") {
		return true
	}
	return IsSecretName(name) && !strings.Contains(value, "{{") && !plainWord.MatchString(value)
}
