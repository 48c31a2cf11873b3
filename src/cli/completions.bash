
# Names that exist now, in front of what is generated above: profiles, scenarios, network namespaces,
# containers, interfaces (of the namespace after --netns, if it has a name).
# Plain names only: compgen runs what is in a word, such as $(...), and who has a namespace chooses its names.
_emud_plain() {
    grep -x '[[:alnum:]_.@+-]*'
}
_emud_interfaces() {
    ip ${1:+-n "$1"} -o link show 2>/dev/null | sed 's/^[0-9]*: \([^:@]*\).*/\1/' | grep . ||
        [ -n "$1" ] || sed -n 's/^ *\([^:]*\):.*/\1/p' /proc/net/dev
}
_emud_containers() {
    local engine
    for engine in docker podman; do
        command -v "$engine" >/dev/null && "$engine" ps --format '{{.Names}}' 2>/dev/null
    done
}
_emud_live() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= word verb= netns= kind= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --netns) netns=${COMP_WORDS[i + 1]-} && i=$((i + 1)) ;;
        -*) ;;
        *) verb="${verb:+$verb }$word" ;;
        esac
    done
    case $prev in
    --profile | -p | --against) kind=profile ;;
    --scenario | -s) kind=scenario ;;
    --netns) kind=netns ;;
    --container) kind=container ;;
    --in-place) kind=interface ;;
    *)
        # The first argument of a verb, which is not an option.
        case $verb:$cur in
        *:-*) ;;
        attach:* | detach:* | show:* | set:* | verify:*) kind=interface ;;
        "profile show":* | "profile check"*:* | "profile plot":* | "export netem":* | "export tc":*) kind=profile ;;
        "scenario show":* | "scenario check"*:* | "scenario plan":*) kind=scenario ;;
        esac
        ;;
    esac
    case $kind in
    profile) words="@PROFILES@" ;;
    scenario) words="@SCENARIOS@" ;;
    netns) words=$(ls /run/netns 2>/dev/null | _emud_plain) ;;
    container) words=$(_emud_containers | _emud_plain) ;;
    interface) words=$(_emud_interfaces "$netns" | _emud_plain) ;;
    esac
    if [ -z "$words" ]; then
        _emud "$@"
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    case $kind in
    profile | scenario) COMPREPLY+=($(compgen -f -- "$cur")) ;;
    esac
}
complete -F _emud_live -o nosort -o bashdefault -o default emud
