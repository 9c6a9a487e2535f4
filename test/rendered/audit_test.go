package rendered

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

// The events go to the webhook of the config, with its CA and credentials in a file that only root reads.
func TestAuditWebhook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, _ := pairOf(t, dir, "ca", nil)
	cert, key := pairOf(t, dir, "client", nil)
	fleet := created(t, plain("1.34"), withConfig(t, `
kubernetes:
  certificates: {signing_duration: 17520h}
  audit:
    enabled: true
    webhook:
      {url: "https://audit.example:8443/events", ca: `+ca+`, client_cert: `+cert+`,
      client_key: `+key+`, batch: {max_size: 7}}
`)...)
	for _, host := range []string{"n1", "n3"} {
		text, mode := content(fleet, host, "/etc/kubernetes/audit/webhook.yaml")
		if mode != "0600" || !strings.Contains(text, `server: "https://audit.example:8443/events"`) {
			t.Errorf("%s, mode %s:\n%s", host, mode, text)
		}
		for what, file := range map[string]string{"certificate-authority-data": ca, "client-certificate-data": cert,
			"client-key-data": key} {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// lookup('file') strips the last newline.
			want := what + ": " + base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(string(data))))
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
	}
	text, _ := content(fleet, "n1", "/etc/kubernetes/kubeadm.yaml")
	for _, want := range []string{`{"name": "audit-webhook-config-file", "value": "/etc/kubernetes/audit/webhook.yaml"}`,
		`{"name": "audit-webhook-batch-max-size", "value": "7"}`, `{"name": "audit-webhook-mode", "value": "batch"}`,
		`{"name": "audit-log-path"`, `{"name": "cluster-signing-duration", "value": "17520h"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// Without batches their flags would be rejected by nobody, and do nothing.
func TestAuditWebhookWithoutBatches(t *testing.T) {
	t.Parallel()
	fleet := created(t, plain("1.30"), withConfig(t, `
kubernetes:
  audit: {enabled: true, webhook: {url: "http://audit.example", token: pl4nted-webhook-token, mode: blocking}}
`)...)
	text, _ := content(fleet, "n1", "/etc/kubernetes/kubeadm.yaml")
	if !strings.Contains(text, `"audit-webhook-mode": "blocking"`) || strings.Contains(text, "audit-webhook-batch") {
		t.Errorf("flags:\n%s", text)
	}
	text, _ = content(fleet, "n1", "/etc/kubernetes/audit/webhook.yaml")
	if !strings.Contains(text, `user: {token: "pl4nted-webhook-token"}`) {
		t.Error(text)
	}
}
