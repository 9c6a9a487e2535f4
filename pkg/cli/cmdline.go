package cli

import (
	"regexp"
	"strings"

	"kubekey/pkg/config"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// shortExtra matches -e after combined short flags that have no value.
var shortExtra = regexp.MustCompile(`^-[bhvCDJKk]*e`)

// withoutSecrets returns a command line in which secret values in -e and --set are masked. They are found by
// parsing the arguments, not by searching the text: YAML can write the same value in many ways.
func withoutSecrets(args []string) []string {
	out := make([]string, len(args))
	next := "" // the flag whose value the argument is
	for i, word := range args {
		flag, text := next, word
		next = ""
		if flag == "" {
			flag, text = cutFlag(word)
			if flag != "" && text == "" {
				next = flag
			}
		}
		out[i] = word
		if flag == "" || text == "" {
			continue
		}
		shown := shownExtra(text)
		if strings.HasPrefix(flag, "--set") {
			shown = shownSet(text)
		}
		out[i] = strings.TrimSuffix(word, text) + shown
	}
	return out
}

// cutFlag splits an argument that sets variables into the flag and its value.
func cutFlag(word string) (flag, text string) {
	for _, flag := range []string{"--extra-vars", "--set"} {
		if word == flag {
			return flag, ""
		}
		if text, ok := strings.CutPrefix(word, flag+"="); ok {
			return flag, text
		}
	}
	if flag := shortExtra.FindString(word); flag != "" {
		return flag, strings.TrimPrefix(word[len(flag):], "=")
	}
	return "", ""
}

// shownExtra returns the value of -e for display.
func shownExtra(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "@") {
		return text
	}
	d, err := config.ExtraText(strings.TrimSpace(text))
	if err != nil {
		return redact.Mask
	}
	if !holdsSecret("", d) {
		return text
	}
	shown := masked("", d).(*value.Dict)
	if words, plain := asWords(shown); plain && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return words
	}
	json, err := value.JSON(shown, value.JSONOptions{})
	if err != nil {
		return redact.Mask
	}
	return json
}

// plainValue matches values that need no quotes after name=.
var plainValue = regexp.MustCompile(`^[\w@%+:,./*-]*$`)

// asWords returns variables as name=value tokens. plain is false if a value would need quotes.
func asWords(d *value.Dict) (words string, plain bool) {
	var out []string
	for k, v := range d.All() {
		text, isText := v.(string)
		if !isText || !plainValue.MatchString(text) {
			return "", false
		}
		out = append(out, value.Str(k)+"="+text)
	}
	return strings.Join(out, " "), true
}

// shownSet returns the value of --set for display.
func shownSet(text string) string {
	keys, v, err := config.CutSet(text)
	if err != nil {
		return redact.Mask
	}
	name := ""
	for _, key := range keys {
		if key, ok := key.(string); ok {
			name = redact.Within(name, key)
		}
	}
	if holdsSecret(name, v) {
		path, _, _ := strings.Cut(text, "=")
		return path + "=" + redact.Mask
	}
	return text
}

// holdsSecret reports whether any name in a value is that of a secret.
func holdsSecret(name string, v any) bool {
	for name, text := range value.Named(name, v, redact.Within) {
		if redact.IsSecret(name, text) {
			return true
		}
	}
	return false
}

// masked returns a value with its secrets masked.
func masked(name string, v any) any {
	switch v := v.(type) {
	case *value.Dict:
		out := value.NewDict()
		for k, e := range v.All() {
			out.Set(k, masked(redact.Within(name, value.Str(k)), e))
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = masked(name, e)
		}
		return out
	}
	if holdsSecret(name, v) {
		return redact.Mask
	}
	return v
}
