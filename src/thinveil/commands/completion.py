"""thinveil completion: the script by which a shell completes commands, options and values."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from thinveil.commands.shared.grouped import Command
from thinveil.report.text.streams import pour

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_THINVEIL_COMPLETE"


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, mechanisms and files.

    Write it to where the shell looks for such scripts, once, and open a new shell. To try it
    without installing anything: source it, as in the last example.

    \b
    Examples:
      mkdir -p ~/.local/share/bash-completion/completions ~/.zfunc
      mkdir -p ~/.config/fish/completions
      thinveil completion bash \\
          > ~/.local/share/bash-completion/completions/thinveil
      thinveil completion zsh > ~/.zfunc/_thinveil
      thinveil completion fish > ~/.config/fish/completions/thinveil.fish
      source <(thinveil completion bash)

    bash needs the package bash-completion for it; zsh needs the folder in fpath before compinit,
    in ~/.zshrc: fpath+=~/.zfunc
    """
    from thinveil.commands.main import cli

    found = get_completion_class(shell)
    assert found is not None
    pour(found(cli, {}, "thinveil", _VARIABLE).source() + "\n")


class _Completed(click.types.StringParamType):
    """A text that is the name of a mechanism, perhaps of a plug-in's, or most often of a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the mechanisms that there are, none loaded for it; leave files to the shell."""
        if param.name != "mechanism":
            return [CompletionItem(incomplete, type="file")]
        from thinveil.language.plugins import mechanism_names

        return [CompletionItem(each) for each in mechanism_names() if each.startswith(incomplete)]


def complete_values(command: click.Command) -> None:
    """Say how the values of a command complete, where its types leave it open.

    Names of files and of mechanisms are plain texts to a command, because a file may be an
    address as well and mechanisms of plug-ins are looked for late. Columns are left alone: to
    know them, a table would have to be opened.
    """
    for each in command.params:
        file = isinstance(each, click.Argument) or "FILE" in (each.metavar or "")
        plain = type(each.type) is click.types.StringParamType
        if plain and (file or each.name == "mechanism"):
            each.type = _Completed()
