"""Tests with AgileRL, in an environment of their own, since its pins exclude the other libraries."""
