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

// publicEnds are what names end in whose values are no secrets, whatever mapping they are in.
var publicEnds = []string{
	"name", "user", "login", "host", "hosts", "port", "url", "uri", "path", "file", "dir", "email", "type", "kind",
	"mode", "state", "scope", "version",
}

// Within is the name that says what a value is: its key in a mapping, or the
// name of the mapping when that is one of secrets. What says who or where is
// none: credentials: {user: ada, port: 5432}.
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

// IsSecret reports whether the value of a variable of this name is to be
// hidden: not what is no secret yet, a template, or none at all, such as the
// "*" and "!" of accounts that nobody logs into.
func IsSecret(name, value string) bool {
	if strings.Contains(value, "PRIVATE KEY-----") {
		return true
	}
	return IsSecretName(name) && !strings.Contains(value, "{{") && !plainWord.MatchString(value)
}
