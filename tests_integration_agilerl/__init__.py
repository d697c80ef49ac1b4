"""Tests with AgileRL, in an environment of their own: its pins exclude the other libraries."""
