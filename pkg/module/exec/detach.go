package exec

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// An async job has a status file on the host, ~/.ansible_async/ID, as in Ansible;
// $ANSIBLE_ASYNC_DIR sets another folder. It holds JSON: first the running job, then its
// result.
var (
	//go:embed detach.sh
	detachScript string
	//go:embed watch.sh
	watchScript string
	//go:embed job.sh
	jobScript string
)

// detach starts the job on the host, in a session of its own.
func (j job) detach(ctx context.Context, c *module.Call, id string, limit time.Duration) (module.Result, error) {
	j.Limit, j.NoLog = int(math.Ceil(limit.Seconds())), connector.IsNoLog(ctx)
	j.Keep = c.Bound().Keep
	note, err := json.Marshal(j.ending)
	if err != nil {
		return module.Result{}, fmt.Errorf("start the job: %w", err)
	}
	line := shell.Script(detachScript, id, strconv.Itoa(j.Limit), string(note), j.line, watchScript,
		connector.KillMarked(id), strconv.Itoa(j.Keep))
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Stdin: j.stdin}, connector.MaxAnswer)
	if err != nil {
		return module.Result{}, err
	}
	file := strings.TrimSpace(string(out.Stdout))
	if out.Code != 0 || file == "" {
		return module.Result{Failed: true, Msg: "start the job: " + strings.TrimSpace(out.Stderr)}, nil
	}
	return module.StartedJob(id, file), nil
}
