// Package exec holds the modules that run commands of the playbook's author:
// command, shell, raw, script and expect, and async_status, which asks for what
// of it runs in the background. Each costs one command on the host.
package exec

import "kubekey/pkg/module"

// Modules describes command, shell, raw, script, expect and async_status.
func Modules() []module.Spec {
	return []module.Spec{commandSpec(), shellSpec(), rawSpec(), scriptSpec(), expectSpec(), asyncStatusSpec()}
}

func commandSpec() module.Spec {
	return module.Spec{
		Name:    "command",
		Summary: "Runs a program without a shell in between.",
		Notes: []string{
			"The text is split into words as a shell would, but pipes, redirections, globs and `;` mean nothing: use shell for these. `$VAR` and `~` are expanded on the host; a variable that is not set stays as it is written.",
			"In check mode the program is not run: the result is skipped, with rc 0 and empty outputs, unless creates or removes decide.",
			"Of outputs above the setting output_memory (1 MiB together) the result holds the end, and all of it is in a file below the journal's folder of the run: stdout_file. With no_log there is no file.",
		},
		Examples: []string{
			"- name: Tell the kernel's release\n  command: uname -r\n  register: kernel\n  changed_when: false",
			"- name: Initialise once\n  command:\n    argv: [/usr/local/bin/init, --name, my cluster]\n    creates: /var/lib/app/done",
		},
		Returns:  append(commandReturns(), module.Return{Key: "cmd", Type: "list", Doc: "the words that were run"}),
		New:      func() module.Runner { return &command{} },
		FreeForm: "cmd",
	}
}

func shellSpec() module.Spec {
	return module.Spec{
		Name:    "shell",
		Summary: "Runs a text as a shell script.",
		Notes: []string{
			"In check mode nothing is run: the result is skipped, with rc 0 and empty outputs, unless creates or removes decide.",
			"Of outputs above the setting output_memory (1 MiB together) the result holds the end, and all of it is in a file below the journal's folder of the run: stdout_file. With no_log there is no file.",
		},
		Examples: []string{
			"- name: Count the images\n  shell: crictl images -q | sort -u | wc -l\n  register: images",
			"- name: Use what only bash has\n  shell: |\n    set -o pipefail\n    etcdctl snapshot save /backup/db | tee /var/log/backup.log\n  args:\n    executable: /bin/bash\n    creates: /backup/db",
		},
		Returns:  append(commandReturns(), module.Return{Key: "cmd", Type: "str", Doc: "the text that was run"}),
		New:      func() module.Runner { return &shellModule{} },
		FreeForm: "cmd",
	}
}

func rawSpec() module.Spec {
	return module.Spec{
		Name:    "raw",
		Summary: "Runs a text as it is, with nothing around it.",
		Notes:   []string{"Outputs are not stripped. In check mode the task is skipped."},
		Examples: []string{
			"- name: See what this machine is\n  raw: cat /proc/version",
		},
		Returns:  outputReturns(),
		New:      func() module.Runner { return &raw{} },
		FreeForm: "cmd",
	}
}

func scriptSpec() module.Spec {
	return module.Spec{
		Name:    "script",
		Summary: "Sends a script of the control node to the host, runs it and deletes it.",
		Notes: []string{
			"The script is looked for in files/ of the role and beside the playbook. It starts with `#!`, or sh runs it.",
			"What follows the path is read by the host's shell.",
			"In check mode the task is skipped, unless creates or removes decide.",
		},
		Examples: []string{
			"- name: Run a script with arguments\n  script: setup.sh --fast",
			"- name: Run it once\n  script:\n    cmd: setup.py\n    executable: python3\n    creates: /etc/app.conf",
		},
		Returns:  outputReturns(),
		New:      func() module.Runner { return &script{} },
		FreeForm: "cmd",
	}
}

func asyncStatusSpec() module.Spec {
	return module.Spec{
		Name:    "async_status",
		Summary: "Asks what became of a task that runs in the background.",
		Notes: []string{
			"It must run as the user that the task ran as: the job is known in ~/.ansible_async of that user, or in $ANSIBLE_ASYNC_DIR.",
			"When the job has failed, so does this task.",
			"A job that is no longer there, since the host was rebooted for instance, has failed.",
		},
		Examples: []string{
			"- name: Begin\n  command: /usr/local/bin/long --job\n  async: 3600\n  poll: 0\n  register: begun\n\n- name: Wait for it\n  async_status:\n    jid: \"{{ begun.ansible_job_id }}\"\n  register: job\n  until: job is finished\n  retries: 60\n  delay: 60",
			"- name: Forget it\n  async_status:\n    jid: \"{{ begun.ansible_job_id }}\"\n    mode: cleanup",
		},
		Returns: []module.Return{
			{Key: "ansible_job_id", Type: "str", Doc: "the job"},
			{Key: "started", Type: "int", Doc: "1"},
			{Key: "finished", Type: "int", Doc: "1 once the job has ended; then the keys of its module's result are there too"},
			{Key: "results_file", Type: "str", Doc: "file on the host that tells about the job"},
			{Key: "erased", Type: "str", Doc: "the file that cleanup deleted"},
		},
		New: func() module.Runner { return &asyncStatus{} },
	}
}

func outputReturns() []module.Return {
	return []module.Return{
		{Key: "rc", Type: "int", Doc: "exit status"},
		{Key: "stdout", Type: "str", Doc: "what was printed"},
		{Key: "stderr", Type: "str", Doc: "what was printed as errors"},
		{Key: "stdout_lines", Type: "list", Doc: "stdout by lines"},
		{Key: "stderr_lines", Type: "list", Doc: "stderr by lines"},
		{Key: "stdout_truncated", Type: "bool", Doc: "true when stdout is not all that was printed; also stderr_truncated"},
		{Key: "stdout_bytes", Type: "int", Doc: "with stdout_truncated, how much was printed; also stderr_bytes"},
		{Key: "stdout_file", Type: "str", Doc: "with stdout_truncated, file on the control node that has all of it; also stderr_file"},
	}
}

func commandReturns() []module.Return {
	return append(outputReturns(),
		module.Return{Key: "start", Type: "str", Doc: "when it began, on the control node's clock: 2030-01-31 12:00:00.000000"},
		module.Return{Key: "end", Type: "str", Doc: "when it ended"},
		module.Return{Key: "delta", Type: "str", Doc: "how long it took: 0:00:00.004613"},
		module.Return{Key: "msg", Type: "str", Doc: "why it failed or was not run, else empty"},
	)
}
