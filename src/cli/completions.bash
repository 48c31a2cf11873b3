
# Names that exist now, in front of what is generated above: profiles, scenarios, network
# namespaces, interfaces (of the namespace after --netns, if it has a name).
_emud_live() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= word verb= netns= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --netns) netns=${COMP_WORDS[i + 1]-} && i=$((i + 1)) ;;
        -*) ;;
        *) verb=${verb:-$word} ;;
        esac
    done
    case $prev in
    --profile | -p) words="@PROFILES@" ;;
    --scenario | -s) words="@SCENARIOS@" ;;
    --netns) words=$(ls /run/netns 2>/dev/null) ;;
    attach | detach | show | set | verify | --in-place)
        [ "$prev" = --in-place ] || [ "$prev" = "$verb" ] || prev=
        case $cur in
        -*) prev= ;;
        esac
        [ -z "$prev" ] || words=$(ip ${netns:+-n "$netns"} -o link show 2>/dev/null |
            sed 's/^[0-9]*: \([^:@]*\).*/\1/')
        ;;
    esac
    if [ -z "$words" ]; then
        _emud "$@"
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    case $prev in
    --profile | -p | --scenario | -s) COMPREPLY+=($(compgen -f -- "$cur")) ;;
    esac
}
complete -F _emud_live -o nosort -o bashdefault -o default emud
