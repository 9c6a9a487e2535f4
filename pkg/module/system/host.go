// Package system holds the modules for what a host's administration tools
// keep: services, packages, users and groups, the host name, kernel settings
// and modules, mounts and cron jobs.
//
// Each module runs one POSIX shell script that looks, acts if it must, and
// answers in fields (pkg/hostscript). Modules that edit a table (mount, sysctl,
// cron) read with one script, decide in Go, and act with a second one only if
// something is to change. In check mode the same scripts run with a flag that
// keeps them from acting.
package system

import (
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		systemdSpec(), serviceSpec(),
		packageSpec(), aptSpec(), dnfSpec(), zypperSpec(), apkSpec(),
		userSpec(), groupSpec(),
		hostnameSpec(), sysctlSpec(), modprobeSpec(), mountSpec(), cronSpec(),
		getentSpec(), packageFactsSpec(), serviceFactsSpec(),
		authorizedKeySpec(), knownHostsSpec(),
		aptRepositorySpec(), aptKeySpec(), deb822RepositorySpec(), yumRepositorySpec(), rpmKeySpec(),
		selinuxSpec(), sebooleanSpec(), mountFactsSpec(), sysvinitSpec(), localeGenSpec(), pamLimitsSpec(), pipSpec(),
		debconfSpec(), dpkgSelectionsSpec(), timezoneSpec(), alternativesSpec(),
		sshConfigSpec(),
	}
}

// resultOf starts a module's result from an answer.
func resultOf(a hostscript.Answer, pairs ...any) module.Result {
	return module.Result{Changed: a.Changed(), Warnings: a["warn"], Data: value.NewDict(pairs...)}
}

// diffOf is a difference between two states that are shown as JSON.
func diffOf(header string, before, after *value.Dict) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

func textDiff(header, before, after string) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

// deref is the value of an optional text, "" if there is none.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lines splits a text into lines without their ends.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// joined is the counterpart of lines.
func joined(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// list is strings as a value of playbooks.
func list(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
