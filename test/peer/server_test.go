package peer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// newServer answers the requests of the cases, and returns its URL.
func newServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
			_, _ = io.WriteString(w, body)
		}
	}
	mux.HandleFunc("/file", text("text/plain", "hello world"))
	mux.HandleFunc("/charts/index.yaml", text("text/yaml", "apiVersion: v1\nentries: {}\n"))
	mux.HandleFunc("/json", text("application/json", `{"a": [1, null, "x"]}`))
	mux.Handle("/moved", http.RedirectHandler("/file", http.StatusFound))
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Sent", r.Method+" "+r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"error": "broken"}`)
	})
	mux.HandleFunc("/cookie", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
	})
	mux.HandleFunc("/auth", func(w http.ResponseWriter, r *http.Request) {
		if name, _, ok := r.BasicAuth(); !ok || name != "u" {
			w.Header().Set("WWW-Authenticate", `Basic realm="peer"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
