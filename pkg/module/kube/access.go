package kube

import (
	"encoding/json"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/redact"
)

// Access is how a module reaches the cluster.
type Access struct {
	Kubectl    string        `kk:"kubectl" default:"kubectl" doc:"name or path of the command on the host"`
	Kubeconfig string        `kk:"kubeconfig,path" doc:"path of the kubeconfig on the host. Default: KUBECONFIG in the environment of the task, otherwise ~/.kube/config"`
	Context    string        `kk:"context" doc:"context of the kubeconfig to use. Default: its current context"`
	Host       string        `kk:"host" doc:"URL of the API server, such as https://10.0.0.1:6443. Default: from the kubeconfig, which is optional if this is set"`
	Token      redact.Secret `kk:"api_key" doc:"bearer token to authenticate with, instead of the credentials in the kubeconfig"`
	Username   string        `kk:"username,private" doc:"user name for HTTP basic authentication; API servers no longer support it since Kubernetes 1.19, but a proxy may"`
	Password   redact.Secret `kk:"password" doc:"password of the user"`
	Validate   *bool         `kk:"validate_certs,alias=verify_ssl" doc:"verify the TLS certificate of the server. Default: as in the kubeconfig, otherwise yes"`
	CA         string        `kk:"ca_cert,path,alias=ssl_ca_cert" doc:"file on the host with CA certificates"`
	Cert       string        `kk:"client_cert,path,alias=cert_file" doc:"file on the host with the client certificate"`
	Key        string        `kk:"client_key,path,alias=key_file" doc:"file on the host with the key of client_cert"`
	As         string        `kk:"impersonate_user" doc:"user to impersonate"`
	AsGroups   []string      `kk:"impersonate_groups" doc:"groups to impersonate; needs impersonate_user"`
	Proxy      redact.Secret `kk:"proxy" doc:"URL of an HTTP proxy for the API server, such as http://proxy:3128. Default: from the environment of the task, and the kubeconfig"`
	NoProxy    string        `kk:"no_proxy" doc:"hosts to reach without the proxy, separated by commas"`
}

func (a Access) script(call string) *hostscript.Script {
	s := hostscript.New(library, k8sScript, call).Args(&a)
	s.Large = true
	s.Env = map[string]string{}
	for name, v := range map[string]string{"KK_CREDENTIALS": a.credentials(), "HTTPS_PROXY": a.Proxy.Reveal(),
		"HTTP_PROXY": a.Proxy.Reveal(), "NO_PROXY": a.NoProxy} {
		if v != "" {
			s.Env[name] = v
		}
	}
	return s
}

// credentials is a kubeconfig with nothing but the user that secrets make, ""
// without any: a command line would show them.
func (a Access) credentials() string {
	user := map[string]string{}
	for key, v := range map[string]string{"token": a.Token.Reveal(), "username": a.Username,
		"password": a.Password.Reveal()} {
		if v != "" {
			user[key] = v
		}
	}
	if len(user) == 0 {
		return ""
	}
	type named struct {
		Name string            `json:"name"`
		User map[string]string `json:"user"`
	}
	text, err := json.Marshal(struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Users      []named `json:"users"`
	}{"v1", "Config", []named{{"kk-task", user}}})
	if err != nil {
		return "" // texts always marshal
	}
	return string(text)
}
