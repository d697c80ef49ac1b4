"""Agents that think ahead: ``rdeep``, ``pimc`` and ``ismcts``. See ``docs/agents.md``.

All of them know what their observation says and nothing else. They imagine deals that agree with
it, and look at what becomes of each action there.
"""

from agents.search.base import SearchAgent
from agents.search.ismcts import ISMCTSAgent
from agents.search.pimc import PIMCAgent
from agents.search.rdeep import RdeepAgent

__all__ = ["ISMCTSAgent", "PIMCAgent", "RdeepAgent", "SearchAgent"]
