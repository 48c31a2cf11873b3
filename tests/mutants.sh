#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plant the faults of tests/mutants/, one at a time, and check that the tests notice each.
#
# usage: mutants.sh [--check | --no-baseline] [--bare] [NAME...]
#
# NAME selects patches whose name contains it (default: all). Prints one line per fault: `caught`,
# `SURVIVED`, or why there is no verdict. Logs: target/mutants/log/.
#
#   --check        only check that the patches apply and name tests of EMUD_PURE, EMUD_KERNEL,
#                  EMUD_LIVE and EMUD_UNIT (programs; tests/run.sh sets them)
#   --no-baseline  do not first run the selected tests without a fault
#   --bare         run the tests without separate namespaces
#
# What is tested is the tracked files as they are now, in a shared clone under target/mutants/; the
# working tree is not touched. The kernel and live tests need root.
# Only what `make test` runs counts.
#
# EMUD_MUTANTS_TIMEOUT: seconds for one test command (default 600); a time-out counts as caught.
#
# A patch begins with two lines, which git apply ignores, and an empty one:
#   Fault: what is wrong now and what a user would suffer.
#   Tests: BINARY FILTER [FILTER...]     (BINARY: pure, kernel, live, lib for unit tests, or guest
#                                         for live tests in a guest kernel)
#
# exit status: 0 if every fault was caught, 1 otherwise, 64 for wrong arguments.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

readonly root=$PWD
readonly work=$root/target/mutants
readonly tree=$work/tree
readonly limit=${EMUD_MUTANTS_TIMEOUT:-600}
readonly build_limit=3600
export CARGO_TARGET_DIR=$work/build
export CARGO_TERM_COLOR=never
# Another emud would be tested instead of the faulty one.
unset EMUD_BIN
export EMUD_VM_DIR=$root/target/vm

check=0
baseline=1
bare=0
names=()
for argument; do
    case $argument in
    --check) check=1 ;;
    --no-baseline) baseline=0 ;;
    --bare) bare=1 ;;
    -*)
        sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2
        exit 64
        ;;
    *) names+=("$argument") ;;
    esac
done

die() {
    echo "mutants.sh: $1" >&2
    exit "${2:-1}"
}

patches=()
select_patches() {
    local patch name found
    if [ ${#names[@]} -eq 0 ]; then
        patches=(tests/mutants/*.patch)
        [ -e "${patches[0]}" ] || die "no patches in tests/mutants"
        return
    fi
    for patch in tests/mutants/*.patch; do
        for name in "${names[@]}"; do
            case ${patch##*/} in *"$name"*.patch)
                patches+=("$patch")
                break
                ;;
            esac
        done
    done
    for name in "${names[@]}"; do
        found=0
        for patch in "${patches[@]}"; do
            case ${patch##*/} in *"$name"*.patch) found=1 ;; esac
        done
        [ "$found" -eq 1 ] || die "no patch is called \"$name\"" 64
    done
}

# The header of a patch: sets binary and filters.
binary=
filters=()
read_header() {
    local fault tests empty words
    {
        IFS= read -r fault
        IFS= read -r tests
        IFS= read -r empty
    } <"$1"
    [[ $fault == "Fault: "?* && $tests == "Tests: "?* && -z $empty ]] || return
    read -r -a words <<<"${tests#Tests: }"
    binary=${words[0]}
    filters=("${words[@]:1}")
    [[ $binary =~ ^(pure|kernel|live|lib|guest)$ && ${#filters[@]} -gt 0 ]]
}

# The running job: a separate session and process group, so that it can be ended as a whole.
job=
log=
run_job() {
    (cd "$tree" && exec setsid "$@") </dev/null >"$log" 2>&1 9>&- &
    job=$!
    local status=0
    wait "$job" || status=$?
    job=
    return "$status"
}

# shellcheck disable=SC2317 # called by the trap
end_job() {
    local i
    kill -TERM -- "-$job" 2>/dev/null
    for ((i = 0; i < 50; i++)); do
        kill -0 -- "-$job" 2>/dev/null || return
        sleep 0.1
    done
    kill -KILL -- "-$job" 2>/dev/null
}

# shellcheck disable=SC2317 # called by the trap
cleanup() {
    trap '' INT TERM HUP
    [ -z "$job" ] || end_job
    [ -z "${planted-}" ] || git -C "$tree" reset --quiet --hard
}

# Tests leave processes, interfaces and named namespaces behind if the fault is in the code that
# removes them, or after a timeout. In separate namespaces all of that ends with the tests; named
# network namespaces are mounts below /run/netns, named after process numbers, which repeat here.
contained=()
contain() {
    [ "$bare" -eq 0 ] || return 0
    # shellcheck disable=SC2016 # for the shell inside
    local inside='ip link set lo up && mkdir -p /run/netns &&
            mount -t tmpfs mutants /run/netns || exit 125
        "$@"
        exit $?'
    contained=(unshare --pid --fork --kill-child --mount-proc --net -- bash -c "$inside" inside)
    if ! "${contained[@]}" true 2>/dev/null; then
        echo "mutants.sh: no namespaces can be created: tests may leave things behind" >&2
        contained=()
    fi
}

# What cargo test needs to know of a binary: sets target.
target=()
targets_of() {
    target=(--test "$1")
    case $1 in
    lib) target=(--workspace --lib) ;;
    # It builds what it runs.
    guest) target=(--test live --bins) ;;
    esac
}

build() {
    targets_of "$1"
    run_job timeout -k 10 "$build_limit" cargo test --locked --no-run "${target[@]}"
}

# Tests that match a filter: sets verdict to passed, failed, time-out, or an error. One filter a
# command: not every test harness takes several.
verdict=
try() {
    local status=0 ran tests
    targets_of "$1"
    case $1 in
    guest) tests=(tests/vm/live.sh 7.2) ;;
    *) tests=("${contained[@]}" env EMUD_LIVE_SCALE=0.2 cargo test --locked --offline "${target[@]}" --) ;;
    esac
    run_job timeout -k 10 "$limit" "${tests[@]}" "$2" || status=$?
    ran=$(awk '/^test result: / { n += $4 + $6 } END { print n + 0 }' "$log")
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        verdict=time-out
    elif [ "$status" -eq 0 ] && [ "$ran" -eq 0 ]; then
        verdict="ERROR: no test of $1 matches $2"
    elif [ "$status" -eq 0 ]; then
        verdict=passed
    elif grep -qE '^test result: FAILED|\(signal: [0-9]+' "$log"; then
        verdict=failed
    else
        verdict="ERROR: the tests of $1 could not be run"
    fi
}

# The tests that the selected patches name, without a fault.
check_baseline() {
    local patch filter key began=$SECONDS bad=0
    declare -A tried=() built=()
    for patch in "${patches[@]}"; do
        read_header "$patch"
        log=$work/log/baseline.log
        if [ -z "${built[$binary]-}" ]; then
            if ! build "$binary"; then
                tail -n 40 "$log" >&2
                die "without a fault $binary does not build"
            fi
            built[$binary]=1
        fi
        for filter in "${filters[@]}"; do
            key="$binary $filter"
            [ -z "${tried[$key]-}" ] || continue
            tried[$key]=1
            log=$work/log/baseline-$binary-${filter//:/_}.log
            try "$binary" "$filter"
            [ "$verdict" = passed ] && continue
            echo "baseline: $key: $verdict (${log#"$root"/})"
            bad=1
        done
    done
    [ "$bad" -eq 0 ] || die "the tests do not pass without a fault: nothing can be concluded"
    echo "baseline: ${#tried[@]} filters pass, $((SECONDS - began)) s"
}

# names_of BINARY: its tests.
names_of() {
    local program
    case $1 in
    pure) "$EMUD_PURE" --list ;;
    kernel) "$EMUD_KERNEL" --list ;;
    live) "$EMUD_LIVE" --list ;;
    # As tests/vm/live.sh runs it.
    guest) EMUD_GUEST=1 EMUD_EXPECT_ENGINES='fq hold qdisc' EMUD_EXPECT=netem "$EMUD_LIVE" --list ;;
    lib) for program in $EMUD_UNIT; do "$program" --list; done ;;
    esac
}

# A test that has moved, or code that has changed, leaves a fault that nothing plants.
check_patches() {
    local patch filter bad=0
    declare -A known=()
    for patch in "${patches[@]}"; do
        git apply --check "$patch" || bad=1
        read_header "$patch"
        [ -n "${known[$binary]-}" ] || known[$binary]=$(names_of "$binary")
        for filter in "${filters[@]}"; do
            grep -qF -- "$filter" <<<"${known[$binary]}" && continue
            echo "$patch: no test of $binary matches $filter"
            bad=1
        done
    done
    echo "${#patches[@]} patches"
    return "$bad"
}

caught=0
survivors=()
broken=()
judge() {
    local patch=$1 name began=$SECONDS filter said
    name=${patch##*/}
    name=${name%.patch}
    log=$work/log/$name.log
    read_header "$patch"
    planted=1
    if ! git -C "$tree" apply "$root/$patch" 2>"$log"; then
        said="does not apply"
    elif ! build "$binary"; then
        said="does not build"
    else
        said=SURVIVED
        for filter in "${filters[@]}"; do
            try "$binary" "$filter"
            case $verdict in
            passed) continue ;;
            failed) said=caught ;;
            time-out) said="caught (time-out)" ;;
            *) said=$verdict ;;
            esac
            break
        done
    fi
    git -C "$tree" reset --quiet --hard || die "cannot reverse $name in ${tree#"$root"/}"
    planted=
    case $said in
    caught*) caught=$((caught + 1)) ;;
    SURVIVED) survivors+=("$name") ;;
    *) broken+=("$name: $said (${log#"$root"/})") ;;
    esac
    printf '%-48s %s, %d s\n' "$name" "$said" $((SECONDS - began))
}

# The tracked files as they are, committed nowhere.
check_out() {
    local commit
    commit=$(git rev-parse HEAD) || die "this is no git repository with a commit"
    git update-index -q --refresh
    if ! git diff-index --quiet HEAD --; then
        commit=$(git -c user.name=mutants -c user.email=mutants@localhost stash create) ||
            die "cannot take the state of the working tree"
    fi
    [ -e "$tree/.git" ] || git clone --quiet --shared --no-checkout "$root" "$tree" ||
        die "cannot clone into ${tree#"$root"/}"
    git -C "$tree" checkout --quiet --force --detach "$commit" ||
        die "cannot check out into ${tree#"$root"/}"
    git -C "$tree" clean -fdq
}

select_patches
for patch in "${patches[@]}"; do
    read_header "$patch" ||
        die "$patch: it must begin with \"Fault: ...\", \"Tests: BINARY FILTER...\" and an empty line"
done
if [ "$check" -eq 1 ]; then
    for program in EMUD_PURE EMUD_KERNEL EMUD_LIVE EMUD_UNIT; do
        [ -n "${!program-}" ] || die "--check needs $program, as tests/run.sh sets it" 64
    done
    check_patches
    exit
fi
mkdir -p "$work/log"
exec 9>"$work/lock"
flock -n 9 || die "another mutants.sh runs in ${work#"$root"/}"
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
check_out
contain
[ "$baseline" -eq 0 ] || check_baseline
for patch in "${patches[@]}"; do
    judge "$patch"
done

echo
[ ${#survivors[@]} -eq 0 ] || printf 'survived: %s\n' "${survivors[@]}"
[ ${#broken[@]} -eq 0 ] || printf 'no verdict: %s\n' "${broken[@]}"
echo "$caught of $((caught + ${#survivors[@]})) caught"
[ ${#survivors[@]} -eq 0 ] && [ ${#broken[@]} -eq 0 ]
