package simulated

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/file"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

type answer func(ctx context.Context, a *asked) (module.Result, error)

// answers are what modules say, by their names.
var answers = map[string]answer{
	"setup": facts, "gather_facts": facts,
	"stat": stat, "slurp": slurp, "find": find,
	"file": fileOf, "copy": copyOf, "template": templateOf, "unarchive": unarchive, "fetch": fetch,
	"command": command, "shell": command, "raw": command, "script": command,
	"k8s": k8s, "k8s_info": k8sInfo, "helm": changed,
	"gen_cert": genCert, "x509_certificate_info": certInfo, "download": download, "image": changed,
	"get_url": getURL, "uri": uriOf, "wait_for": still(), "wait_for_connection": still(),
	"ping":    still("ping", "pong"),
	"systemd": changed, "service": changed, "package": changed, "apt": changed, "dnf": changed, "user": changed,
	"group":    changed,
	"hostname": changed, "sysctl": changed, "modprobe": changed, "mount": changed, "cron": changed, "reboot": changed,
	"lineinfile": changed, "blockinfile": changed, "replace": changed,
	"artifact_repository": predicted, "image_load": predicted,
	"firewalld": changed, "ufw": changed,
	"getent": still(), "service_facts": still(), "package_facts": still(),
}

// uriOf is what a new Harbor says, which has no registries and policies, and what else is healthy.
func uriOf(ctx context.Context, a *asked) (module.Result, error) {
	switch url := a.arg("url"); {
	case a.arg("method") == "POST":
		return still("status", 201, "location", url+"/1")(ctx, a)
	case strings.HasSuffix(url, "?page_size=100"):
		return still("status", 200, "json", []any{})(ctx, a)
	}
	return still("status", 200, "json", value.NewDict("status", "healthy"))(ctx, a)
}

func changed(context.Context, *asked) (module.Result, error) {
	return module.Result{Changed: true, Data: value.NewDict()}, nil
}

func still(data ...any) answer {
	return func(context.Context, *asked) (module.Result, error) {
		return module.Result{Data: value.NewDict(data...)}, nil
	}
}

// predicted is what a module would do on a host that has nothing of what is sent. In check mode it finds that out itself.
func predicted(ctx context.Context, a *asked) (module.Result, error) {
	if !a.call.Check {
		return changed(ctx, a)
	}
	call := *a.call
	call.Conn = empty{}
	return a.runner.Run(ctx, &call)
}

// empty is the connection to a host on which every command prints nothing.
type empty struct{}

func (empty) Run(context.Context, connector.Command) (connector.Exit, error) {
	return connector.Exit{}, nil
}

func (empty) Close() error { return nil }

func stat(_ context.Context, a *asked) (module.Result, error) {
	return module.Result{Data: value.NewDict("stat", a.host.stat(a.arg("path", "dest", "name")))}, nil
}

func slurp(_ context.Context, a *asked) (module.Result, error) {
	name := a.arg("src", "path")
	n := a.host.get(name)
	if n == nil {
		return module.Result{}, fmt.Errorf("file not found: %s", name)
	}
	return module.Result{Data: value.NewDict("content", base64.StdEncoding.EncodeToString([]byte(n.content)), "encoding",
		"base64", "source", name)}, nil
}

func find(_ context.Context, a *asked) (module.Result, error) {
	patterns := a.list("patterns", "pattern")
	files := []any{}
	for _, folder := range a.list("paths", "path", "name") {
		for _, name := range a.host.below(strings.TrimRight(folder, "/")) {
			if matches(patterns, path.Base(name)) {
				files = append(files, a.host.stat(name))
			}
		}
	}
	return module.Result{Data: value.NewDict("files", files, "matched", len(files), "examined", len(files),
		"skipped_paths", value.NewDict())}, nil
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}

func fileOf(_ context.Context, a *asked) (module.Result, error) {
	name := path.Clean(a.arg("path", "dest", "name"))
	res := module.Result{Data: value.NewDict("path", name)}
	switch state := a.arg("state"); state {
	case "absent":
		res.Changed = a.host.remove(name)
	case "directory":
		res.Changed = a.host.set(name, &node{dir: true, mode: a.arg("mode")})
	case "link", "hard":
		res.Changed = a.host.set(name, &node{link: a.arg("src"), mode: "0777"})
	case "touch":
		res.Changed = a.host.put(name, "", a.arg("mode"), false)
	default:
		if a.host.get(name) == nil {
			return res, fmt.Errorf("file (%s) is absent, cannot continue", name)
		}
	}
	return res, nil
}

// destination is where a file of a name goes.
func (a *asked) destination(name string) string {
	dest := a.arg("dest")
	if n := a.host.get(dest); strings.HasSuffix(dest, "/") || n != nil && n.dir {
		return path.Join(dest, name)
	}
	return path.Clean(dest)
}

// placed is the result of a file that was put somewhere.
func (a *asked) placed(dest, content, template string) module.Result {
	sum := sha1.Sum([]byte(content))
	if a.arg("force") == "False" && a.host.get(dest) != nil {
		return module.Result{Data: value.NewDict("dest", dest)}
	}
	did := a.put(dest, content, a.arg("mode"), template)
	return module.Result{Changed: did, Data: value.NewDict("dest", dest, "checksum", hex.EncodeToString(sum[:]))}
}

func copyOf(_ context.Context, a *asked) (module.Result, error) {
	if v, ok := a.call.Args.Get("content"); ok && v != nil {
		text := value.Str(v)
		switch v.(type) {
		case *value.Dict, []any:
			text, _ = value.JSON(v, value.JSONOptions{})
		}
		return a.placed(a.destination(""), text, ""), nil
	}
	src := a.arg("src")
	if a.arg("remote_src") == "True" {
		n := a.host.get(src)
		if n == nil {
			return module.Result{}, fmt.Errorf("source %s not found", src)
		}
		did := a.host.set(a.destination(path.Base(src)), &node{mode: a.arg("mode"), sum: n.sum, content: n.content})
		return module.Result{Changed: did, Data: value.NewDict("checksum", n.sum)}, nil
	}
	text, err := a.read("files", src)
	return a.placed(a.destination(path.Base(src)), text, ""), err
}

// read reads a file of the control node: one that a task made, or a real one.
func (a *asked) read(kind, name string) (string, error) {
	if n := a.Fleet.host("localhost").get(name); n != nil {
		return n.content, nil
	}
	src, err := a.call.Find(kind, name)
	if err != nil {
		return "", err
	}
	if a.call.Files.IsDir(src) {
		return "", nil
	}
	text, err := a.call.Files.ReadFile(src)
	return string(text), err
}

func templateOf(ctx context.Context, a *asked) (module.Result, error) {
	src, text, err := a.runner.(*file.Template).Text(ctx, a.call)
	if err != nil {
		return module.Result{}, err
	}
	return a.placed(a.destination(path.Base(src)), text, src), nil
}

func unarchive(_ context.Context, a *asked) (module.Result, error) {
	if made := a.arg("creates"); made != "" && a.host.get(made) != nil {
		return module.Result{}, nil
	}
	if a.arg("remote_src") != "True" {
		if _, err := a.read("files", a.arg("src")); err != nil {
			return module.Result{}, err
		}
	}
	did := false
	for _, member := range a.list("include") {
		if !strings.ContainsAny(path.Base(member), "*?") {
			did = a.host.put(path.Join(a.arg("dest"), path.Base(member)), member, a.arg("mode"), false) || did
		}
	}
	return module.Result{Changed: did || len(a.list("include")) == 0, Data: value.NewDict("dest", a.arg("dest"))}, nil
}

func fetch(_ context.Context, a *asked) (module.Result, error) {
	n := a.host.get(a.arg("src"))
	if n == nil {
		return module.Result{}, fmt.Errorf("the remote file does not exist: %s", a.arg("src"))
	}
	did := a.Fleet.host("localhost").put(a.arg("dest"), n.content, "", true)
	return module.Result{Changed: did, Data: value.NewDict("dest", a.arg("dest"))}, nil
}

func download(_ context.Context, a *asked) (module.Result, error) {
	v, _ := a.call.Args.Get("items")
	items, _ := v.([]any)
	did := false
	for _, item := range items {
		d, _ := item.(*value.Dict)
		dest := d.String("dest")
		if dest == "" {
			dest = d.String("file")
		}
		if !path.IsAbs(dest) {
			dest = path.Join(a.arg("dir"), dest)
		}
		did = a.Fleet.host("localhost").put(dest, "downloaded "+path.Base(dest), "0644", true) || did
	}
	return module.Result{Changed: did, Data: value.NewDict("fetched", len(items))}, nil
}

func getURL(_ context.Context, a *asked) (module.Result, error) {
	return a.placed(a.destination(path.Base(a.arg("url"))), "downloaded", ""), nil
}

// Planted texts: where a secret of that kind shows, one of these shows.
const (
	PlantedKey   = "UExBTlRFRCBQUklWQVRFIEtFWSBPRiBBIFNJTVVMQVRJT04"
	PlantedToken = "pl4nt3.d0d0cafed0d0cafe"
	certificate  = "-----BEGIN CERTIFICATE-----\nc2ltdWxhdGVk\n-----END CERTIFICATE-----\n"
	privateKey   = "-----BEGIN PRIVATE KEY-----\n" + PlantedKey + "\n-----END PRIVATE KEY-----\n"
	pin          = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
)

func genCert(_ context.Context, a *asked) (module.Result, error) {
	did := false
	d := value.NewDict("reason", "", "spki_sha256", pin, "fingerprint", pin, "not_after", "2036-01-01T00:00:00Z",
		"days_left", 3650)
	for _, f := range []struct{ name, text, mode string }{{"cert", certificate, a.arg("mode")},
		{"key", privateKey, "0600"}, {"pub", certificate, a.arg("mode")}} {
		if dest := a.arg(f.name); dest != "" {
			switch {
			case a.arg("policy") == "always":
				f.text += "renewed\n"
			case a.host.get(dest) != nil:
				f.text = a.host.get(dest).content
			}
			did = a.put(dest, f.text, f.mode, "") || did
			d.Set(f.name, dest)
		}
	}
	return module.Result{Changed: did, Data: d}, nil
}

func certInfo(context.Context, *asked) (module.Result, error) {
	return module.Result{Data: value.NewDict("not_after", "20360101000000Z", "days_left", 3650, "expiring", false, "is_ca",
		false)}, nil
}

// texts are manifests that a task gives the cluster.
func k8s(ctx context.Context, a *asked) (module.Result, error) {
	text := a.arg("definition", "resource_definition", "inline")
	if v, _ := a.call.Args.Get("definition"); v != nil {
		if _, isText := v.(string); !isText {
			text, _ = value.JSON(v, value.JSONOptions{})
		}
	}
	src := ""
	if name := a.arg("template"); name != "" {
		var err error
		if src, text, err = a.render(ctx, name); err != nil {
			return module.Result{}, err
		}
	} else if name := a.arg("src"); name != "" {
		text, _ = a.read("files", name)
	}
	if text != "" && a.arg("state") != "absent" {
		a.put("/manifests/"+path.Base(src)+a.task.At.String()+".yaml", text, "0600", src)
	}
	return module.Result{Changed: true, Data: value.NewDict()}, nil
}

func (a *asked) render(ctx context.Context, name string) (src, text string, err error) {
	if src, err = a.call.Find("templates", name); err != nil {
		return "", "", err
	}
	compiled, err := a.call.Templates.File(src, template.FileOptions{})
	if err != nil {
		return src, "", err
	}
	text, err = compiled.Text(ctx, a.call.Scope)
	return src, text, err
}

func k8sInfo(_ context.Context, a *asked) (module.Result, error) {
	resources := []any{}
	switch kind, name := a.arg("kind"), a.arg("name"); {
	case kind == "Node":
		for _, n := range a.Nodes {
			if name == "" || name == n {
				resources = append(resources, kubeNode(n))
			}
		}
	case name != "":
		resources = append(resources, value.NewDict("kind", kind, "metadata", value.NewDict("name", name, "generation", 1)))
	}
	return module.Result{Data: value.NewDict("resources", resources, "api_found", true)}, nil
}

func kubeNode(name string) *value.Dict {
	ready := value.NewDict("type", "Ready", "status", "True")
	labels := value.NewDict("kubernetes.io/hostname", name)
	return value.NewDict("kind", "Node", "metadata", value.NewDict("name", name, "labels", labels),
		"spec", value.NewDict("taints", []any{}), "status", value.NewDict("conditions", []any{ready}))
}

// made is what a program leaves on its host, by what its command line has.
var made = []struct {
	line  *regexp.Regexp
	files []string
}{
	{regexp.MustCompile(`kubeadm (init --config|join --config .*)`),
		[]string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf",
			"/etc/kubernetes/manifests/kube-apiserver.yaml", "/var/lib/kubelet/config.yaml"}},
}

const kubeconfig = "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://10.0.0.1:6443\nusers:\n- user:\n    client-key-data: " + PlantedKey + "\n"

func command(_ context.Context, a *asked) (module.Result, error) {
	line := a.arg("cmd", "_raw_params")
	if line == "" {
		line = strings.Join(a.list("argv"), " ")
	}
	for _, m := range made {
		if m.line.MatchString(line) {
			for _, name := range m.files {
				a.host.put(name, kubeconfig, "0600", true)
			}
		}
	}
	out, rc := a.stdout(line)
	lines := []any{}
	for l := range strings.Lines(out) {
		lines = append(lines, strings.TrimRight(l, "\n"))
	}
	d := value.NewDict("rc", rc, "stdout", out, "stderr", "", "stdout_lines", lines, "stderr_lines", []any{}, "cmd", line,
		"delta", "0:00:00.004613")
	return module.Result{Changed: true, Failed: rc != 0, Data: d}, nil
}

// says are what commands print: by what the task's result is registered as, or
// else by what the command line has.
var says = []struct {
	register string
	line     string
	out      string // VERSION is that of the config
	rc       int
}{
	{register: "kubernetes_token", out: "kubeadm join lb.kk.local:6443 --token " + PlantedToken +
		" --discovery-token-ca-cert-hash " + pin},
	{register: "kubeconfig_accounts", out: "root:x:0:0:root:/root:/bin/bash"},
	{register: "probe_disk", out: "/var/lib 209715200\n/var/lib/etcd 209715200"},
	{register: "probe_fio", out: `{"jobs":[{"sync":{"lat_ns":{"percentile":{"99.000000":2000000}}}}]}`},
	{register: "probe_clock", out: "1800000000 1800000000"},
	{register: "probe_kubelet", out: "Kubernetes VERSION"},
	{register: "probe_vip", rc: 1},
	{register: "plan_look", out: "1800000000 1800000000\n"},
	{register: "probe_firewall", out: "firewalld\nzone public\nenabled\npolicies\nopen all\n"},
	{register: "probe_ports", out: "   0: 00000000:0016 00000000:0000 0A 00000000:00000000"},
	{line: "member list", out: "1, started, n1, https://10.0.0.1:2380, https://10.0.0.1:2379, false"},
	{line: "endpoint health", out: `[{"endpoint":"https://10.0.0.1:2379","health":true,"took":"2ms"}]`},
}

func (a *asked) stdout(line string) (out string, rc int) {
	for _, s := range says {
		if s.register != "" && s.register == a.task.Register || s.line != "" && strings.Contains(line, s.line) {
			return strings.ReplaceAll(s.out, "VERSION", a.version()), s.rc
		}
	}
	return "", 0
}

func (a *asked) version() string {
	v, _, _ := a.call.Scope.Lookup("kubernetes")
	if lazy, ok := v.(value.Lazy); ok {
		v, _, _ = lazy.At("kube_version")
		return value.Str(v)
	}
	d, _ := v.(*value.Dict)
	return d.String("kube_version")
}
