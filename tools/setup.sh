# shellcheck shell=bash disable=SC2154  # `root` is set by the script that sources this
# Shared by ./run, ./test and .ci/run, which source it: installs what is missing, configures, builds.
# Everything said here goes to stderr; stdout belongs to the results. Sourced by bash with `set -eu`.
#
# Environment: FORESHARD_NO_INSTALL=1 never installs, but names what is missing. FORESHARD_JOBS=N
# compiles N files at once (else as many as there are cores and memory for).

# A compiler cache, where there is one, serves every clone: paths are taken relative to the tree.
export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1

say() { printf 'foreshard: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# install_packages <group>...: installs those packages of tools/packages.txt that are missing.
install_packages() {
  local -A wanted=() present=()
  local group name state missing=()
  while read -r group name; do
    case " $* " in *" $group "*) wanted[$name]=1 ;; esac
  done < <(grep -v '^#' "$root/tools/packages.txt")
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: expecting these to be installed already: ${!wanted[*]}"
    return
  fi
  while read -r state name; do
    if [ "$state" = ii ]; then present[$name]=1; fi
  done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${!wanted[@]}" 2>/dev/null)
  for name in "${!wanted[@]}"; do
    if [ -z "${present[$name]:-}" ]; then missing+=("$name"); fi
  done
  if [ ${#missing[@]} = 0 ]; then return; fi
  mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort)

  local as_root=()
  local by_hand="apt-get install ${missing[*]}"
  if [ -n "${FORESHARD_NO_INSTALL:-}" ]; then fail "missing packages; install them with: $by_hand"; fi
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "missing packages, and no sudo here; as root: $by_hand"
    as_root=(sudo)
    if [ ! -t 0 ]; then as_root+=(-n); fi
  fi
  say "installing with apt: ${missing[*]}"
  local log="$root/build/apt.log"
  mkdir -p "$root/build"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  if ! { "${apt[@]}" update &&
         "${apt[@]}" install --no-install-recommends "${missing[@]}"; } </dev/null >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "apt failed (all it said: build/apt.log); by hand: $by_hand"
  fi
}

# One compiler needs up to 1.5 GB: fewer at once where memory is short.
parallel_jobs() {
  local cores memory=0 key value rest limit
  if [ -n "${FORESHARD_JOBS:-}" ]; then echo "$FORESHARD_JOBS"; return; fi
  cores=$(nproc)
  while read -r key value rest; do
    if [ "$key" = MemAvailable: ]; then memory=$((value / 1024)); fi
  done </proc/meminfo
  if [ -r /sys/fs/cgroup/memory.max ]; then
    limit=$(</sys/fs/cgroup/memory.max)
    if [ "$limit" != max ] && [ $((limit >> 20)) -lt "$memory" ]; then memory=$((limit >> 20)); fi
  fi
  local fit=$((memory / 1500))
  if [ "$fit" -lt 1 ]; then fit=1; fi
  echo $((cores < fit ? cores : fit))
}

# configured <preset> [NAME=ON...]: whether build/<preset> is set up here and has these options.
configured() {
  local dir="$root/build/$1" option
  shift
  [ -f "$dir/build.ninja" ] && grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt" || return 1
  for option in "$@"; do
    grep -q "^${option%=*}:[A-Z]*=${option#*=}\$" "$dir/CMakeCache.txt" || return 1
  done
}

# configure <preset> [cmake argument...]: into build/<preset>; ninja itself repeats it when a list of
# sources or a cmake file changes.
configure() {
  local preset=$1 log="$root/build/$1/configure.log"
  shift
  mkdir -p "$root/build/$preset"
  say "configuring build/$preset"
  # A cache of another folder (a copied or moved tree) is of no use to cmake.
  if [ -f "$root/build/$preset/CMakeCache.txt" ] && ! configured "$preset"; then
    rm -rf "$root/build/$preset/CMakeCache.txt" "$root/build/$preset/CMakeFiles"
  fi
  if ! (cd "$root" && cmake --preset "$preset" "$@") </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    # Else the next run would take this one for done.
    rm -f "$root/build/$preset/build.ninja"
    fail "cmake failed (log: build/$preset/configure.log)"
  fi
}

# build <preset> <target>...: silent when there is nothing to do. All that ninja says is kept in
# build/<preset>/build.log; on a terminal one line shows the progress, elsewhere a line per tenth.
build() {
  local preset=$1 dir="$root/build/$1" log="$root/build/$1/build.log"
  shift
  local line tenth=-1 done_ all
  set +e  # PIPESTATUS has ninja's exit code
  NINJA_STATUS='[%f/%t] ' ninja -C "$dir" -j "$(parallel_jobs)" "$@" </dev/null 2>&1 | tee "$log" |
    while IFS= read -r line; do
      [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]] || continue
      done_=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      if [ "$all" -le 2 ]; then continue; fi  # ninja looks for new files and notes the commit
      if [ -t 2 ]; then
        printf '\r\033[K%.*s' "$((${COLUMNS:-80} - 1))" "foreshard: building $done_/$all ${BASH_REMATCH[3]}" >&2
      elif [ $((done_ * 10 / all)) -gt "$tenth" ]; then
        tenth=$((done_ * 10 / all))
        say "building build/$preset: $done_ of $all"
      fi
    done
  local code=${PIPESTATUS[0]}
  set -e
  if [ -t 2 ] && [ "$(wc -l <"$log")" -gt 2 ]; then printf '\r\033[K' >&2; fi
  if [ "$code" != 0 ]; then
    grep -v '^\[[0-9]*/[0-9]*\] ' "$log" | tail -n 60 >&2 || true
    fail "the build failed (log: build/$preset/build.log)"
  fi
}

# build_tests: builds the program, the tests and the benchmarks in build/release.
build_tests() {
  configured release FORESHARD_TESTS=ON FORESHARD_BENCHMARKS=ON ||
    configure release -DFORESHARD_TESTS=ON -DFORESHARD_BENCHMARKS=ON
  build release all
}
