package account

import "strings"

// PublicKey is a line of an authorized_keys file (sshd(8)): options, type, the
// key in base64, comment.
type PublicKey struct{ Options, kind, Blob, Comment string }

func (k PublicKey) String() string {
	var words []string
	for _, w := range []string{k.Options, k.kind, k.Blob, k.Comment} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// ParsePublicKey reads a line; ok is false if it is not a public key. The key itself
// is not validated: that is up to sshd.
func ParsePublicKey(line string) (k PublicKey, ok bool) {
	words := keyWords(strings.TrimSpace(line))
	at := 0
	if len(words) > 0 && !isKeyType(words[0]) {
		k.Options, at = words[0], 1
	}
	if len(words) < at+2 || !isKeyType(words[at]) || strings.HasPrefix(line, "#") {
		return PublicKey{}, false
	}
	k.kind, k.Blob = words[at], words[at+1]
	k.Comment = strings.Join(words[at+2:], " ")
	return k, true
}

// keyWords splits at blanks outside of double quotes; \" does not close them.
func keyWords(line string) []string {
	var words []string
	start, quoted := -1, false
	for i := 0; i < len(line); i++ {
		ch := line[i]
		switch {
		case ch == '\\' && quoted:
			i++
		case ch == '"':
			quoted = !quoted
		case (ch == ' ' || ch == '\t') && !quoted:
			if start >= 0 {
				words = append(words, line[start:i])
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		words = append(words, line[start:])
	}
	return words
}

func isKeyType(word string) bool {
	switch word {
	case "ssh-ed25519", "ssh-rsa", "ssh-dss", "ssh-xmss@openssh.com", "ssh-rsa-cert-v01@openssh.com",
		"ssh-dss-cert-v01@openssh.com", "ssh-ed25519-cert-v01@openssh.com":
		return true
	}
	return strings.HasPrefix(word, "ecdsa-sha2-nistp") || strings.HasPrefix(word, "rsa-sha2-") ||
		strings.HasPrefix(word, "webauthn-sk-ecdsa-sha2-nistp256") || strings.HasPrefix(word, "sk-ecdsa-sha2-nistp256") ||
		strings.HasPrefix(word, "sk-ssh-ed25519")
}
