package rendered

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mistakes are what installers of clusters got wrong before, KubeKey among
// them, with the tests that kk does not: FILE:TEST, or a file of cases, below
// the root of the repository.
var mistakes = []struct {
	what   string
	proofs []string
}{
	{"a timer runs a script that nobody installed",
		[]string{"test/rendered/cluster_checks_test.go:checkStarted", "test/rendered/rendered_test.go:TestRendered"}},
	{"a script lost its first line, or does not parse; YAML does not, or a unit",
		[]string{"test/rendered/programs_test.go:checkScripts", "test/rendered/programs_test.go:checkUnits",
			"test/rendered/rendered_test.go:TestRendered"}},
	{"the backup of etcd dies of a variable that is not set",
		[]string{"test/roles/etcd_test.go:TestEtcd", "test/rendered/programs_test.go:checkScripts"}},
	{"a member that leaves stays in etcd's list, and loses its data first",
		[]string{"test/roles/etcd_test.go:TestEtcd", "test/cluster/cluster_test.go:TestControlPlanesWithExternalEtcd"}},
	{"a program is replaced, and the old one goes on running",
		[]string{"test/rendered/builtin_test.go:TestNewProgramsAreStarted", "test/roles/etcd_test.go:TestEtcd"}},
	{"false cannot be said, for default(true) makes it true",
		[]string{"test/rendered/count_test.go:TestNoDefaultTrue"}},
	{"an image without a tag is pushed",
		[]string{"test/rendered/registry_test.go:TestImagesThatArePulledWerePushed",
			"test/rendered/findings_test.go:images"}},
	{"the registry's data is lost with its container",
		[]string{"test/rendered/registry_test.go:TestRegistryKeepsItsDataOnTheHost"}},
	{"passwords stand in the code, or are kept where others read them",
		[]string{"test/rendered/cluster_checks_test.go:checkKept", "test/rendered/rendered_test.go:TestRendered"}},
	{"a plugin of the network is downloaded to one path and read from another",
		[]string{"test/rendered/cluster_checks_test.go:checkCache", "test/rendered/rendered_test.go:TestRendered"}},
	{"a distribution is in no branch, and gets no packages",
		[]string{"test/rendered/builtin_test.go:TestEveryDistributionHasPackages",
			"test/roles/os_test.go:TestOSRefusesAnUnknownDistribution",
			"pkg/module/packages/package_test.go:TestPackagePicksTheManager"}},
	{"kilobytes of memory are compared with a limit in megabytes",
		[]string{"test/precheck/testdata/os_memory.yaml", "test/precheck/testdata/os_memory_config.yaml"}},
	{"passwords and join tokens are on command lines, keys in /tmp; root runs what others may write",
		[]string{"test/rendered/findings_test.go:command", "test/rendered/builtin_test.go:TestNothingIsDoneBlindly",
			"test/e2e/faults_secrets_test.go:TestSecretsAreNeverSeen"}},
	{"names of one certificate are in the next",
		[]string{"pkg/module/pki/pki_test.go:TestNamesDoNotLeak"}},
	{"keys are RSA of 2048 bits alone, and certificates do not say what they are for",
		[]string{"pkg/module/pki/pki_test.go:TestChainsVerify", "pkg/module/pki/pki_test.go:TestPolicies"}},
	{"taking a cluster away flushes all rules of the firewall, and ends processes by what their names look like",
		[]string{"test/rendered/builtin_test.go:TestNothingIsDoneBlindly",
			"test/apps/delete_test.go:TestOnlyWhatThePluginMadeIsRemoved", "test/apps/install_test.go:TestOnlyOursIsTakenAway",
			"test/roles/os_test.go:TestOSIsPreparedAndUndone"}},
	{"control planes join all at once",
		[]string{"test/rendered/cluster_checks_test.go:checkJoins", "test/rendered/rendered_test.go:TestRendered"}},
	{"nobody looks at the end whether the cluster is well",
		[]string{"test/rendered/registry_test.go:TestReportOfHealth"}},
	{"a pattern of hosts that matches none is a success",
		[]string{"test/script/testdata/limit.txtar", "test/precheck/testdata/cluster_groups.yaml"}},
	{"half of the tasks run programs, so that nobody knows what changes",
		[]string{"test/rendered/count_test.go:TestOneTaskInSixRunsAProgram",
			"test/cluster/renew_test.go:TestCheckModeOnBareHosts"}},
}

// What is said to be proven has a proof.
func TestMistakesHaveTests(t *testing.T) {
	for _, m := range mistakes {
		tests := 0
		for _, proof := range m.proofs {
			file, name, inGo := strings.Cut(proof, ":")
			text, err := os.ReadFile(filepath.Join("../..", file))
			if err != nil {
				t.Errorf("%s: %v", m.what, err)
				continue
			}
			if inGo && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+name+`\(`).Match(text) {
				t.Errorf("%s: %s has no %s", m.what, file, name)
			}
			if !inGo || strings.HasPrefix(name, "Test") {
				tests++
			}
		}
		if tests == 0 {
			t.Errorf("%s: no test proves that kk does not", m.what)
		}
	}
}
