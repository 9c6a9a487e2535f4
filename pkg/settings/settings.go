// Package settings is the settings of kk as a whole, outside of playbooks and inventories: in
// kk.yaml, in the environment, in Ansible's ansible.cfg.
//
// The struct Settings is the only table of them: its tags are their names, defaults, sources and
// documentation.
package settings

import (
	"reflect"
	"strconv"
	"strings"

	"kubekey/pkg/schema"
)

// Settings has a field for each setting. In addition to the tags of package schema:
//
// env    Ansible's environment variables; kk's own is KK_ and the name
// ini    its place in ansible.cfg: section.key
// flag   the equivalent flag
// words  Ansible's values and kk's, as from=to; * is any other value, and gives a warning
// sep    separator of list elements in the environment and in ansible.cfg; default comma
// min    the smallest number
// max    the greatest number
type Settings struct {
	Workdir         string   `kk:"workdir,path" flag:"workdir" doc:"folder for journal, hooks and files that kk creates; default ~/.kk"`
	Inventory       []string `kk:"inventory,path" env:"ANSIBLE_INVENTORY" ini:"defaults.inventory" flag:"inventory" doc:"inventories: files, folders, executables; a text that ends in a comma is a list of hosts"`
	CollectionsPath []string `kk:"collections_path,path" default:"~/.ansible/collections,/usr/share/ansible/collections" env:"ANSIBLE_COLLECTIONS_PATH,ANSIBLE_COLLECTIONS_PATHS" ini:"defaults.collections_path,defaults.collections_paths" sep:":" doc:"folders of collections, in addition to the project's folder collections; refer to their roles and playbooks by full name"`
	InputTimeout    int      `kk:"input_timeout" default:"300" min:"1" doc:"time limit in seconds for executables that print an inventory or a password, and for data from a pipe that is read as a file"`
	RolesPath       []string `kk:"roles_path,path" default:"~/.ansible/roles,/usr/share/ansible/roles,/etc/ansible/roles" env:"ANSIBLE_ROLES_PATH" ini:"defaults.roles_path" sep:":" doc:"folders of roles, in addition to those of the project"`

	Forks                 int      `kk:"forks" default:"50" min:"1" env:"ANSIBLE_FORKS" ini:"defaults.forks" flag:"forks" doc:"number of hosts to work on at a time"`
	Strategy              string   `kk:"strategy" default:"linear" choices:"linear,free" env:"ANSIBLE_STRATEGY" ini:"defaults.strategy" words:"ansible.builtin.linear=linear,ansible.builtin.free=free,*=linear" doc:"strategy of plays that do not set one"`
	ForceHandlers         bool     `kk:"force_handlers" default:"no" env:"ANSIBLE_FORCE_HANDLERS" ini:"defaults.force_handlers" flag:"force-handlers" doc:"run notified handlers on failed hosts too"`
	ErrorOnMissingHandler bool     `kk:"error_on_missing_handler" default:"yes" env:"ANSIBLE_ERROR_ON_MISSING_HANDLER" ini:"defaults.error_on_missing_handler" doc:"notifying a handler that does not exist is an error; with no, a warning"`
	AnyErrorsFatal        bool     `kk:"any_errors_fatal" default:"no" env:"ANSIBLE_ANY_ERRORS_FATAL" ini:"defaults.any_errors_fatal" doc:"default of the keyword any_errors_fatal: a failure on one host ends the play for all"`
	HashBehaviour         string   `kk:"hash_behaviour" default:"replace" choices:"replace,merge" env:"ANSIBLE_HASH_BEHAVIOUR" ini:"defaults.hash_behaviour" doc:"whether a dictionary replaces one with the same name and lower precedence, or is merged into it"`
	Tags                  []string `kk:"tags" env:"ANSIBLE_RUN_TAGS" ini:"tags.run" flag:"tags" doc:"run only tasks with one of these tags"`
	SkipTags              []string `kk:"skip_tags" env:"ANSIBLE_SKIP_TAGS" ini:"tags.skip" flag:"skip-tags" doc:"skip tasks with one of these tags"`

	Gathering             string   `kk:"gathering" default:"implicit" choices:"implicit,explicit,smart" env:"ANSIBLE_GATHERING" ini:"defaults.gathering" doc:"when plays gather facts: implicit: unless they set no; explicit: only if they set yes; smart: unless the host's facts are known"`
	GatherSubset          []string `kk:"gather_subset" env:"ANSIBLE_GATHER_SUBSET" ini:"defaults.gather_subset" doc:"facts to gather in plays that do not set them: all, min, hardware, network, virtual, and !x to skip x; default all"`
	GatherTimeout         int      `kk:"gather_timeout" default:"0" min:"0" env:"ANSIBLE_GATHER_TIMEOUT" ini:"defaults.gather_timeout" doc:"time limit in seconds for gathering, in plays that do not set one; 0 is the default of the module setup"`
	FactPath              string   `kk:"fact_path" env:"ANSIBLE_FACT_PATH" ini:"defaults.fact_path" doc:"folder of custom facts on the hosts, for plays that do not set one; default /etc/ansible/facts.d"`
	FactCaching           string   `kk:"fact_caching" default:"memory" choices:"memory,jsonfile" env:"ANSIBLE_CACHE_PLUGIN" ini:"defaults.fact_caching" words:"ansible.builtin.memory=memory,ansible.builtin.jsonfile=jsonfile,*=memory" doc:"where facts are cached: in memory for the run, or in files for later runs"`
	FactCachingConnection string   `kk:"fact_caching_connection,path" env:"ANSIBLE_CACHE_PLUGIN_CONNECTION" ini:"defaults.fact_caching_connection" doc:"folder of cached fact files; default facts in the work folder"`
	FactCachingTimeout    int      `kk:"fact_caching_timeout" default:"86400" min:"0" env:"ANSIBLE_CACHE_PLUGIN_TIMEOUT" ini:"defaults.fact_caching_timeout" doc:"seconds until cached facts expire; 0 is never"`

	RemoteUser             string `kk:"remote_user" env:"ANSIBLE_REMOTE_USER" ini:"defaults.remote_user" flag:"user" doc:"user to log in as"`
	RemotePort             int    `kk:"remote_port" default:"0" min:"0" max:"65535" env:"ANSIBLE_REMOTE_PORT" ini:"defaults.remote_port" doc:"port of sshd; 0 is the port in ~/.ssh/config, else 22"`
	PrivateKeyFile         string `kk:"private_key_file,path" env:"ANSIBLE_PRIVATE_KEY_FILE" ini:"defaults.private_key_file" flag:"private-key" doc:"private key file to log in with"`
	Connection             string `kk:"connection" choices:"ssh,local,smart" env:"ANSIBLE_TRANSPORT" ini:"defaults.transport" words:"paramiko=ssh" flag:"connection" doc:"how to reach hosts; default ssh"`
	Timeout                int    `kk:"timeout" default:"10" min:"1" env:"ANSIBLE_TIMEOUT,ANSIBLE_SSH_TIMEOUT" ini:"defaults.timeout,ssh_connection.timeout" flag:"timeout" doc:"seconds to wait for a connection"`
	SSHHostKey             string `kk:"ssh_host_key" default:"strict" choices:"strict,accept-new,insecure" env:"ANSIBLE_HOST_KEY_CHECKING,ANSIBLE_SSH_HOST_KEY_CHECKING" ini:"defaults.host_key_checking,ssh_connection.host_key_checking" words:"true=strict,false=insecure" flag:"ssh-host-key" doc:"unknown host keys: strict rejects them, accept-new adds them to known_hosts, insecure does not check"`
	SSHArgs                string `kk:"ssh_args" env:"ANSIBLE_SSH_ARGS" ini:"ssh_connection.ssh_args" doc:"arguments of the ssh command: -o Option=value, -J, -i; those for connection sharing have no effect"`
	SSHCommonArgs          string `kk:"ssh_common_args" env:"ANSIBLE_SSH_COMMON_ARGS" ini:"ssh_connection.ssh_common_args" flag:"ssh-common-args" doc:"additional ssh arguments for hosts without ansible_ssh_common_args"`
	SSHExtraArgs           string `kk:"ssh_extra_args" env:"ANSIBLE_SSH_EXTRA_ARGS" ini:"ssh_connection.ssh_extra_args" flag:"ssh-extra-args" doc:"additional ssh arguments for hosts without ansible_ssh_extra_args"`
	AskPass                bool   `kk:"ask_pass" default:"no" env:"ANSIBLE_ASK_PASS" ini:"defaults.ask_pass" flag:"ask-pass" doc:"prompt for the login password"`
	ConnectionPasswordFile string `kk:"connection_password_file,path" env:"ANSIBLE_CONNECTION_PASSWORD_FILE" ini:"defaults.connection_password_file" flag:"connection-password-file" doc:"file with the login password on its first line, or an executable that prints it"`

	Become             bool   `kk:"become" default:"no" env:"ANSIBLE_BECOME" ini:"privilege_escalation.become" flag:"become" doc:"run tasks as another user"`
	BecomeMethod       string `kk:"become_method" default:"sudo" choices:"sudo,su" env:"ANSIBLE_BECOME_METHOD" ini:"privilege_escalation.become_method" words:"ansible.builtin.sudo=sudo,ansible.builtin.su=su" flag:"become-method" doc:"how to become the user"`
	BecomeUser         string `kk:"become_user" default:"root" env:"ANSIBLE_BECOME_USER" ini:"privilege_escalation.become_user" flag:"become-user" doc:"user to become"`
	BecomeExe          string `kk:"become_exe" env:"ANSIBLE_BECOME_EXE" ini:"privilege_escalation.become_exe" doc:"executable to use instead of sudo or su"`
	BecomeFlags        string `kk:"become_flags" env:"ANSIBLE_BECOME_FLAGS" ini:"privilege_escalation.become_flags" doc:"flags for the become executable"`
	BecomeAskPass      bool   `kk:"become_ask_pass" default:"no" env:"ANSIBLE_BECOME_ASK_PASS" ini:"privilege_escalation.become_ask_pass" flag:"ask-become-pass" doc:"prompt for the become password"`
	BecomePasswordFile string `kk:"become_password_file,path" env:"ANSIBLE_BECOME_PASSWORD_FILE" ini:"defaults.become_password_file" flag:"become-password-file" doc:"file with the become password on its first line, or an executable that prints it"`

	AskVaultPass         bool     `kk:"ask_vault_pass" default:"no" env:"ANSIBLE_ASK_VAULT_PASS" ini:"defaults.ask_vault_pass" flag:"ask-vault-password" doc:"prompt for the vault password"`
	VaultPasswordFile    string   `kk:"vault_password_file,path" env:"ANSIBLE_VAULT_PASSWORD_FILE" ini:"defaults.vault_password_file" doc:"file with the vault password, or an executable that prints it; tried after those of --vault-password-file"`
	VaultIdentityList    []string `kk:"vault_identity_list" env:"ANSIBLE_VAULT_IDENTITY_LIST" ini:"defaults.vault_identity_list" doc:"vault passwords in the form of --vault-id: ID@FILE; tried before those of the flag"`
	VaultIDMatch         bool     `kk:"vault_id_match" default:"no" env:"ANSIBLE_VAULT_ID_MATCH" ini:"defaults.vault_id_match" doc:"try only passwords with the vault's own ID"`
	VaultEncryptIdentity string   `kk:"vault_encrypt_identity" env:"ANSIBLE_VAULT_ENCRYPT_IDENTITY" ini:"defaults.vault_encrypt_identity" doc:"ID of the password to encrypt with"`

	OutputMemory int `kk:"output_memory" default:"1024" min:"16" doc:"KiB of command output in the result of a task on a host; of longer output, the result has the end, and the run's journal folder has all"`
	OutputDisk   int `kk:"output_disk" default:"16384" min:"0" doc:"MiB of disk space for such long outputs of one run, of which 0 stores none; 512 MiB always stay free. Those of the last ten runs are kept"`

	Output              string `kk:"output" default:"text" choices:"text,ansible,json,jsonl,ansible-json" env:"ANSIBLE_STDOUT_CALLBACK" ini:"defaults.stdout_callback" words:"default=text,ansible.builtin.default=text,yaml=text,community.general.yaml=text,debug=text,ansible.posix.debug=text,minimal=text,oneline=text,dense=text,unixy=text,skippy=text,selective=text,json=ansible-json,ansible.posix.json=ansible-json,ansible.posix.jsonl=jsonl,*=text" flag:"output" doc:"output format of a run"`
	Verbosity           int    `kk:"verbosity" default:"0" min:"0" env:"ANSIBLE_VERBOSITY" ini:"defaults.verbosity" flag:"verbose" doc:"how many -v"`
	Diff                bool   `kk:"diff" default:"no" env:"ANSIBLE_DIFF_ALWAYS" ini:"diff.always" flag:"diff" doc:"show changes to files"`
	DisplaySkippedHosts bool   `kk:"display_skipped_hosts" default:"yes" env:"ANSIBLE_DISPLAY_SKIPPED_HOSTS" ini:"defaults.display_skipped_hosts" doc:"show the hosts that a task was skipped on"`
	RetryFilesEnabled   bool   `kk:"retry_files_enabled" default:"no" env:"ANSIBLE_RETRY_FILES_ENABLED" ini:"defaults.retry_files_enabled" doc:"write the failed hosts to PLAYBOOK.retry, for --limit @FILE; --limit @failed needs no file"`
	RetryFilesSavePath  string `kk:"retry_files_save_path,path" env:"ANSIBLE_RETRY_FILES_SAVE_PATH" ini:"defaults.retry_files_save_path" doc:"folder of retry files; default the folder of the playbook"`
	LogPath             string `kk:"log_path,path" env:"ANSIBLE_LOG_PATH" ini:"defaults.log_path" doc:"file to append the text output of every run to"`
}

// Key is a place in ansible.cfg.
type Key struct{ Section, Name string }

func (k Key) String() string { return "[" + k.Section + "] " + k.Name }

// Setting is one row of the table.
type Setting struct {
	schema.Arg
	Env   []string // of Ansible
	INI   []Key
	Flag  string
	words map[string]string
	sep   string
	min   *int
	max   *int
}

// OwnEnv is kk's own environment variable for the setting.
func (s Setting) OwnEnv() string { return "KK_" + strings.ToUpper(s.Name) }

func (s Setting) isPath() bool { return strings.Contains(s.Type, "path") }

func (s Setting) isList() bool { return strings.HasPrefix(s.Type, "list") }

// Table lists the settings.
func Table() []Setting {
	args, err := schema.Describe(&Settings{})
	if err != nil {
		panic(err) // invalid tags in the struct above: every test fails
	}
	t := reflect.TypeFor[Settings]()
	out := make([]Setting, len(args))
	for i, a := range args {
		out[i] = newSetting(a, t.Field(i).Tag)
	}
	return out
}

func newSetting(a schema.Arg, tag reflect.StructTag) Setting {
	s := Setting{Arg: a, Env: words(tag.Get("env")), Flag: tag.Get("flag"), sep: tag.Get("sep")}
	if s.sep == "" {
		s.sep = ","
	}
	for _, k := range words(tag.Get("ini")) {
		section, name, _ := strings.Cut(k, ".")
		s.INI = append(s.INI, Key{section, name})
	}
	for _, w := range words(tag.Get("words")) {
		if s.words == nil {
			s.words = map[string]string{}
		}
		from, to, _ := strings.Cut(w, "=")
		s.words[from] = to
	}
	if n, err := strconv.Atoi(tag.Get("min")); err == nil {
		s.min = &n
	}
	if n, err := strconv.Atoi(tag.Get("max")); err == nil {
		s.max = &n
	}
	return s
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// Value is a setting with its current value.
type Value struct {
	Setting Setting
	Value   any    // string, int, bool or []string
	Origin  string // "default", "kk.yaml:3:8", "environment variable KK_FORKS", "flag --forks"
}

// Changed reports whether the setting differs from its default source.
func (v Value) Changed() bool { return v.Origin != byDefault }

const byDefault = "default"

// Texts is the value in the form of a flag: the elements of a list, else one text.
func (v Value) Texts() []string { return texts(v.Value) }
