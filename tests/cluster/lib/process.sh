# shellcheck shell=bash
# Starting, finding and ending the cluster's processes. Each carries
# FAASRL_CLUSTER_PROCESS=NAME@RUNDIR in its environment: by that mark they are
# told from anyone else's, also when the pid files or a whole clone are gone.

started=$SECONDS
say() { printf '[%3ds] %s\n' $((SECONDS - started)) "$*"; }
die() {
  echo "error: $*" >&2
  exit 1
}

# start NAME COMMAND...: in the background, out of this session, logging to logs/NAME.log.
start() {
  local name=$1
  shift
  echo "--- $(date -Is) $*" >>"$run/logs/$name.log"
  # It must not hold on to the locks, or to a pipe of whoever called.
  FAASRL_CLUSTER_PROCESS=$name@$run setsid "$@" </dev/null >>"$run/logs/$name.log" 2>&1 \
    3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
  echo $! >"$run/pids/$name"
  until marked $! "$name@$run" || ! kill -0 $! 2>/dev/null; do sleep 0.01; done # until it is more than a fork of this shell
}

# alive NAME: is the process of the pid file there, and ours?
alive() {
  local pid
  pid=$(cat "$run/pids/$1" 2>/dev/null) || return 1
  marked "$pid" "$1@$run" && [[ $(ps -o stat= -p "$pid") != Z* ]]
}

# marked PID MARK: the mark may be a pattern.
marked() {
  local entry
  while IFS= read -r -d '' entry; do
    # shellcheck disable=SC2053
    [[ $entry == FAASRL_CLUSTER_PROCESS=$2 ]] && return 0
  done 2>/dev/null <"/proc/$1/environ"
  return 1
}

# processes [DIR]: "PID NAME DIR" of this user's processes of the cluster in DIR, or of any cluster.
processes() {
  local file mark
  { grep -lsa -F FAASRL_CLUSTER_PROCESS= /proc/[0-9]*/environ 2>/dev/null || true; } | while read -r file; do
    [[ -O $file ]] || continue
    mark=$(tr '\0' '\n' <"$file" 2>/dev/null | sed -n 's/^FAASRL_CLUSTER_PROCESS=//p' | head -n1) || continue
    [[ -n $mark && (-z ${1:-} || ${mark#*@} == "$1") ]] || continue
    file=${file#/proc/}
    echo "${file%/environ} ${mark%%@*} ${mark#*@}"
  done
}

# ready NAME SECONDS COMMAND...: waits until the command succeeds.
ready() {
  local name=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    # While a program takes the place of the one that starts it, its environment is empty for a moment.
    alive "$name" || { sleep 0.5 && alive "$name"; } || {
      tail -n 15 "$run/logs/$name.log" >&2
      die "$name ended at once; its log: $run/logs/$name.log"
    }
    ((SECONDS < end)) || die "$name is not ready in time; its log: $run/logs/$name.log"
    sleep 0.1
  done
}

# within SECONDS COMMAND...: waits until the command succeeds; fails if it never does.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.3
  done
}

# end SIGNAL PID...: and waits until they are gone; what is left after 3 s is killed:
# etcd and the API server can wait long for their clients to go.
end() {
  local signal=$1 pid tries=0
  shift
  kill -s "$signal" -- "$@" 2>/dev/null || true
  for pid in "$@"; do
    while [[ -d /proc/$pid && $(ps -o stat= -p "$pid") != Z* ]]; do
      ((++tries != 30)) || kill -s KILL -- "$@" 2>/dev/null || true
      ((tries < 300)) || die "process $pid does not end: $(ps -o args= -p "$pid")"
      sleep 0.1
    done
  done
}

stop() {
  if alive "$1"; then end "${2:-TERM}" "$(cat "$run/pids/$1")"; fi
  rm -f "$run/pids/$1"
}
