# The phases of a run and how long each took, from its journal: jq -rs -f phases.jq WORKDIR/runs/ID/events.jsonl
def at: (.time[0:19] + "Z" | fromdate) + ("0" + .time[19:-1] | tonumber);
[.[] | select(.type == "play_started" or .type == "run_ended")] as $p
| range($p | length - 1) as $i | "\((($p[$i + 1] | at) - ($p[$i] | at)) * 10 | round / 10) s\t\($p[$i].name)"
