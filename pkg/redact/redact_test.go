package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestSecretPrintsAsStars(t *testing.T) {
	s := new(Set).Secret("hunter2")
	data, err := json.Marshal(map[string]any{"s": s, "p": &s})
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(s, &s, []Secret{s}) + fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s) + string(data)
	if strings.Contains(all, "hunter2") || strings.Contains(all, "68756e746572") {
		t.Error(all)
	}
	if s.Reveal() != "hunter2" || s.IsZero() || !new(Set).Secret("").IsZero() || new(Set).Secret("").String() != "" {
		t.Error("a secret is not what it was made of")
	}
}

func TestSet(t *testing.T) {
	var s Set
	if got := s.Text("nothing known"); got != "nothing known" {
		t.Error(got)
	}
	s.Add("hunter2", "hunter2long", "abc", "", "  ", "line one\n  line two\nx")
	for text, want := range map[string]string{
		"pw hunter2!":             "pw ********!",
		"hunter2long":             "********",
		"xhunter2x":               "x********x",
		"abc":                     "abc", // too short to hide
		"line two":                "********",
		"line one\n  line two\nx": "********",
		"Hunter2":                 "Hunter2",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestSetIsForManyGoroutines(t *testing.T) {
	var s Set
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			secret := fmt.Sprintf("secret-%02d", i)
			s.Add(secret)
			if got := s.Text(secret); got != Mask {
				t.Errorf("%s is shown as %s", secret, got)
			}
		})
	}
	wg.Wait()
}

func TestIsSecret(t *testing.T) {
	for _, name := range []string{
		"password", "db_password", "ansible_become_pass", "dbPassword", "API_TOKEN", "client_secret", "aws_secret_key",
		"apikey", "registry_credentials", "ssh_passphrase", "private_key_content",
	} {
		if !IsSecret(name, "value") {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{
		"user", "password_file", "token_ttl", "secret_name", "private_key", "compass", "bypass", "key",
	} {
		if IsSecret(name, "value") {
			t.Errorf("%s is hidden", name)
		}
	}
	for _, value := range []string{"", "none", "None", "true", "{{ vault }}", "*", "!!"} {
		if IsSecret("password", value) {
			t.Errorf("the password %q is hidden", value)
		}
	}
	if !IsSecret("anything", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc") {
		t.Error("a private key is shown")
	}
}

func TestOverlapping(t *testing.T) {
	var s Set
	s.Add("abcdef", "defghi", "abcdefg")
	for text, want := range map[string]string{
		"xabcdefghiy":  "x********y",
		"abcdefabcdef": "********",
		"abcdef defg":  "******** defg",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestNotEverything(t *testing.T) {
	var s Set
	s.Add("a", "abc", "true", "None", "  \n",
		"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmg\nend\n-----END CERTIFICATE-----\n")
	text := "a abc true None end -----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----"
	if got := s.Text(text); got != text {
		t.Error(got)
	}
	if got := s.Text("line MIIBszCCAVmg of it"); got != "line ******** of it" {
		t.Error(got)
	}
}
