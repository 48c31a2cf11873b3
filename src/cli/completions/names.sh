# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh disable=SC3043,SC2012,SC2086
# Names that exist now: profiles, scenarios, network namespaces, containers, interfaces (of the namespace after
# --netns, if it has a name). All shells use this; zsh and fish have it between apostrophes, so it has none.
# Plain names only: compgen runs what is in a name, such as $(...), and the owner of a namespace chooses its names.
_emud_plain() {
    grep -xE "[[:alnum:]_.@+-]+"
}
_emud_interfaces() {
    if [ -n "$1" ]; then
        ip -n "$1" -o link show 2>/dev/null
    else
        ip -o link show 2>/dev/null
    fi | sed "s/^[0-9]*: \([^:@]*\).*/\1/" | grep . ||
        [ -n "$1" ] || sed -n "s/^ *\([^:]*\):.*/\1/p" /proc/net/dev
}
_emud_containers() {
    local engine
    for engine in docker podman; do
        command -v "$engine" >/dev/null && "$engine" ps --format "{{.Names}}" 2>/dev/null
    done
}
# Prints the kind of an argument, then its names, a line each; nothing without names. It gets that argument, and all
# before it.
_emud_names() {
    local cur="$1" prev="" verb="" netns="" kind="" names=""
    shift 2
    while [ $# -gt 0 ]; do
        prev="$1"
        case "$1" in
        --netns | --profile | -p | --against | --scenario | -s | --container | --in-place)
            if [ $# -gt 1 ]; then
                [ "$1" = --netns ] && netns="$2"
                prev="$2"
                shift
            fi
            ;;
        -*) ;;
        *) verb="${verb:+$verb }$1" ;;
        esac
        shift
    done
    case "$prev" in
    --profile | -p | --against) kind=profile ;;
    --scenario | -s) kind=scenario ;;
    --netns) kind=netns ;;
    --container) kind=container ;;
    --in-place) kind=interface ;;
    *)
        # The first argument of a verb, which is not an option.
        case "$verb:$cur" in
        *:-*) ;;
        attach:* | detach:* | show:* | set:* | verify:*) kind=interface ;;
        "profile show":* | "profile check"*:* | "profile plot":* | "export netem":* | "export tc":*) kind=profile ;;
        "scenario show":* | "scenario check"*:* | "scenario plan":*) kind=scenario ;;
        esac
        ;;
    esac
    case "$kind" in
    profile) names="@PROFILES@" ;;
    scenario) names="@SCENARIOS@" ;;
    netns) names=$(ls /run/netns 2>/dev/null | _emud_plain) ;;
    container) names=$(_emud_containers | _emud_plain) ;;
    interface) names=$(_emud_interfaces "$netns" | _emud_plain) ;;
    esac
    [ -z "$names" ] || printf "%s\n" "$kind" $names
}
