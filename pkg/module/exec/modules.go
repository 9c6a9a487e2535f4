// Package exec holds the modules that run commands: command, shell, raw, script and
// expect, and async_status, which queries jobs in the background. Each costs one command
// on the host.
package exec

import "kubekey/pkg/module"

// Modules describes command, shell, raw, script, expect and async_status.
func Modules() []module.Spec {
	return []module.Spec{commandSpec(), shellSpec(), rawSpec(), scriptSpec(), expectSpec(), asyncStatusSpec()}
}

func commandSpec() module.Spec {
	return module.Spec{
		Name:    "command",
		Summary: "Runs a command without a shell.",
		Notes: []string{
			"The text is split into arguments as in a shell, but pipes, redirections, globs and `;` have no special meaning: " +
				"use shell for these. `$VAR` and `~` are expanded on the host; an unset variable is kept as written.",
			"In check mode the command is not run: the result is skipped, with rc 0 and empty output, unless creates or " +
				"removes decides.",
			"Of output above the setting output_memory (1 MiB in total) the result holds only the end; the whole output is " +
				"in stdout_file, below the journal folder of the run. With no_log no file is written.",
		},
		Examples: []string{
			"- name: Print the kernel release\n  command: uname -r\n  register: kernel\n  changed_when: false",
			"- name: Initialize once\n  command:\n    argv: [/usr/local/bin/init, --name, my cluster]\n" +
				"    creates: /var/lib/app/done",
		},
		Returns:  append(commandReturns(), module.Return{Key: "cmd", Type: "list", Doc: "the arguments that were run"}),
		New:      func() module.Runner { return &command{} },
		FreeForm: "cmd",
	}
}

func shellSpec() module.Spec {
	return module.Spec{
		Name:    "shell",
		Summary: "Runs a command line in a shell.",
		Notes: []string{
			"In check mode the command is not run: the result is skipped, with rc 0 and empty output, unless creates or " +
				"removes decides.",
			"Of output above the setting output_memory (1 MiB in total) the result holds only the end; the whole output is " +
				"in stdout_file, below the journal folder of the run. With no_log no file is written.",
		},
		Examples: []string{
			"- name: Count the images\n  shell: crictl images -q | sort -u | wc -l\n  register: images",
			"- name: Use a feature of bash\n  shell: |\n    set -o pipefail\n" +
				"    etcdctl snapshot save /backup/db | tee /var/log/backup.log\n  args:\n    executable: /bin/bash\n" +
				"    creates: /backup/db",
		},
		Returns:  append(commandReturns(), module.Return{Key: "cmd", Type: "str", Doc: "the command line that was run"}),
		New:      func() module.Runner { return &shellModule{} },
		FreeForm: "cmd",
	}
}

func rawSpec() module.Spec {
	return module.Spec{
		Name:    "raw",
		Summary: "Runs a command line unmodified, without further processing.",
		Notes:   []string{"Output is not stripped. In check mode the task is skipped."},
		Examples: []string{
			"- name: Print the kernel version\n  raw: cat /proc/version",
		},
		Returns:  outputReturns(),
		New:      func() module.Runner { return &raw{} },
		FreeForm: "cmd",
	}
}

func scriptSpec() module.Spec {
	return module.Spec{
		Name:    "script",
		Summary: "Copies a script from the control node to the host, runs it and deletes it.",
		Notes: []string{
			"The script is searched for in files/ of the role and next to the playbook. A script without `#!` is run by sh.",
			"The arguments after the path are expanded by the shell of the host.",
			"In check mode the task is skipped, unless creates or removes decides.",
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
		Summary: "Returns the status of an asynchronous task.",
		Notes: []string{
			"It must run as the same user as the task: the job is stored in ~/.ansible_async of that user, or in " +
				"$ANSIBLE_ASYNC_DIR.",
			"If the job failed, this task fails too.",
			"A job that no longer exists, for example because the host was rebooted, counts as failed.",
		},
		Examples: []string{
			"- name: Start a long job\n  command: /usr/local/bin/long --job\n  async: 3600\n  poll: 0\n" +
				"  register: started\n\n- name: Wait for it\n  async_status:\n    jid: \"{{ started.ansible_job_id }}\"\n" +
				"  register: job\n  until: job is finished\n  retries: 60\n  delay: 60",
			"- name: Remove the status file\n  async_status:\n    jid: \"{{ started.ansible_job_id }}\"\n    mode: cleanup",
		},
		Returns: []module.Return{
			{Key: "ansible_job_id", Type: "str", Doc: "ID of the job"},
			{Key: "started", Type: "int", Doc: "1"},
			{Key: "finished", Type: "int", Doc: "1 if the job has finished; then the result of its module is included"},
			{Key: "results_file", Type: "str", Doc: "status file of the job on the host"},
			{Key: "erased", Type: "str", Doc: "status file that cleanup deleted"},
		},
		New: func() module.Runner { return &asyncStatus{} },
	}
}

func outputReturns() []module.Return {
	return []module.Return{
		{Key: "rc", Type: "int", Doc: "exit status"},
		{Key: "stdout", Type: "str", Doc: "standard output"},
		{Key: "stderr", Type: "str", Doc: "standard error"},
		{Key: "stdout_lines", Type: "list", Doc: "stdout by lines"},
		{Key: "stderr_lines", Type: "list", Doc: "stderr by lines"},
		{Key: "stdout_truncated", Type: "bool", Doc: "true if stdout is incomplete; also stderr_truncated"},
		{Key: "stdout_bytes", Type: "int", Doc: "with stdout_truncated, size of the whole output in bytes; also " +
			"stderr_bytes"},
		{Key: "stdout_file", Type: "str", Doc: "with stdout_truncated, file on the control node with the whole output; " +
			"also stderr_file"},
	}
}

func commandReturns() []module.Return {
	return append(outputReturns(),
		module.Return{Key: "start", Type: "str", Doc: "start time on the clock of the control node: 2030-01-31 " +
			"12:00:00.000000"},
		module.Return{Key: "end", Type: "str", Doc: "end time of the command"},
		module.Return{Key: "delta", Type: "str", Doc: "duration: 0:00:00.004613"},
		module.Return{Key: "msg", Type: "str", Doc: "why it failed or was not run, otherwise empty"},
	)
}
