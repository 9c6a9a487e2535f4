// Command crictl is the part of crictl that people and scripts use on a node,
// over the same calls of the container runtime interface. The real one is no
// module that a Go command could fetch.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
	"k8s.io/cri-client/pkg/logs"

	"k8s.io/klog/v2"
)

// version is set by the linker.
var version = "unknown"

// settings is the file whose runtime-endpoint counts when no flag says another.
const settings = "/etc/crictl.yaml"

type client struct {
	internalapi.RuntimeService
	internalapi.ImageManagerService
}

// request is a command line after the name of the command.
type request struct {
	client
	args              []string
	all, quiet, force bool
	prune             bool
	name              string
}

type command struct {
	usage string
	run   func(ctx context.Context, r *request) error
}

func commands() map[string]command {
	return map[string]command{
		"version":  {"", showVersion},
		"info":     {"", info},
		"ps":       {"[-a] [-q] [-name NAME]", containers},
		"pods":     {"[-q] [-name NAME]", pods},
		"images":   {"[-q]", images},
		"inspecti": {"IMAGE", inspectImage},
		"pull":     {"IMAGE...", each(pull)},
		"rmi":      {"IMAGE... | --prune", removeImages},
		"stop":     {"CONTAINER...", each(stop)},
		"rm":       {"[-f] CONTAINER...", each(remove)},
		"stopp":    {"POD...", each(stopPod)},
		"rmp":      {"[-f] POD...", each(removePod)},
		"logs":     {"CONTAINER", showLogs},
	}
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crictl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("crictl", flag.ContinueOnError)
	endpoint := flags.String("runtime-endpoint", configured(), "socket of the container runtime")
	flags.StringVar(endpoint, "r", *endpoint, "the same")
	timeout := flags.Duration("timeout", 30*time.Second, "how long a call may take")
	showVersion := flags.Bool("version", false, "print the version")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		fmt.Println("crictl version", version)
		return nil
	}
	c, ok := commands()[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("there is no command %q", flags.Arg(0))
	}
	r, err := parse(flags.Arg(0), c, flags.Args()[1:])
	if err != nil {
		return err
	}
	if r.client, err = connect(*endpoint, *timeout); err != nil {
		return err
	}
	return c.run(ctx, r)
}

// parse reads the flags of a command, which may stand between its arguments.
func parse(name string, c command, args []string) (*request, error) {
	r := &request{}
	flags := flag.NewFlagSet("crictl "+name+" "+c.usage, flag.ContinueOnError)
	for _, f := range []struct {
		to    *bool
		names string
	}{{&r.all, "a all"}, {&r.quiet, "q quiet"}, {&r.force, "f force"}, {&r.prune, "prune"}} {
		for n := range strings.FieldsSeq(f.names) {
			flags.BoolVar(f.to, n, false, "")
		}
	}
	flags.StringVar(&r.name, "name", "", "")
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if args = flags.Args(); len(args) > 0 {
			r.args, args = append(r.args, args[0]), args[1:]
		}
	}
	return r, nil
}

func configured() string {
	data, _ := os.ReadFile(settings)
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "runtime-endpoint:"); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return "unix:///run/containerd/containerd.sock"
}

func connect(endpoint string, timeout time.Duration) (c client, err error) {
	log := klog.Background()
	if c.RuntimeService, err = cri.NewRemoteRuntimeService(endpoint, timeout, nil, &log); err != nil {
		return c, err
	}
	c.ImageManagerService, err = cri.NewRemoteImageService(endpoint, timeout, nil, &log)
	return c, err
}

// each runs a command on one argument after the other.
func each(do func(ctx context.Context, r *request, arg string) error) func(context.Context, *request) error {
	return func(ctx context.Context, r *request) error {
		if len(r.args) == 0 {
			return fmt.Errorf("name what it is to work on")
		}
		for _, arg := range r.args {
			if err := do(ctx, r, arg); err != nil {
				return err
			}
			fmt.Println(arg)
		}
		return nil
	}
}

func showVersion(ctx context.Context, r *request) error {
	v, err := r.Version(ctx, "v1")
	if err != nil {
		return err
	}
	fmt.Printf("Version:  %s\nRuntimeName:  %s\nRuntimeVersion:  %s\nRuntimeApiVersion:  %s\n",
		v.Version, v.RuntimeName, v.RuntimeVersion, v.RuntimeApiVersion)
	return nil
}

func info(ctx context.Context, r *request) error {
	status, err := r.RuntimeService.Status(ctx, true)
	if err != nil {
		return err
	}
	return printJSON(status)
}

func containers(ctx context.Context, r *request) error {
	filter := &v1.ContainerFilter{}
	if !r.all {
		filter.State = &v1.ContainerStateValue{State: v1.ContainerState_CONTAINER_RUNNING}
	}
	list, err := r.ListContainers(ctx, filter)
	if err != nil {
		return err
	}
	t := r.table("CONTAINER\tIMAGE\tCREATED\tSTATE\tNAME\tATTEMPT\tPOD ID\tPOD")
	for _, c := range list {
		t.row(c.Metadata.Name, c.Id, c.Image.GetUserSpecifiedImage(), age(c.CreatedAt), state(c.State.String()),
			c.Metadata.Name, c.Metadata.Attempt, short(c.PodSandboxId), c.Labels["io.kubernetes.pod.name"])
	}
	return t.Flush()
}

func pods(ctx context.Context, r *request) error {
	list, err := r.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	t := r.table("POD ID\tCREATED\tSTATE\tNAME\tNAMESPACE\tATTEMPT")
	for _, p := range list {
		t.row(p.Metadata.Name, p.Id, age(p.CreatedAt), state(p.State.String()), p.Metadata.Name, p.Metadata.Namespace,
			p.Metadata.Attempt)
	}
	return t.Flush()
}

func images(ctx context.Context, r *request) error {
	list, err := r.ListImages(ctx, nil)
	if err != nil {
		return err
	}
	t := r.table("IMAGE ID\tIMAGE\tSIZE")
	for _, i := range list {
		names := strings.Join(append(i.RepoTags, i.RepoDigests...), ",")
		t.row(names, strings.TrimPrefix(i.Id, "sha256:"), names, fmt.Sprintf("%.1fMB", float64(i.Size)/1e6))
	}
	return t.Flush()
}

func inspectImage(ctx context.Context, r *request) error {
	if len(r.args) != 1 {
		return fmt.Errorf("name one image")
	}
	status, err := r.ImageStatus(ctx, &v1.ImageSpec{Image: r.args[0]}, false)
	if err != nil {
		return err
	}
	if status.Image == nil {
		return fmt.Errorf("no such image %q present", r.args[0])
	}
	return printJSON(status)
}

func pull(ctx context.Context, r *request, image string) error {
	_, err := r.PullImage(ctx, &v1.ImageSpec{Image: image}, nil, nil)
	return err
}

// removeImages removes the named images; with --prune those that no container uses and that are not pinned, which are
// the ones that the kubelet removes.
func removeImages(ctx context.Context, r *request) error {
	if !r.prune {
		return each(removeImage)(ctx, r)
	}
	used := map[string]bool{}
	running, err := r.ListContainers(ctx, nil)
	if err != nil {
		return err
	}
	for _, c := range running {
		used[c.ImageRef], used[c.ImageId] = true, true
	}
	list, err := r.ListImages(ctx, nil)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Pinned || used[i.Id] {
			continue
		}
		if err := removeImage(ctx, r, i.Id); err != nil {
			return err
		}
		fmt.Println("Deleted:", i.Id)
	}
	return nil
}

func removeImage(ctx context.Context, r *request, image string) error {
	return r.RemoveImage(ctx, &v1.ImageSpec{Image: image})
}

func stop(ctx context.Context, r *request, id string) error { return r.StopContainer(ctx, id, 10) }

func remove(ctx context.Context, r *request, id string) error {
	if r.force {
		if err := r.StopContainer(ctx, id, 0); err != nil {
			return err
		}
	}
	return r.RemoveContainer(ctx, id)
}

func stopPod(ctx context.Context, r *request, id string) error { return r.StopPodSandbox(ctx, id) }

func removePod(ctx context.Context, r *request, id string) error {
	if r.force {
		if err := r.StopPodSandbox(ctx, id); err != nil {
			return err
		}
	}
	return r.RemovePodSandbox(ctx, id)
}

func showLogs(ctx context.Context, r *request) error {
	if len(r.args) != 1 {
		return fmt.Errorf("name one container")
	}
	c, err := r.ContainerStatus(ctx, r.args[0], false)
	if err != nil {
		return err
	}
	log := klog.Background()
	options := logs.NewLogOptions(&corev1.PodLogOptions{}, time.Now())
	return logs.ReadLogs(ctx, &log, c.Status.LogPath, c.Status.Id, options, r.RuntimeService, os.Stdout, os.Stderr)
}

// table prints rows, or their ids alone.
type table struct {
	*tabwriter.Writer
	r *request
}

func (r *request) table(heads string) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0), r}
	if !r.quiet {
		fmt.Fprintln(t, heads)
	}
	return t
}

// row prints one thing unless -name asks for others.
func (t table) row(name, id string, fields ...any) {
	switch {
	case !strings.Contains(name, t.r.name):
	case t.r.quiet:
		fmt.Fprintln(t, id)
	default:
		fmt.Fprint(t, short(id))
		for _, f := range fields {
			fmt.Fprint(t, "\t", f)
		}
		fmt.Fprintln(t)
	}
}

func short(id string) string { return id[:min(13, len(id))] }

// state is Running for CONTAINER_RUNNING, NotReady for SANDBOX_NOTREADY.
func state(name string) string {
	_, name, _ = strings.Cut(name, "_")
	if name == "NOTREADY" {
		return "NotReady"
	}
	return name[:1] + strings.ToLower(name[1:])
}

func age(nanoseconds int64) string {
	return time.Since(time.Unix(0, nanoseconds)).Round(time.Second).String() + " ago"
}

func printJSON(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	fmt.Println(string(data))
	return nil
}
