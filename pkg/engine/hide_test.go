package engine

import "testing"

func TestWhichWordsOfACommandAreHidden(t *testing.T) {
	for word, want := range map[string]bool{
		"--kubeconfig": false, "short": false,
		"--password=hunter2": true, "-phunter2two": true, "correct-horse": true, "/Abc/deF0123": true, "Hunter-Two": true,
	} {
		if got := mayBeSecret(word); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}
