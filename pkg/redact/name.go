package redact

import (
	"regexp"
	"strings"
)

// secretEnds are the endings of secret names, case-insensitive.
var secretEnds = []string{
	"password", "passwd", "passphrase", "_pass", "secret", "token", "apikey", "api_key", "accesskey", "access_key",
	"secretkey", "secret_key", "credential", "credentials", "private_key_content",
}

var plainWord = regexp.MustCompile(`(?i)^(?:none|null|true|false|omit)?$|^[*!]+$`)

// IsSecretName reports whether a variable with this name is a secret. This applies to names that end in password,
// token, secret and the like.
func IsSecretName(name string) bool {
	for _, end := range secretEnds {
		if n := len(name) - len(end); n >= 0 && strings.EqualFold(name[n:], end) {
			return true
		}
	}
	return strings.EqualFold(name, "pass")
}

// publicEnds are the endings of names whose values are never secret, even in a secret mapping.
var publicEnds = []string{
	"name", "user", "login", "host", "hosts", "port", "url", "uri", "path", "file", "dir", "email", "type", "kind",
	"mode", "state", "scope", "version",
}

// Within returns the name that describes a value: its key in a mapping, or the name of the mapping if that is
// secret. Keys for users and addresses are not secret: credentials: {user: ada, port: 5432}.
func Within(mapping, key string) string {
	if !IsSecretName(mapping) || IsSecretName(key) {
		return key
	}
	for _, end := range publicEnds {
		if n := len(key) - len(end); n >= 0 && strings.EqualFold(key[n:], end) {
			return key
		}
	}
	return mapping
}

// NameOf is Within for the path of a value, with dots between the keys.
func NameOf(path string) (name string) {
	for key := range strings.SplitSeq(path, ".") {
		name = Within(name, key)
	}
	return name
}

// IsSecret reports whether the value of a variable of this name must be hidden. Templates are not
// secrets yet, and neither are placeholders such as the "*" and "!" of accounts without a login.
func IsSecret(name, value string) bool {
	if strings.Contains(value, "PRIVATE KEY-----") {
		return true
	}
	return IsSecretName(name) && !strings.Contains(value, "{{") && !plainWord.MatchString(value)
}
