
_emud_live() {
    local cur=${COMP_WORDS[COMP_CWORD]} found
    mapfile -t found < <(_emud_names "$cur" "${COMP_WORDS[@]:0:COMP_CWORD}")
    if [ ${#found[@]} = 0 ]; then
        _emud "$@"
        return
    fi
    COMPREPLY=($(compgen -W "${found[*]:1}" -- "$cur"))
    case ${found[0]} in
    profile | scenario) COMPREPLY+=($(compgen -f -- "$cur")) ;;
    esac
}
complete -F _emud_live -o nosort -o bashdefault -o default emud
