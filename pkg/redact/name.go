package redact

import (
	"regexp"
	"strings"
)

var secretName = regexp.MustCompile(`(?i)(?:passw(?:or)?d|passphrase|(?:^|_)pass|secret|token|api_?key|access_?key|secret_?key|credentials?|private_key_content)$`)

var plainWord = regexp.MustCompile(`(?i)^(?:none|null|true|false|omit)?$`)

// IsSecretName reports whether a variable of this name holds a secret: names
// that end in password, token, secret and the like.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

// IsSecret reports whether the value of a variable of this name is to be
// hidden: not what is no secret yet, a template, or none at all.
func IsSecret(name, value string) bool {
	if strings.Contains(value, "PRIVATE KEY-----") {
		return true
	}
	return IsSecretName(name) && !strings.Contains(value, "{{") && !plainWord.MatchString(value)
}
