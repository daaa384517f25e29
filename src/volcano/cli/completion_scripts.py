"""What shells read to complete our programs: one script for all of them, which asks a program for candidates."""

from __future__ import annotations

from typing import Final

ASKED_ITSELF: Final = "volcano"
"""Its commands are not known to vcctl, which answers for all other programs."""

BASH: Final = """\
# Completion of {programs}; put this into ~/.bashrc:
#   source <({asked} completion bash)
_volcano_complete() {{
    local IFS=$'\\n' program="${{COMP_WORDS[0]##*/}}" asked=vcctl
    [[ $program == volcano ]] && asked=volcano
    COMPREPLY=($("$asked" __complete -- "$program" "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null))
    [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *[/=] ]] && compopt -o nospace
    return 0
}}
complete -o default -F _volcano_complete {programs}
"""
ZSH: Final = """\
#compdef {programs}
# Completion of {programs}; put this into ~/.zshrc, after compinit:
#   source <({asked} completion zsh)
_volcano_complete() {{
    local -a candidates
    local program="${{words[1]:t}}" asked=vcctl
    [[ $program == volcano ]] && asked=volcano
    candidates=("${{(@f)$("$asked" __complete -- "$program" "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    candidates=(${{candidates:#}})
    if (( ${{#candidates}} )); then
        compadd -- ${{candidates:#*[/=]}}
        compadd -S '' -- ${{(M)candidates:#*[/=]}}
    else
        _files
    fi
}}
compdef _volcano_complete {programs}
"""
FISH: Final = """\
# Completion of {programs}; put this into ~/.config/fish/config.fish:
#   {asked} completion fish | source
function __volcano_complete
    set -l words (commandline -opc)
    set -l program (string replace -r '.*/' '' -- $words[1])
    set -l asked vcctl
    test $program = volcano; and set asked volcano
    set -l found ($asked __complete -- $program $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
for program in {programs}
    complete -c $program -f -a '(__volcano_complete)'
end
"""
SHELLS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion_script(shell: str, programs: tuple[str, ...], asked: str) -> str:
    """For one of SHELLS; `asked` is the program that printed it."""
    return SHELLS[shell].format(programs=" ".join(programs), asked=asked)
