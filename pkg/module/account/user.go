package account

import (
	"cmp"
	"context"
	_ "embed"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed account.sh
var AccountScript string

//go:embed user.sh
var userScript string

// User is the module user.
type User struct {
	Name           string         `kk:"name,required,alias=user" doc:"name of the user"`
	UID            *int           `kk:"uid" doc:"numeric ID. Default: chosen by the host"`
	NonUnique      bool           `kk:"non_unique" default:"no" doc:"allow a uid that another user already uses"`
	Group          string         `kk:"group" doc:"name or GID of the primary group. Default: as configured on the host"`
	Groups         *[]string      `kk:"groups" doc:"supplementary groups; an empty list removes the user from all of them. Default: unchanged"`
	Append         bool           `kk:"append" default:"no" doc:"add groups to the existing ones instead of replacing them"`
	Shell          string         `kk:"shell" doc:"login shell"`
	Home           string         `kk:"home,path" doc:"home folder"`
	MoveHome       bool           `kk:"move_home" default:"no" doc:"move the existing home folder to home"`
	CreateHome     bool           `kk:"create_home,alias=createhome" default:"yes" doc:"create the home folder if it does not exist"`
	Skeleton       string         `kk:"skeleton" doc:"folder on the host whose content is copied to a new home folder"`
	Umask          string         `kk:"umask" doc:"umask for a new home folder, octal"`
	Comment        *string        `kk:"comment" doc:"full name or other description"`
	System         bool           `kk:"system" default:"no" doc:"create a system user, with a UID from the system range"`
	Password       *redact.Secret `kk:"password" doc:"hash of the password, as in /etc/shadow; never the password itself"`
	UpdatePassword string         `kk:"update_password" default:"always" choices:"always,on_create" doc:"always set the password, or only for new users"`
	PasswordLock   *bool          `kk:"password_lock" doc:"lock or unlock the password"`
	ExpireMax      *int           `kk:"password_expire_max" doc:"maximum number of days between password changes"`
	ExpireMin      *int           `kk:"password_expire_min" doc:"minimum number of days between password changes"`
	ExpireWarn     *int           `kk:"password_expire_warn" doc:"number of days of warning before the password expires"`
	UIDMin         *int           `kk:"uid_min" doc:"lowest ID that the host may choose"`
	UIDMax         *int           `kk:"uid_max" doc:"highest ID that the host may choose"`
	SEUser         string         `kk:"seuser" doc:"SELinux user that a new user is mapped to"`
	Expires        *float64       `kk:"expires" doc:"when the account expires, in seconds since 1970; a negative value means never"`
	State          string         `kk:"state" default:"present" choices:"absent,present" doc:"whether the user should exist"`
	Remove         bool           `kk:"remove" default:"no" doc:"with state: absent, remove the home folder and mail too"`
	Force          bool           `kk:"force" default:"no" doc:"with state: absent, remove a user who is logged in"`
	Local          bool           `kk:"local" default:"no" doc:"use the files in /etc only, not directory services"`
	SSHKey         bool           `kk:"generate_ssh_key" default:"no" doc:"generate an SSH key without a passphrase if none exists"`
	SSHKeyBits     *int           `kk:"ssh_key_bits" doc:"size of the key in bits. Default: that of ssh-keygen"`
	SSHKeyType     string         `kk:"ssh_key_type" default:"rsa" doc:"type of the key"`
	SSHKeyFile     string         `kk:"ssh_key_file,path" doc:"path of the key, relative to the home folder. Default: .ssh/id_TYPE"`
	SSHKeyComment  string         `kk:"ssh_key_comment" doc:"comment of the key. Default: ansible-generated on HOST"`
}

func userSpec() module.Spec {
	return module.Spec{
		Name:    "user",
		Summary: "Creates, changes and removes users.",
		Notes: []string{
			"A group that does not exist fails the task; in check mode it is a warning, since an earlier task may create it.",
			"The hash of a password is sent over standard input; it never appears on a command line.",
			"With busybox only, users can be created and removed, and their groups and passwords changed; other changes " +
				"need usermod.",
		},
		Examples: []string{
			"- name: Create an administrator\n  user:\n    name: ops\n    groups: sudo\n    append: true\n    shell: /bin/bash",
			"- name: Remove a user\n  user:\n    name: guest\n    state: absent\n    remove: true",
		},
		Returns: userReturns(),
		New:     func() module.Runner { return new(User) },
	}
}

func userReturns() []module.Return {
	return []module.Return{
		{Key: "name", Type: "str", Doc: "name of the user"},
		{Key: "state", Type: "str", Doc: "present or absent"},
		{Key: "uid", Type: "int", Doc: "numeric ID"},
		{Key: "group", Type: "int", Doc: "GID of the primary group"},
		{Key: "groups", Type: "str", Doc: "the requested supplementary groups, separated by commas"},
		{Key: "home", Type: "str", Doc: "home folder"},
		{Key: "shell", Type: "str", Doc: "login shell"},
		{Key: "comment", Type: "str", Doc: "description"},
		{Key: "create_home", Type: "bool", Doc: "the argument, for a new user"},
		{Key: "system", Type: "bool", Doc: "the argument, for a new user"},
		{Key: "append", Type: "bool", Doc: "the argument"},
		{Key: "move_home", Type: "bool", Doc: "the argument"},
		{Key: "remove", Type: "bool", Doc: "the argument, with state: absent"},
		{Key: "force", Type: "bool", Doc: "the argument, with state: absent"},
		{Key: "ssh_key_file", Type: "str", Doc: "path of the key, with generate_ssh_key"},
		{Key: "ssh_public_key", Type: "str", Doc: "the public key"},
		{Key: "ssh_fingerprint", Type: "str", Doc: "fingerprint of the key"},
	}
}

// Rules implements schema.Ruled.
func (*User) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		IsAccount("user", "name"),
		schema.Looks("without colons and line breaks", noColon, "home", "shell", "comment"),
		schema.Needs("groups").If("append", true).Says("append is set, but no groups are given"),
		schema.Between("expires", -1e12, 1e12),
		schema.Looks("an octal number such as 077", isUmask, "umask"),
		schema.Looks("a hash", noColon, "password").
			Says("the value of password is not a hash: it contains a colon or a line break"),
	}
}

// Run implements module.Runner.
func (m *User) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	warnings, err := m.check()
	if err != nil {
		return module.Result{}, err
	}
	s := hostscript.New(AccountScript, userScript, "user_main")
	m.params(s, c.Host)
	s.Renews = true
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return module.Result{}, err
	}
	r := m.result(c, a)
	r.Warnings = append(r.Warnings, warnings...)
	return r, nil
}

func noColon(text string) bool { return !strings.ContainsAny(text, ":\n\x00") }

func isUmask(text string) bool {
	_, err := strconv.ParseUint(text, 8, 9)
	return err == nil
}

func (m *User) check() (warnings []string, err error) {
	if m.Password == nil {
		return nil, nil
	}
	hash := m.Password.Reveal()
	if !looksHashed(hash) {
		warnings = append(warnings, "The input password appears not to have been hashed. The 'password' argument must "+
			"be encrypted for this module to work properly.")
	}
	return warnings, nil
}

// looksHashed reports whether a password is a hash, or one of the markers that
// disable it.
func looksHashed(p string) bool {
	return p == "*" || strings.HasPrefix(p, "!") || strings.HasPrefix(p, "$") || p == "*************" || len(p) == 13
}

func (m *User) params(s *hostscript.Script, host string) {
	if s.Args(m); m.Groups != nil {
		s.Set("groups", strings.Join(*m.Groups, ","))
	}
	if m.Password != nil {
		s.Flag("has_password", true)
		s.Stdin = strings.NewReader(m.Password.Reveal() + "\n")
	}
	m.expiry(s)
	m.key(s, host)
}

// expiry passes the expiry date in the form of usermod (a date) and of
// /etc/shadow (days since 1970).
func (m *User) expiry(s *hostscript.Script) {
	if m.Expires == nil || *m.Expires < 0 {
		return
	}
	at := time.Unix(int64(*m.Expires), 0).UTC()
	s.Set("expires_date", at.Format(time.DateOnly)).Set("expires_days", strconv.FormatInt(at.Unix()/86400, 10))
}

func (m *User) key(s *hostscript.Script, host string) {
	if !m.SSHKey {
		return
	}
	s.Set("ssh_key_file", cmp.Or(m.SSHKeyFile, ".ssh/id_"+m.SSHKeyType))
	s.Set("ssh_key_comment", cmp.Or(m.SSHKeyComment, "ansible-generated on "+host))
}

func (m *User) result(c *module.Call, a hostscript.Answer) module.Result {
	r := module.ResultOf(a, "name", m.Name, "state", m.State)
	if m.State == "absent" {
		r.Data.Set("remove", m.Remove)
		r.Data.Set("force", m.Force)
	} else {
		m.describe(a, r.Data)
	}
	c.Show(&r, "user "+m.Name, userState(a, "was_", a.Has("was")), m.after(c, a))
	return r
}

// after is the user after the task; in check mode, the predicted one.
func (m *User) after(c *module.Call, a hostscript.Answer) *value.Dict {
	d := userState(a, "", m.State == "present")
	if !c.Check || m.State == "absent" {
		return d
	}
	if m.UID != nil {
		d.Set("uid", strconv.Itoa(*m.UID))
	}
	if m.Comment != nil {
		d.Set("comment", *m.Comment)
	}
	for key, text := range map[string]string{"home": m.Home, "shell": m.Shell} {
		if text != "" {
			d.Set(key, text)
		}
	}
	if m.Groups != nil && !m.Append {
		d.Set("groups", strings.Join(*m.Groups, ","))
	}
	return d
}

func (m *User) describe(a hostscript.Answer, d *value.Dict) {
	d.Set("append", m.Append)
	d.Set("move_home", m.MoveHome)
	if !a.Has("was") {
		d.Set("create_home", m.CreateHome)
		d.Set("system", m.System)
	}
	for _, key := range []string{"uid", "group"} {
		if a.Get(key) != "" {
			d.Set(key, a.Number(key))
		}
	}
	for _, key := range []string{"home", "shell", "comment", "ssh_key_file", "ssh_public_key", "ssh_fingerprint"} {
		if a.Has(key) {
			d.Set(key, strings.TrimSpace(a.Get(key)))
		}
	}
	if m.Groups != nil {
		d.Set("groups", strings.Join(*m.Groups, ","))
	}
	if m.Password != nil {
		d.Set("password", "NOT_LOGGING_PASSWORD")
	}
}

// userState is the user before or after, for a diff.
func userState(a hostscript.Answer, prefix string, present bool) *value.Dict {
	if !present {
		return value.NewDict("state", "absent")
	}
	d := value.NewDict("state", "present")
	for _, key := range []string{"uid", "group", "groups", "comment", "home", "shell"} {
		if a.Has(prefix + key) {
			d.Set(key, a.Get(prefix+key))
		}
	}
	return d
}
