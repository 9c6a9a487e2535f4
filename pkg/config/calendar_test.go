package config

import (
	"os/exec"
	"testing"
)

// TestCalendar compares the results with systemd-analyze where it is installed.
func TestCalendar(t *testing.T) {
	program, missing := exec.LookPath("systemd-analyze")
	for text, ok := range map[string]bool{
		"*-*-* 02:00:00": true, "*-*-01 03:00:00": true, "daily": true, "Mon..Fri 22:30": true, "weekly": true,
		"Monthly":       true,
		"Sat,Sun 12:05": true, "*:0/15": true, "00/2:00": true, "2030-01-01": true, "*-02~01": true, "12,14,13:20": true,
		"mon *-*-* 00:00:00.5": true, "*-*-1..7 18:00": true, "Mon *-05~07/1": true, "03-05 08:05:40": true,
		"Sun 2030-*-* 17:48": true, "*-*-* 04:00:00 UTC": true, "*-*-* 04:00:00 Europe/Berlin": true, "@1700000000": true,
		"Thursday":    true,
		"*-*-* 25:00": false, "every tuesday": false, "2 am": false, "0 2 * * *": false, "*-13-01": false, "*-*-32": false,
		"24:00": false, "12:60": false, "sometimes": false, "Mon..Fri..": false, "*-*-* 02:00:00 Nowhere/City": false,
		"10:00 Mon": false, "*:0/0": false, "5..2:00": false, "02:00;rm": false, "*-*-*\n02:00": true,
	} {
		if err := calendar(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if missing == nil && text != "*-*-*\n02:00" {
			if err := exec.Command(program, "calendar", "--", text).Run(); (err == nil) != ok {
				t.Errorf("%q: systemd says %v", text, err)
			}
		}
	}
}

func TestRangesThatNoMachineHas(t *testing.T) {
	for text, ok := range map[string]bool{
		"10.233.64.0/18": true, "10.233.64.0/18,fd85::/56": true, "192.168.0.0/16": true, "100.64.0.0/10": true,
		"2001:db8::/48": true,
		"127.0.0.0/8":   false, "127.1.0.0/16": false, "224.0.0.0/4": false, "239.0.0.0/8": false, "240.0.0.0/5": false,
		"0.0.0.0/0": false, "0.0.0.0/8": false,
		"169.254.0.0/16": false, "128.0.0.0/1": false, "::/0": false, "fe80::/64": false, "ff00::/16": false,
		"::1/128": false, "10.0.0.0/8,ff00::/8": false,
	} {
		if err := cidrs(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
