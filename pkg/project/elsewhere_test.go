package project

import "testing"

func TestIsElsewhere(t *testing.T) {
	for name, want := range map[string]bool{
		"community.general.snap": true, "amazon.aws.ec2_instance": true, "ec2_instance": true, "win_copy": true, "snap": true,
		"ansible.builtin.nope": false, "ansible.legacy.nope": false, "kk.core.nope": false, "a.b": false, "a..b": false,
		"nope": false, "snapp": false, "": false, "a.win_x": false, "docker_x.y": false,
	} {
		if got := isElsewhere(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
