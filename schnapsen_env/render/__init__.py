"""Boards for people. Text for now; nothing here reads or changes a random state."""

from schnapsen_env.render.text import PackName, TextScreen, board, check_render_mode

__all__ = ["PackName", "TextScreen", "board", "check_render_mode"]
