package settings

import (
	"slices"
	"strings"
)

// fixed is a setting of Ansible's for which kk has only one value.
type fixed struct {
	env string
	ini Key
	is  bool
}

// fixedSettings give a warning if they are set to something that kk does not do.
func fixedSettings() []fixed {
	return []fixed{
		{"ANSIBLE_ERROR_ON_UNDEFINED_VARS", Key{"defaults", "error_on_undefined_vars"}, true},
		{"ANSIBLE_INJECT_FACT_VARS", Key{"defaults", "inject_facts_as_vars"}, true},
		{"ANSIBLE_JINJA2_NATIVE", Key{"defaults", "jinja2_native"}, false},
		{"ANSIBLE_NO_LOG", Key{"defaults", "no_log"}, false},
		{"ANSIBLE_PRIVATE_ROLE_VARS", Key{"defaults", "private_role_vars"}, false},
		{"ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", Key{"inventory", "any_unparsed_is_failed"}, true},
		{"ANSIBLE_INVENTORY_UNPARSED_FAILED", Key{"inventory", "unparsed_is_failed"}, true},
	}
}

// fixedBy reports whether the matching setting is set to what kk does.
func fixedBy(text string, match func(fixed) bool) bool {
	i := slices.IndexFunc(fixedSettings(), match)
	if i < 0 {
		return false
	}
	word, _ := Setting{words: map[string]string{"true": "true", "false": "false"}}.translate(text)
	return word == map[bool]string{true: "true", false: "false"}[fixedSettings()[i].is]
}

// quietSections are parts of ansible.cfg that do not apply to kk: other programs and plugins,
// colours.
func quietSections() []string {
	return []string{"colors", "galaxy", "persistent_connection", "paramiko_connection", "local_connection", "jinja2",
		"netconf_connection", "winrm", "psrp", "httpapi_connection"}
}

// quietNames are settings without a visible effect in kk: how Ansible copies and runs its
// modules, shares its connections and decorates its output. Their environment variables are
// ANSIBLE_ and the name in capitals.
func quietNames() []string {
	return []string{
		// modules on hosts: kk copies none there
		"pipelining", "ssh_pipelining", "remote_tmp", "local_tmp", "remote_temp", "local_temp", "keep_remote_files",
		"interpreter_python", "python_interpreter",
		"module_name", "module_lang", "module_set_locale", "module_compression", "allow_world_readable_tmpfiles",
		"system_tmpdirs", "async_dir",
		"poll_interval", "internal_poll_interval", "use_persistent_connections", "shell_allow_world_readable_temp",
		"python_module_rlimit_nofile",
		"bin_ansible_callbacks", "home", "cache_plugin_prefix", "fact_caching_prefix",
		// connections of the ssh program
		"control_path", "control_path_dir", "scp_if_ssh", "sftp_batch_mode", "sftp_executable", "scp_executable",
		"ssh_executable", "transfer_method",
		"scp_extra_args", "sftp_extra_args", "ssh_control_path", "ssh_control_path_dir", "ssh_retries", "retries", "usetty",
		"ssh_usetty", "ssh_transfer_method",
		"reconnection_retries", "sshpass_prompt", "pkcs11_provider", "become_allow_same_user",
		// output
		"nocows", "cow_selection", "cowsay_enabled_stencils", "cow_acceptlist", "cow_whitelist", "cowpath", "cowsay_path",
		"nocolor", "force_color",
		"deprecation_warnings", "command_warnings", "system_warnings", "devel_warning", "localhost_warning",
		"action_warnings", "inventory_unparsed_warning",
		"display_args_to_stdout", "display_failed_stderr", "display_ok_hosts", "show_per_host_start",
		"show_task_path_on_failure", "show_custom_stats",
		"check_mode_markers", "verbose_to_stderr", "result_format", "callback_result_format", "pretty_results",
		"callback_format_pretty", "callbacks_enabled", "callback_whitelist",
		"callback_enabled", "log_filter", "log_verbosity", "display_traceback", "max_diff_size", "diff_context", "context",
		"squash_actions", "task_timeout_display",
		// where Ansible finds its own parts
		"collections_scan_sys_path", "collections_on_ansible_version_mismatch", "enable_plugins", "inventory_enabled",
		"old_plugin_cache_clear", "editor", "pager", "target_log_info", "connection_path", "facts_modules", "parallel_facts",
	}
}

// quiet reports whether an environment variable of Ansible's can be ignored silently.
func quiet(env string) bool {
	name := strings.ToLower(strings.TrimPrefix(env, "ANSIBLE_"))
	for _, prefix := range []string{"galaxy_", "color_", "persistent_", "paramiko_", "test_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "config" || slices.Contains(quietNames(), name)
}

func quietKey(k Key) bool {
	return slices.Contains(quietSections(), k.Section) || strings.HasPrefix(k.Section, "callback_") ||
		slices.Contains(quietNames(), k.Name)
}

// instead names the replacement of a setting; "" if there is none.
func instead(name string) string {
	for _, row := range [...][2]string{
		{"error_on_undefined", "use the filter default where a name can be undefined"},
		{"library", "put modules of a project into the folder library next to the playbook, or of a role"},
		{"plugins", "write filters and tests of a project as expressions in filter_plugins/*.yaml next to the playbook"},
	} {
		if strings.Contains(strings.ToLower(name), row[0]) {
			return row[1]
		}
	}
	return ""
}
