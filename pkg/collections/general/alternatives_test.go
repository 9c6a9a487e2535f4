package general

import "testing"

func TestAlternativesAsRedHatShowsThem(t *testing.T) {
	g := parseAlternatives(`java - status is manual.
 link currently points to /usr/lib/jvm/jre-17/bin/java
/usr/lib/jvm/jre-17/bin/java - family java-17 priority 17
 follower jre: /usr/lib/jvm/jre-17
 follower none: (null)
/usr/lib/jvm/jre-8/bin/java - priority 8
Current ` + "`best'" + ` version is /usr/lib/jvm/jre-17/bin/java.
`)
	if g.mode != "manual" || g.current != "/usr/lib/jvm/jre-17/bin/java" || len(g.choices) != 2 ||
		g.choices["/usr/lib/jvm/jre-8/bin/java"].priority != 8 ||
		len(g.choices[g.current].subcommands) != 1 {
		t.Errorf("got %+v", g)
	}
}
