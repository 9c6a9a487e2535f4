# shellcheck shell=sh disable=SC2154
# The statements are on standard input. What the client needs to log in comes
# through the environment: no command line has a password in it.
sql_mysql() {
	client=mysql
	has mysql || client=mariadb
	need "$client"
	scratch
	[ "${p_config#\~/}" = "$p_config" ] || p_config=$HOME/${p_config#\~/}
	(
		umask 077
		{
			[ ! -r "$p_config" ] || printf '!include %s\n' "$p_config"
			printf '%s\n' "$KK_CLIENT"
		} >"$tmp/my.cnf"
	)
	"$client" --defaults-file="$tmp/my.cnf" --batch ${p_db:+"--database=$p_db"} >"$tmp/answer" 2>"$tmp/out" || {
		say error "$(output)"
		return 0
	}
	say answer "$(cat "$tmp/answer" && echo .)" # the end of it is seen, empty lines too
}
sql_postgresql() { # psql -c and -f would stand in a command line or need a file
	need psql
	scratch
	cd / # where the user may not be, psql complains
	psql --no-psqlrc --no-password ${p_quiet:+--quiet} --csv --set=ON_ERROR_STOP=1 --set=VERBOSITY=terse --file=- >"$tmp/answer" 2>"$tmp/out" || {
		say error "$(output)"
		return 0
	}
	say answer "$(cat "$tmp/answer" && echo .)" # the end of it is seen, empty lines too
	grep -q '[^[:space:]]' "$tmp/out" && say notice "$(output)"
	return 0
}
