package kube

import (
	"encoding/json"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/redact"
)

// Access is how a module reaches the cluster.
type Access struct {
	Kubectl    string        `kk:"kubectl" default:"kubectl" doc:"the program on the host: a name or a path"`
	Kubeconfig string        `kk:"kubeconfig,path" doc:"file on the host. Default: the variable KUBECONFIG of the task's environment, else ~/.kube/config"`
	Context    string        `kk:"context" doc:"of the kubeconfig. Default: its current one"`
	Host       string        `kk:"host" doc:"address of the API server, such as https://10.0.0.1:6443. Default: that of the kubeconfig, which need not be there when this is given"`
	Token      redact.Secret `kk:"api_key" doc:"token to show the server, instead of what the kubeconfig has"`
	Username   string        `kk:"username,private" doc:"user of HTTP basic authentication, which no API server since Kubernetes 1.19 takes; a proxy before it may"`
	Password   redact.Secret `kk:"password" doc:"the user's password"`
	Validate   *bool         `kk:"validate_certs,alias=verify_ssl" doc:"verify the server's certificate. Default: as the kubeconfig says, else yes"`
	CA         string        `kk:"ca_cert,path,alias=ssl_ca_cert" doc:"file on the host with certificates of authorities"`
	Cert       string        `kk:"client_cert,path,alias=cert_file" doc:"file on the host with the client's certificate"`
	Key        string        `kk:"client_key,path,alias=key_file" doc:"file on the host with its key"`
	As         string        `kk:"impersonate_user" doc:"act as this user"`
	AsGroups   []string      `kk:"impersonate_groups" doc:"act as a member of these groups; with impersonate_user"`
	Proxy      redact.Secret `kk:"proxy" doc:"address of an HTTP proxy on the way to the API server, such as http://proxy:3128. Default: the variables of the task's environment, and the kubeconfig"`
	NoProxy    string        `kk:"no_proxy" doc:"hosts to reach without the proxy, with commas between"`
}

func (a Access) script(call string) *hostscript.Script {
	s := hostscript.New(library, k8sScript, call).Args(&a)
	s.Large = true
	s.Env = map[string]string{}
	for name, v := range map[string]string{"KK_CREDENTIALS": a.credentials(), "HTTPS_PROXY": a.Proxy.Reveal(), "HTTP_PROXY": a.Proxy.Reveal(), "NO_PROXY": a.NoProxy} {
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
	for key, v := range map[string]string{"token": a.Token.Reveal(), "username": a.Username, "password": a.Password.Reveal()} {
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
