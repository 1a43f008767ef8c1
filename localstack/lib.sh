# SPDX-License-Identifier: Apache-2.0

# Shared by setup.sh, start.sh, stop.sh, functions.sh, up.sh and down.sh; sourced, never run.
#
# Where things are:
#   LULL_E2E      what setup.sh installs; may be cached and shared       default: .e2e in the repository
#   LULL_E2E_RUN  what running servers write: pid, port, log, data       default: $LULL_E2E/run
#
# Two runs at the same time need two LULL_E2E_RUN folders and different ports; they share one LULL_E2E.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LULL_E2E=${LULL_E2E:-$(dirname "$here")/.e2e}
case $LULL_E2E in /*) ;; *) LULL_E2E=$PWD/$LULL_E2E ;; esac
LULL_E2E_RUN=${LULL_E2E_RUN:-$LULL_E2E/run}
case $LULL_E2E_RUN in /*) ;; *) LULL_E2E_RUN=$PWD/$LULL_E2E_RUN ;; esac

say() { printf '%s\n' "localstack: $*" >&2; }

die() {
  say "$*"
  exit 1
}

# milliseconds prints the time since the epoch.
milliseconds() { date +%s%3N; }

# mark SERVER prints the environment entry that every process of a server carries. Children inherit it (Java,
# function bootstraps), also when their parent died, and a recycled pid never has it: stop.sh can hit nothing
# else, and misses nothing.
mark() { printf 'LULL_E2E_SERVER=%s' "$LULL_E2E_RUN/$1"; }

# owned_by SERVER prints the pids of a server's processes.
owned_by() {
  grep -lzFx -- "$(mark "$1")" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 || true
}

# listening PORT says whether somebody accepts connections on 127.0.0.1:PORT.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# exposed SERVER prints the addresses beyond loopback on which a server's processes listen, as /proc spells them.
# Linux lists a TCP socket by its inode; 0A is the state LISTEN.
exposed() {
  local pid
  for pid in $(owned_by "$1"); do
    find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n' || true
  done | awk '
    NR == FNR { ours[$1]; next }
    $4 == "0A" && ($10 in ours) {
      split($2, at, ":")
      if (at[1] !~ /^(0100007F|00000000000000000000000001000000|0000000000000000FFFF00000100007F)$/) print $2
    }' - /proc/net/tcp*
}

# servers prints the names of all servers.
servers() { for file in "$here"/servers/*.sh; do basename -s .sh "$file"; done | tr '\n' ' '; }

# installed NAME PATH [SERVER] stops with advice where setup.sh has not put PATH yet. SERVER is one that is
# installed on demand only.
installed() { [ -e "$2" ] || die "$1 is not installed in $LULL_E2E: run localstack/setup.sh${3:+ --only $3}"; }

# as_nobody is the command prefix that leaves root behind, for servers that refuse to run as root.
as_nobody=()

# choose_user PROGRAM FOLDER... sets as_nobody so that the program can be run and the folders written, where we
# are root. It prefers the user nobody. Where nobody may not enter the folder (a checkout below a home of mode
# 0700) a user namespace without a mapping serves: files still belong to us, and the process is not root.
choose_user() {
  local program=$1 group
  shift
  [ "$(id -u)" = 0 ] || return 0
  group=$(id -gn nobody)
  as_nobody=(setpriv --reuid nobody --regid "$group" --clear-groups)
  if "${as_nobody[@]}" test -x "$program" 2>/dev/null; then
    chown -R "nobody:$group" "$@"
    "${as_nobody[@]}" test -w "$1" && return 0
  fi
  as_nobody=(unshare --user)
  chown -R root:root "$@"
  "${as_nobody[@]}" test -w "$1" 2>/dev/null ||
    die "$(basename "$program"): neither the user nobody nor a user namespace can use $LULL_E2E: set LULL_E2E to a folder that everybody may enter"
}

# install_cdk installs the pinned CDK command line.
install_cdk() {
  rm -rf "$LULL_E2E/cdk"
  mkdir -p "$LULL_E2E/cdk"
  cp "$here/pins/package.json" "$here/pins/package-lock.json" "$LULL_E2E/cdk/"
  npm ci --silent --no-audit --no-fund --prefix "$LULL_E2E/cdk"
}
