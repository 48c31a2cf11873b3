
function __emud_live
    set -l cur (commandline -ct)
    sh -c '@NAMES@
_emud_names "$@"' emud "$cur" (commandline -opc) 2>/dev/null
end
function __emud_is
    set -l found (__emud_live)
    contains -- "$found[1]" $argv
end
function __emud_found
    __emud_live | tail -n +2
end
complete -c emud -n '__emud_is profile' -s p -l profile -r -a '(__emud_found)'
complete -c emud -n '__emud_is profile' -l against -r -a '(__emud_found)'
complete -c emud -n '__emud_is scenario' -s s -l scenario -r -a '(__emud_found)'
complete -c emud -n '__emud_is netns' -l netns -x -a '(__emud_found)'
complete -c emud -n '__emud_is container' -l container -x -a '(__emud_found)'
complete -c emud -n '__emud_is interface' -l in-place -x -a '(__emud_found)'
complete -c emud -n '__emud_is interface' -f -a '(__emud_found)'
complete -c emud -n '__emud_is profile scenario' -a '(__emud_found)'
