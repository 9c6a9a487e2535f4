package engine

import "testing"

func TestWhichWordsOfACommandAreHidden(t *testing.T) {
	for word, want := range map[string]bool{
		"--kubeconfig": false, "/etc/kubernetes/admin.conf": false, "kube-system": false, "short": false,
		"--password=hunter2": true, "Hunter-Two": true, "s3cretword": true, "abcd/efgh+ij==": true,
	} {
		if got := mayBeSecret(word); got != want {
			t.Errorf("%s: %v", word, got)
		}
	}
}
