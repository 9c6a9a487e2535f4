package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
	"kubekey/test/apiserver"
)

func TestHelmRepository(t *testing.T) {
	program := apiserver.Program(t, "helm")
	config := t.TempDir()
	t.Setenv("HELM_CONFIG_HOME", config)
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if strings.HasPrefix(r.URL.Path, "/private") && (user != "reader" || password != "hunter2 $x") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("apiVersion: v1\nentries: {}\n"))
	}))
	t.Cleanup(server.Close)
	repository := moduletest.Find(t, Modules(), "kubernetes.core.helm_repository")
	count := moduletest.Count(nil)
	o := moduletest.Options{Conn: count}
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append([]any{"binary_path", program}, pairs...)...)
	}
	has := func(text string) bool {
		all, _ := os.ReadFile(config + "/repositories.yaml")
		return strings.Contains(string(all), text)
	}
	moduletest.RunTwice(t, repository, args("name", "open", "repo_url", server.URL+"/a"), o)
	moduletest.RunTwice(t, repository, args("name", "open-too", "repo_url", server.URL+"/too"), o)
	moduletest.Fails(t, "with the address "+server.URL+"/a: set force_update", repository,
		args("name", "open", "url", server.URL+"/b"), o)
	forced := args("name", "open", "url", server.URL+"/b", "force_update", true)
	for range 2 {
		if r := moduletest.Run(t, repository, forced, o); !r.Changed || !has(server.URL+"/b") || has(server.URL+"/a") {
			t.Errorf("%+v", r)
		}
	}
	moduletest.Fails(t, "401", repository, args("name", "private", "url", server.URL+"/private"), o)
	moduletest.RunTwice(t, repository, args("name", "private", "url", server.URL+"/private", "username", "reader",
		"password", "hunter2 $x", "pass_credentials", true), o)
	if !has("hunter2 $x") || !has("pass_credentials_all: true") {
		t.Error("the credentials are not kept")
	}
	for _, line := range count.Lines() {
		if strings.Contains(line, "hunter2") {
			t.Errorf("the password is on a command line: %s", line)
		}
	}
	for _, name := range []string{"open", "open-too", "private", "never"} {
		gone := args("name", name, "state", "absent")
		if name == "never" {
			if r := moduletest.Run(t, repository, gone, o); r.Changed {
				t.Errorf("%+v", r)
			}
			continue
		}
		moduletest.RunTwice(t, repository, gone, o)
	}
	if has("name: ") {
		t.Error("repositories are left")
	}
	moduletest.Fails(t, "no such host", repository, args("name", "x", "url", "http://charts.invalid"), o)
	moduletest.Fails(t, "all of the following are missing: repo_url", repository, args("name", "x"), o)
	moduletest.Fails(t, "required together: repo_username, repo_password", repository,
		args("name", "x", "url", server.URL, "username", "reader"), o)
	moduletest.Fails(t, "must be the name of a repository", repository, args("name", "-x", "url", server.URL), o)
	nowhere := value.NewDict("name", "x", "url", server.URL, "binary_path", "/nowhere/helm")
	moduletest.Fails(t, "has no /nowhere/helm", repository, nowhere, o)
	if r := moduletest.Run(t, repository, nowhere, moduletest.Options{Check: true}); !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("%+v", r)
	}
}
