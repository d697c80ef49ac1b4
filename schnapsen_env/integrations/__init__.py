"""Adapters to other libraries, each in a module of its own that imports its library only there."""
