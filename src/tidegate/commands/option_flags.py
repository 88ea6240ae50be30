"""Flags of a command that are made from declared options: name, help and default are said once."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from tidegate.spark.options import Count, Declared, Kind, declared

Command = TypeVar("Command", bound=Callable[..., Any])


def takes_flags(kind: Kind, **helps: str) -> Callable[[Command], Command]:
    """Gives a command that takes `**options` a flag for each option of a call.

    A flag that is not given is None, so that a file of options can say it instead. `helps` has
    other help texts, where the command does not do as the call does.
    """

    def with_flags(command: Command) -> Command:
        signature = inspect.signature(command)
        own = [
            one
            for one in signature.parameters.values()
            if one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        flags = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_flag(one, helps.get(one.name, one.help)),
            )
            for one in declared(kind).values()
        ]
        command.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *flags]
        )
        command.__annotations__ = {one.name: one.annotation for one in [*own, *flags]}
        return command

    return with_flags


def _flag(option: Declared, text: str) -> Any:
    """The annotation of a flag. Values are text, which `option_value` reads."""
    shown: Any = False if option.default in (None, (), False) else str(option.default)
    metavar = "FEWEST:MOST" if option.type == Count else None
    said = typer.Option(help=text.replace("`", ""), show_default=shown, metavar=metavar)
    if bool in (option.type, *getattr(option.type, "__args__", ())):
        return Annotated[bool | None, said]
    if option.several:
        return Annotated[list[str] | None, said]
    return Annotated[str | None, said]
