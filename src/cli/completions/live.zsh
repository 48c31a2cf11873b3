_emud() {
    local -a found
    found=("${(@f)$(sh -c '@NAMES@
_emud_names "$@"' emud "$words[CURRENT]" "${(@)words[1,CURRENT-1]}" 2>/dev/null)}")
    local kind=$found[1]
    shift found
    case $kind in
    '') _emud_generated "$@" ;;
    profile | scenario)
        compadd -a found
        _files
        ;;
    *) compadd -a found ;;
    esac
}

